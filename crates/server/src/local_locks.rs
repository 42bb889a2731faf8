//! `GET /api/treeline/locks`: who writes which name on this server and who waits for it, for operators.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use treeline_core::{Kind, Path};
use treeline_dispatch::{Claimant, Mode, Report};

use crate::app::App;
use crate::envelope;
use crate::wire::Identifier;

/// The names that are being written on this server. Other servers have their own.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LocalLocks<'a> {
    /// Whether writes of one name take turns on this server (`local_locks`); if not, there is nothing to see.
    enabled: bool,
    /// How many names are being written.
    name_count: usize,
    /// Those with the most waiting first; at most 100.
    names: Vec<Queue<'a>>,
}

/// One name.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "LocalLockQueue")]
pub(crate) struct Queue<'a> {
    #[schemars(with = "String")]
    kind: Kind,
    identifier: Identifier<'a>,
    holder_count: usize,
    /// Who writes it; at most 16.
    holders: Vec<Claim<'a>>,
    waiter_count: usize,
    /// Who waits, the next first; at most 16.
    waiters: Vec<Claim<'a>>,
}

/// One holder or waiter.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "LocalLockClaim")]
pub(crate) struct Claim<'a> {
    /// The operation and the id of its request.
    by: &'a str,
    mode: ClaimMode,
    /// For how long it has waited, or is known to have held the name; null for a holder that nobody has waited for.
    age_ms: Option<u64>,
}

/// Shared with other readers, or alone.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "LocalLockMode")]
pub(crate) enum ClaimMode {
    Read,
    Write,
}

/// `GET /api/treeline/locks`.
pub(crate) async fn list(State(app): State<App>) -> Response {
    let Some(found) = app.dispatcher().local_locks() else {
        return envelope::one("locks", LocalLocks::default());
    };
    let parents: Vec<Option<Path>> = found.names.iter().map(|report| report.key.parent()).collect();
    let queues = found.names.iter().zip(&parents);
    let locks = LocalLocks {
        enabled: true,
        name_count: found.name_count,
        names: queues
            .map(|(report, parent)| queue(report, parent.as_ref()))
            .collect(),
    };
    envelope::one("locks", locks)
}

fn queue<'a>(report: &'a Report<Path>, parent: Option<&'a Path>) -> Queue<'a> {
    Queue {
        kind: report.key.kind(),
        identifier: Identifier::under(parent, report.key.name()),
        holder_count: report.holder_count,
        holders: report.holders.iter().map(claim).collect(),
        waiter_count: report.waiter_count,
        waiters: report.waiters.iter().map(claim).collect(),
    }
}

fn claim(claimant: &Claimant) -> Claim<'_> {
    let age_ms = |age: Duration| u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    Claim {
        by: claimant.who.as_deref().unwrap_or_default(),
        mode: match claimant.mode {
            Mode::Read => ClaimMode::Read,
            Mode::Write => ClaimMode::Write,
        },
        age_ms: claimant.since.map(|since| age_ms(since.elapsed())),
    }
}

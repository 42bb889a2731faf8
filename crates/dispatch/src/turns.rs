//! The local locks: writes of one name on one server go to the database one after the other.
//!
//! Without them, writers of one row meet in the database: each takes a connection, all but one lose the
//! compare-and-set, and the losers queue for the row's lock with their connections in hand. With them, they queue
//! here, where a place in the queue costs no connection, and each comes to a row that nobody on this server is writing.
//!
//! 1. A turn is taken around the one store transaction of a managed write: after the idempotency key was recalled and
//!    the gates were passed, and released as soon as the transaction has settled. Nothing slow outside the database
//!    is done under it: no work on directories, and no call to an external system.
//! 2. What is locked is the name that is written, kind and all names from the top: an update's, a drop's, a create's
//!    new one, the model's for a link. Never a parent: creates of different names under one parent do not wait for
//!    each other. A rename locks both names, in one order whichever way it goes.
//! 3. An update that had to wait reads its row again, since what it had read before is stale by then and its
//!    compare-and-set would be lost.
//! 4. **Nothing depends on it.** A wait has a short bound, and past it the write goes on without its turn. Other
//!    servers know nothing of these locks. The database decides every race, with them and without.

use std::sync::Arc;
use std::time::{Duration, Instant};

use treeline_core::Path;
use treeline_locks::{Ask, Guard, Mode, NameLocks, Report, TimedOut};
use treeline_storage::WriteContext;

use crate::settings::Settings;

/// A report is for people, and there can be as many names as requests in flight.
const LISTED_MAX: usize = 100;

/// The names that are being written on this server, at one moment or nearly so.
#[derive(Clone, Debug)]
pub struct LocalLocks {
    /// How many there are.
    pub name_count: usize,
    /// Those with the most waiting first, then by name; at most 100.
    pub names: Vec<Report<Path>>,
}

/// Hands out turns, by name. Cheap to clone; all clones share one set of names.
#[derive(Clone, Debug)]
pub(crate) struct Turns(Option<Arc<Names>>);

#[derive(Debug)]
struct Names {
    locks: NameLocks<Path>,
    wait_max: Duration,
}

/// The right to write a name as the only one on this server, or the bare fact that nobody waits for it any longer.
#[must_use = "the turn ends as soon as it is dropped"]
pub(crate) struct Turn<'a> {
    _guards: Vec<Guard<'a, Path>>,
    waited: bool,
}

impl Turns {
    /// None at all where the settings switch them off.
    pub(crate) fn new(settings: &Settings) -> Turns {
        let on = settings.local_locks && !cfg!(feature = "locks-disabled");
        let names = || Names {
            locks: NameLocks::new(),
            wait_max: Duration::from_millis(settings.local_lock_ms_max),
        };
        Turns(on.then(|| Arc::new(names())))
    }

    /// Waits for the turn to write a name; for a rename, both names. Always comes back, within the bound.
    ///
    /// A task must not ask for a name that it holds: a debug build panics, any other waits for the bound.
    pub(crate) async fn take(
        &self,
        context: &WriteContext,
        operation: &'static str,
        name: &Path,
        new_name: Option<&Path>,
    ) -> Turn<'_> {
        let Some(names) = &self.0 else {
            return Turn::over(Vec::new(), false);
        };
        let ask = Ask::within(names.wait_max).by(format!("{operation}, request {}", context.request_id));
        let begun = Instant::now();
        let (outcome, turn) = match names.lock(ask, name, new_name).await {
            Ok(guards) if guards.iter().all(|guard| guard.waited().is_none()) => {
                count("free");
                return Turn::over(guards, false);
            }
            Ok(guards) => ("waited", Turn::over(guards, true)),
            Err(timed_out) => {
                tracing::debug!(%timed_out, "a write goes on without its turn");
                ("timed_out", Turn::over(Vec::new(), true))
            }
        };
        metrics::histogram!("treeline_local_lock_wait_seconds").record(begun.elapsed().as_secs_f64());
        count(outcome);
        turn
    }

    /// Who holds and who waits; none where they are switched off.
    pub(crate) fn snapshot(&self) -> Option<LocalLocks> {
        let mut names = self.0.as_ref()?.locks.snapshot();
        let name_count = names.len();
        names.sort_by(|one, other| (other.waiter_count, &one.key).cmp(&(one.waiter_count, &other.key)));
        names.truncate(LISTED_MAX);
        Some(LocalLocks { name_count, names })
    }
}

impl Names {
    async fn lock(
        &self,
        ask: Ask,
        name: &Path,
        new_name: Option<&Path>,
    ) -> Result<Vec<Guard<'_, Path>>, Box<TimedOut<Path>>> {
        match new_name {
            None => Ok(vec![self.locks.write(name, ask).await?]),
            Some(new_name) => {
                let both = [name, new_name].map(|name| (name.clone(), Mode::Write));
                self.locks.many(both, ask).await
            }
        }
    }
}

impl<'a> Turn<'a> {
    fn over(guards: Vec<Guard<'a, Path>>, waited: bool) -> Turn<'a> {
        Turn {
            _guards: guards,
            waited,
        }
    }

    /// Whether others may have written the name since it was asked for.
    pub(crate) fn waited(&self) -> bool {
        self.waited
    }
}

fn count(outcome: &'static str) {
    metrics::counter!("treeline_local_locks_total", "outcome" => outcome).increment(1);
}

#[cfg(test)]
#[cfg(not(feature = "locks-disabled"))]
mod tests;

//! Two server processes on one database, held at the worst moments: every row of `docs/races.md`, on each backend.
//!
//! A row is an async function that is named after its id and its claim and tells its story on a [`Race`]. It runs for
//! each kind in its list, on each backend that takes part: SQLite, and every server whose URL is in the environment
//! (`TREELINE_TEST_<BACKEND>_URL`). `cargo xtask itest` makes the build under test, the databases and the variables.
//! Read `race` first for the words, then `create`.

mod entity;
mod holds;
mod lab;
mod meet;
mod pair;
mod race;
mod report;
mod rows;
mod sent;
mod tally;

mod churn;
mod cluster;
mod create;
mod drops;
mod idempotency;
mod in_use;
mod parent;
mod rename;
mod retry;
mod storm;
mod update;
mod version;
mod wire;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use libtest_mimic::{Arguments, Trial};

use crate::lab::Lab;
use crate::rows::{Case, cases};

fn main() -> Result<ExitCode> {
    let arguments = Arguments::from_args();
    let lab = Lab::open()?.map(Arc::new);
    let trials = match &lab {
        None => Vec::new(),
        Some(lab) => cases(lab).into_iter().map(|case| trial(lab, case)).collect(),
    };
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Some(lab) = lab {
        lab.close();
    }
    Ok(conclusion.exit_code())
}

fn trial(lab: &Arc<Lab>, case: Case) -> Trial {
    let lab = Arc::clone(lab);
    Trial::test(case.name(), move || {
        let begun = std::time::Instant::now();
        let outcome = lab.runtime.block_on(case.run(&lab));
        report::add(&case, &outcome, begun.elapsed());
        outcome.map_err(|error| format!("{error:#}").into())
    })
}

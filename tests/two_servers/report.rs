//! What ran and how it ended, a JSON object a line, for whoever prints a table of it.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::rows::{Case, NotBegun};

/// Names the file that lines are added to.
const REPORT_VARIABLE: &str = "TREELINE_TEST_REPORT";

/// Adds a line, if anybody asked for them. A report that cannot be written must not fail a row that passed.
pub(crate) fn add(case: &Case, outcome: &Result<()>, took: Duration) {
    let Some(path) = std::env::var_os(REPORT_VARIABLE) else {
        return;
    };
    let error = outcome.as_ref().err();
    let not_begun = error.filter(|error| error.is::<NotBegun>());
    let line = json!({
        "row": case.row.id(),
        "case": case.name(),
        "backend": case.backend.name(),
        "order": if case.swapped { "2 is A" } else { "1 is A" },
        "not_begun": not_begun.map(|error| format!("{error:#}")),
        "passed": outcome.is_ok(),
        "seconds": took.as_secs_f64(),
    });
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    drop(written);
}

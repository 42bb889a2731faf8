//! Generated requests against every operation that `/openapi.json` describes: `tests/python/schemathesis.toml` says
//! how they are made and what their answers must satisfy, `schemathesis_hooks.py` beside it leads them to things that
//! are there.
//!
//! The server that takes them has a database of its own and may put files only below a directory of its own: the
//! generator makes up locations too. Afterwards its database must be sound.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::server::Server;
use crate::workspace::Workspace;
use crate::{command, python, server};

/// As many generated requests as each operation must have had, for those whose requests can differ at all.
const EXAMPLES_MIN: usize = 50;

/// Runs schemathesis; further arguments are handed on, and lift the demand that every operation was tried.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let environment = python::environment(workspace)?;
    let binary = server::build(workspace)?;
    let directory = fresh_directory(workspace)?;
    let (files, report) = (directory.join("files"), directory.join("report.ndjson"));
    let mut server = Server::start(
        &binary,
        &directory,
        &[OsStr::new("--allowed-roots"), files.as_os_str()],
    )?;
    let suite = workspace.root.join("tests/python");
    let mut schemathesis = Command::new(python::program(&environment, "schemathesis"));
    schemathesis
        .arg("--config-file")
        .arg(suite.join("schemathesis.toml"))
        .args(["run", &format!("{}/openapi.json", server.url())])
        .args(["--no-color", "--report", "ndjson", "--report-ndjson-path"])
        .arg(&report)
        .args(arguments)
        // It leaves a cache where it runs, which is no part of the sources.
        .current_dir(&directory)
        .env("SCHEMATHESIS_HOOKS", suite.join("schemathesis_hooks.py"))
        .env("TREELINE_URL", server.url())
        .env("TREELINE_FILES", &files)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let outcome = command::run(&mut schemathesis);
    ensure!(
        server.alive(),
        "the server did not survive:\n{}",
        server.log_tail(40)
    );
    outcome.with_context(|| format!("the server's last lines:\n{}", server.log_tail(20)))?;
    if arguments.is_empty() {
        every_operation_was_tried(&report)?;
    }
    server.end();
    server::check(&binary, &directory)
}

/// Emptied at the start and not at the end, so that what a failed run left can be looked at.
fn fresh_directory(workspace: &Workspace) -> Result<PathBuf> {
    let directory = workspace.target.join("schemathesis");
    if directory.exists() {
        std::fs::remove_dir_all(&directory).context("cannot remove what the last run left")?;
    }
    std::fs::create_dir_all(directory.join("files"))?;
    Ok(directory)
}

/// A generator that gives up early says so nowhere: its report is counted.
fn every_operation_was_tried(report: &Path) -> Result<()> {
    let events = std::fs::read_to_string(report).context("schemathesis wrote no report")?;
    let examples = examples(&events);
    ensure!(
        !examples.is_empty(),
        "the report of schemathesis has no examples in it"
    );
    let too_few: Vec<String> = examples
        .iter()
        .filter(|(operation, count)| requests_differ(operation) && **count < EXAMPLES_MIN)
        .map(|(operation, count)| format!("{operation} ({count})"))
        .collect();
    if too_few.is_empty() {
        return Ok(());
    }
    bail!(
        "fewer than {EXAMPLES_MIN} generated requests of: {}",
        too_few.join(", ")
    )
}

/// How many requests each operation had in the phase that makes them up.
fn examples(events: &str) -> BTreeMap<String, usize> {
    let mut examples = BTreeMap::new();
    for event in events
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
    {
        let scenario = &event["ScenarioFinished"];
        if let (Some("fuzzing"), Some(operation)) =
            (scenario["phase"].as_str(), scenario["recorder"]["label"].as_str())
        {
            let cases = scenario["recorder"]["cases"]
                .as_object()
                .map_or(0, serde_json::Map::len);
            *examples.entry(operation.to_owned()).or_insert(0) += cases;
        }
    }
    examples
}

/// A GET without anything in its path has one request only.
fn requests_differ(operation: &str) -> bool {
    !operation.starts_with("GET ") || operation.contains('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_operation_in_the_phase_that_makes_them_up() {
        let event = |phase: &str, label: &str, cases: &str| {
            format!(
                r#"{{"ScenarioFinished":{{"phase":"{phase}","recorder":{{"label":"{label}","cases":{cases}}}}}}}"#
            )
        };
        let events = [
            r#"{"Initialize":{}}"#.to_owned(),
            event("fuzzing", "GET /a/{b}", r#"{"1":{},"2":{}}"#),
            event("fuzzing", "GET /a/{b}", r#"{"3":{}}"#),
            event("coverage", "GET /a/{b}", r#"{"4":{}}"#),
            event("fuzzing", "POST /a", "{}"),
        ];
        let counted = examples(&events.join("\n"));
        assert_eq!(
            counted,
            BTreeMap::from([("GET /a/{b}".to_owned(), 3), ("POST /a".to_owned(), 0)])
        );
        assert!(requests_differ("GET /a/{b}") && requests_differ("POST /a") && !requests_differ("GET /a"));
    }
}

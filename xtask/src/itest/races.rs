//! The rows of `docs/races.md` on the suite of two servers: which it has on each backend, and how each ended.
//!
//! A row counts only where it has an ending. What the suite has is what it lists itself, so a backend that has silently
//! taken no part, or a suite that broke off, is no row that passed.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Result, ensure};

use super::table::{Place, Table};
use super::{
    BINARY_VARIABLE, Bench, CONTAINERS_VARIABLE, DATABASES, DATABASES_VARIABLE, LOCAL_LOCKS_VARIABLE,
    MUTANTS_VARIABLE, ONE_KIND_VARIABLE, PAIRS, Plan, REPORT_VARIABLE, ROWS_VARIABLE, SOAK_VARIABLE,
};
use crate::command;

/// What one run of the rows is restricted to.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    /// None: all.
    pub(super) rows: Vec<String>,
    pub(super) backends: Vec<&'static str>,
    pub(super) soak: bool,
    /// One kind a row, in turn, on every backend.
    pub(super) one_kind: bool,
    /// None: as servers have it by default.
    pub(super) local_locks: Option<&'static str>,
    /// The rules that the servers leave out.
    pub(super) mutants: String,
}

impl Selection {
    pub(super) fn of(plan: &Plan) -> Selection {
        Selection {
            rows: plan.rows.clone(),
            backends: plan.backends.clone(),
            soak: plan.soak,
            one_kind: false,
            local_locks: plan.local_locks,
            mutants: String::new(),
        }
    }
}

impl Bench<'_> {
    /// Runs rows on databases of their own, and answers how each ended, and whether all ran and passed.
    pub(super) fn races(&self, name: &str, selection: &Selection) -> Result<(Table, Result<()>)> {
        let directory = self.workspace.target.join("itest");
        std::fs::create_dir_all(&directory)?;
        let report = directory.join(format!("{name}.jsonl"));
        // What an earlier run has left; most often there is nothing.
        let _ = std::fs::remove_file(&report);
        let mut list = self.suite(selection);
        let expected = expected(&command::output(list.arg("--list"))?, selection)?;
        let databases = self.databases.make(name, DATABASES, &selection.backends)?;
        let mut suite = self.suite(selection);
        suite
            .env(DATABASES_VARIABLE, databases.join(","))
            .env(ROWS_VARIABLE, selection.rows.join(","))
            .env(REPORT_VARIABLE, &report);
        suite.args(["--quiet", "--test-threads", &PAIRS.to_string()]);
        let outcome = if selection.mutants.is_empty() {
            command::run(&mut suite)
        } else {
            // Failures are what is looked for; the table says which there were.
            command::succeeds(&mut suite);
            Ok(())
        };
        self.databases.discard(&databases, &selection.backends);
        let text = std::fs::read_to_string(&report).unwrap_or_default();
        let table = Table::read(&text, &selection.backends)?;
        let missing = table.missing(&expected);
        let outcome = outcome.and_then(|()| {
            ensure!(missing.is_empty(), "no ending of {missing}");
            Ok(())
        });
        Ok((table, outcome))
    }

    /// The suite with what all its runs are told; arguments of its own may follow.
    fn suite(&self, selection: &Selection) -> Command {
        let mut suite = command::suite(&self.workspace.root, "treeline-tests", "two_servers");
        suite
            .env(BINARY_VARIABLE, &self.binary)
            .env(MUTANTS_VARIABLE, &selection.mutants)
            .env_remove(ROWS_VARIABLE)
            .env_remove(REPORT_VARIABLE);
        if let Some(local_locks) = selection.local_locks {
            suite.env(LOCAL_LOCKS_VARIABLE, local_locks);
        }
        if selection.soak {
            suite.env(SOAK_VARIABLE, "1");
        }
        if selection.one_kind {
            suite.env(ONE_KIND_VARIABLE, "1");
        }
        self.databases.tell(&mut suite, &selection.backends);
        // Without a rule the answers are what is looked at, and processes start faster.
        if let (Some(place), true) = (self.databases.place(), selection.mutants.is_empty()) {
            suite.env(CONTAINERS_VARIABLE, place);
        }
        suite.arg("--");
        if !selection.backends.contains(&"sqlite") {
            suite.args(["--skip", "::sqlite::"]);
        }
        suite
    }
}

/// The rows that have to end on each backend, by the suite's list of all its cases. Fails if a backend has none at all, or a row that
/// was asked for is on none.
fn expected(list: &str, selection: &Selection) -> Result<BTreeSet<Place>> {
    let mut places: BTreeSet<Place> = list.lines().filter_map(place).collect();
    for backend in &selection.backends {
        ensure!(
            places.iter().any(|place| place.backend == *backend),
            "the suite has no row on {backend}"
        );
    }
    for row in &selection.rows {
        ensure!(
            places.iter().any(|place| place.row == *row),
            "no backend of this run has the row {row}"
        );
    }
    places.retain(|place| selection.rows.is_empty() || selection.rows.contains(&place.row));
    Ok(places)
}

/// The place of a case: `r_drop_1_it_is_dropped_once::sqlite::schema: test`.
fn place(line: &str) -> Option<Place> {
    let (case, _) = line.split_once(": ")?;
    let (name, rest) = case.split_once("::")?;
    let (backend, _) = rest.split_once("::")?;
    let id: Vec<&str> = name.split('_').take(3).collect();
    Some(Place {
        row: id.join("-").to_uppercase(),
        backend: backend.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "r_drop_1_it_is_dropped_once::sqlite::schema: test\n\
                        r_drop_1_it_is_dropped_once::mysql::schema::swapped: test\n\
                        r_retry_1_the_truth::mysql::model: test\n";

    fn places(backends: &[&'static str], rows: &[&str]) -> Result<Vec<String>> {
        let selection = Selection {
            backends: backends.to_vec(),
            rows: rows.iter().map(|row| (*row).to_owned()).collect(),
            ..Selection::default()
        };
        let places = expected(LIST, &selection)?;
        Ok(places.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_row_has_to_end_wherever_the_suite_has_it() {
        let all = ["R-DROP-1 on mysql", "R-DROP-1 on sqlite", "R-RETRY-1 on mysql"];
        assert_eq!(places(&["sqlite", "mysql"], &[]).unwrap(), all);
        assert_eq!(places(&["sqlite", "mysql"], &["R-RETRY-1"]).unwrap(), all[2..]);
    }

    #[test]
    fn a_backend_without_rows_and_a_row_without_a_backend_are_refused() {
        let refused =
            |backends: &[&'static str], rows: &[&str]| places(backends, rows).unwrap_err().to_string();
        assert_eq!(
            refused(&["mysql", "postgres"], &[]),
            "the suite has no row on postgres"
        );
        assert_eq!(
            refused(&["mysql"], &["R-DROP-2"]),
            "no backend of this run has the row R-DROP-2"
        );
    }
}

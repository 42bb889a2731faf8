//! Rules switched off, to show that the rows which guard them can fail.
//!
//! A switch has to be caught on each backend on which its rule means anything: of the rows named at it, at least one
//! must fail there, and all that are said to fail whatever else does. Where two rules guard one thing, each is switched
//! off together with the other.
//! A switch that survives is tried again, since some races have to be won to be seen.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};

use super::races::Selection;
use super::table::Table;
use super::{BACKENDS, Bench, GALERA, SERVERS};

/// One rule, or two that stand in for each other.
struct Switch {
    /// As the server knows them, separated by commas.
    names: &'static str,
    /// Where the rule means anything.
    backends: &'static [&'static str],
    /// The rows that guard it, separated by blanks.
    rows: &'static str,
    caught: Caught,
    /// Those of them that fail whatever else does, separated by blanks.
    surely: &'static str,
}

impl Switch {
    /// What its report is called. A rule that has other guards on a cluster is there twice.
    fn report(&self) -> String {
        if self.backends == [GALERA] {
            format!("{}-{GALERA}", self.names)
        } else {
            self.names.to_owned()
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Caught {
    /// At least one row fails.
    Yes,
    /// No row fails: another rule holds it alone.
    No,
}

/// How often a switch is tried before it has survived.
const ATTEMPTS_MAX: usize = 3;

const INNODB: &[&str] = &["mariadb", "mysql"];

const fn switch(names: &'static str, backends: &'static [&'static str], rows: &'static str) -> Switch {
    Switch {
        names,
        backends,
        rows,
        caught: Caught::Yes,
        surely: "",
    }
}

const SWITCHES: &[Switch] = &[
    switch(
        "m-parent-lock",
        SERVERS,
        "R-PARENT-2 R-PARENT-3 R-RENAME-7 R-RENAME-8 R-INUSE-3",
    ),
    Switch {
        names: "m-liveness-key",
        backends: &BACKENDS,
        rows: "R-PARENT-1 R-PARENT-2 R-PARENT-3 R-PARENT-5 R-PARENT-7",
        caught: Caught::No,
        surely: "",
    },
    switch(
        "m-parent-lock,m-liveness-key",
        SERVERS,
        "R-PARENT-1 R-PARENT-2 R-PARENT-3 R-PARENT-5 R-PARENT-7 R-CHURN-7",
    ),
    switch(
        "m-version-predicate",
        &BACKENDS,
        "R-UPDATE-1 R-UPDATE-2 R-UPDATE-3 R-UPDATE-4 R-UPDATE-5 R-UPDATE-9 R-UPDATE-11 R-UPDATE-12 \
         R-CHURN-4",
    ),
    switch(
        "m-live-predicate",
        &BACKENDS,
        "R-DROP-1 R-DROP-2 R-PARENT-9 R-PARENT-10",
    ),
    switch(
        "m-version-predicate,m-live-predicate",
        &BACKENDS,
        "R-UPDATE-7 R-UPDATE-8 R-RENAME-5 R-INUSE-2",
    ),
    switch("m-lock-then-look,m-liveness-key", &["postgres"], "R-PARENT-2"),
    switch(
        "m-snapshot,m-liveness-key",
        INNODB,
        "R-VERSION-1 R-VERSION-2 R-VERSION-9 R-PARENT-2 R-PARENT-3 R-PARENT-12",
    ),
    switch("m-bump", &BACKENDS, "R-UPDATE-3"),
    switch("m-delta", &BACKENDS, "R-UPDATE-1 R-UPDATE-5 R-UPDATE-11"),
    switch("m-reread-lock", SERVERS, "R-UPDATE-11 R-UPDATE-12 R-UPDATE-14"),
    switch("m-name-recheck", &BACKENDS, "R-RENAME-8"),
    switch("m-drop-by-name", &BACKENDS, "R-PARENT-10"),
    switch("m-strict-insert", &BACKENDS, "R-CREATE-1 R-CREATE-2 R-CHURN-1"),
    switch(
        "m-cascade-top-down,m-liveness-key",
        SERVERS,
        "R-PARENT-7 R-PARENT-11",
    ),
    switch("m-index-hint", &["mariadb"], "R-UPDATE-11 R-RENAME-9"),
    switch("m-alter-lock", &["postgres"], "R-UPDATE-15"),
    switch("m-alias-parent", &["postgres"], "R-VERSION-10"),
    switch("m-deadlock-budget", SERVERS, "R-CREATE-8 R-RETRY-2"),
    switch("m-purge-claim", &BACKENDS, "R-DROP-4 R-DROP-8"),
    switch("m-adopted", &BACKENDS, "R-DROP-7"),
    Switch {
        names: "m-idempotency-first",
        backends: &BACKENDS,
        rows: "R-IDEM-1 R-IDEM-2",
        caught: Caught::No,
        surely: "",
    },
    switch(
        "m-idempotency-first,m-idempotency-refused",
        &BACKENDS,
        "R-IDEM-1 R-IDEM-2 R-CHURN-2",
    ),
    switch(
        "m-idempotency-tx,m-idempotency-refused",
        &BACKENDS,
        "R-IDEM-1 R-IDEM-2",
    ),
    switch("m-idempotency-wait", &BACKENDS, "R-IDEM-7 R-IDEM-8"),
    switch("m-idempotency-undo", &BACKENDS, "R-IDEM-8"),
    switch("m-feed-tx", SERVERS, "R-CREATE-3 R-PARENT-6"),
    switch("m-blind-retry", SERVERS, "R-RETRY-1"),
    switch("m-tombstone-time", &BACKENDS, "R-DROP-2 R-CHURN-8"),
    switch(
        "m-deferred",
        &["sqlite"],
        "R-CREATE-1 R-PARENT-3 R-PARENT-5 R-UPDATE-5 R-RENAME-1 R-VERSION-1 R-DROP-1",
    ),
    // Locks do not span the nodes of a cluster, and there the keys hold alone.
    Switch {
        surely: "R-PARENT-5 R-PARENT-7 R-PARENT-11",
        ..switch(
            "m-liveness-key",
            &[GALERA],
            "R-PARENT-2 R-PARENT-3 R-PARENT-5 R-PARENT-7 R-PARENT-11 R-PARENT-12",
        )
    },
    switch("m-sync-wait", &[GALERA], "R-CLUSTER-1"),
    switch("m-migration-claim", &[GALERA], "R-CLUSTER-2"),
    switch("m-plain-drop-below", &[GALERA], "R-CLUSTER-3"),
    switch("m-unbounded-wait", SERVERS, "R-RETRY-3"),
    switch("m-silent-session", SERVERS, "R-RETRY-4"),
];

/// Runs every switch that was asked for and that the server has, and fails if one survives anywhere.
pub(super) fn run(bench: &Bench<'_>) -> Result<()> {
    // A switch that the server knows stands in its binary.
    let binary = std::fs::read(&bench.binary)?;
    let binary = String::from_utf8_lossy(&binary);
    let wanted = |switch: &&Switch| {
        bench
            .plan
            .switch
            .as_deref()
            .is_none_or(|name| names(switch, name))
    };
    let (mut lines, mut survivors) = (Vec::new(), Vec::new());
    for switch in SWITCHES.iter().filter(wanted) {
        let missing = switch.names.split(',').find(|name| !binary.contains(*name));
        if let Some(name) = missing {
            bail!("the server has no switch {name}");
        }
        let backends = bench.plan.backends.iter().copied();
        let backends: Vec<_> = backends.filter(|name| switch.backends.contains(name)).collect();
        if backends.is_empty() {
            continue;
        }
        println!("\n== {}", switch.names);
        for ending in patiently_tried(bench, switch, &backends)? {
            if (switch.caught == Caught::Yes) == ending.failed.is_empty() {
                survivors.push(format!("{} on {}", switch.names, ending.backend));
            }
            for row in switch.surely.split_terminator(' ') {
                if ending.failed.split(' ').all(|failed| failed != row) {
                    survivors.push(format!("{} on {} in {row}", switch.names, ending.backend));
                }
            }
            let verdict = ending.verdict(switch.caught);
            lines.push(format!("{:<42}{:<10}{verdict}", switch.names, ending.backend));
        }
    }
    println!("\n{}", lines.join("\n"));
    ensure!(!lines.is_empty(), "there is no such switch");
    ensure!(survivors.is_empty(), "not as expected: {}", survivors.join(", "));
    Ok(())
}

/// What came of a switch on one backend.
struct Ending {
    backend: &'static str,
    /// The rows that failed, separated by blanks.
    failed: String,
    attempts: usize,
}

impl Ending {
    fn verdict(&self, expected: Caught) -> String {
        let Ending { failed, attempts, .. } = self;
        match (expected, failed.is_empty()) {
            (Caught::Yes, false) if *attempts > 1 => format!("caught by {failed}, in attempt {attempts}"),
            (Caught::Yes, false) => format!("caught by {failed}"),
            (Caught::Yes, true) => format!("SURVIVED {attempts} attempts"),
            (Caught::No, true) => "no row fails, as it should be".to_owned(),
            (Caught::No, false) => format!("FAILED in {failed}, though another rule should hold it"),
        }
    }
}

/// Tries a switch on each backend, and again where it survives and should not.
fn patiently_tried(bench: &Bench<'_>, switch: &Switch, backends: &[&'static str]) -> Result<Vec<Ending>> {
    let (mut endings, mut left) = (Vec::new(), backends.to_vec());
    for attempts in 1..=ATTEMPTS_MAX {
        let tried = tried(bench, switch, &left)?;
        left.clear();
        for (backend, failed) in tried {
            if failed.is_empty() && switch.caught == Caught::Yes && attempts < ATTEMPTS_MAX {
                left.push(backend);
            } else {
                endings.push(Ending {
                    backend,
                    failed,
                    attempts,
                });
            }
        }
        if left.is_empty() {
            break;
        }
        println!("{} survived on {}; once more", switch.names, left.join(" and "));
    }
    Ok(endings)
}

/// For each backend, the rows that failed.
fn tried(
    bench: &Bench<'_>,
    switch: &Switch,
    backends: &[&'static str],
) -> Result<Vec<(&'static str, String)>> {
    let selection = Selection {
        rows: switch.rows.split(' ').map(str::to_owned).collect(),
        backends: backends.to_vec(),
        soak: false,
        one_kind: false,
        // Writers that take turns within a server may never meet what the switch has broken.
        local_locks: bench.plan.local_locks.or(Some("off")),
        mutants: switch.names.to_owned(),
    };
    let (table, outcome) = bench.races(&switch.report(), &selection)?;
    outcome?;
    // A server that cannot start without the rule has shown nothing of what the rule is for.
    for ending in &table.endings {
        if let Some(reason) = &ending.not_begun {
            bail!(
                "{} on {}: {} could not begin: {reason}",
                switch.names,
                ending.backend,
                ending.row
            );
        }
    }
    backends
        .iter()
        .map(|backend| Ok((*backend, failed(&table, backend)?)))
        .collect()
}

/// The rows that failed on a backend. Where none ran, none has passed either.
fn failed(table: &Table, backend: &str) -> Result<String> {
    let mut ended = table
        .endings
        .iter()
        .filter(|ending| ending.backend == backend)
        .peekable();
    ensure!(ended.peek().is_some(), "no row ran on {backend}");
    let failed = ended.filter(|ending| !ending.passed);
    let rows: BTreeSet<&str> = failed.map(|ending| ending.row.as_str()).collect();
    Ok(rows.into_iter().collect::<Vec<_>>().join(" "))
}

fn names(switch: &Switch, wanted: &str) -> bool {
    switch.names == wanted || switch.names.split(',').any(|name| name == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_says_what_was_found_and_after_how_many_attempts() {
        let verdict = |expected: Caught, failed: &str, attempts: usize| {
            let failed = failed.to_owned();
            let ending = Ending {
                backend: "sqlite",
                failed,
                attempts,
            };
            ending.verdict(expected)
        };
        assert_eq!(verdict(Caught::Yes, "one", 1), "caught by one");
        assert_eq!(
            verdict(Caught::Yes, "one two", 2),
            "caught by one two, in attempt 2"
        );
        assert_eq!(verdict(Caught::Yes, "", 3), "SURVIVED 3 attempts");
        assert!(verdict(Caught::No, "", 1).starts_with("no row fails"));
        assert!(verdict(Caught::No, "one", 1).starts_with("FAILED in one"));
    }

    #[test]
    fn a_backend_on_which_nothing_ran_has_not_passed() {
        let line = |row: &str, passed: bool| {
            format!("{{\"row\":\"{row}\",\"backend\":\"sqlite\",\"order\":\"1 is A\",\"passed\":{passed}}}\n")
        };
        let report = [line("R-IDEM-1", true), line("R-IDEM-2", false)].concat();
        let table = Table::read(&report, &["sqlite", "mysql"]).unwrap();
        assert_eq!(failed(&table, "sqlite").unwrap(), "R-IDEM-2");
        assert!(failed(&table, "mysql").is_err());
    }

    #[test]
    fn no_two_switches_write_one_report() {
        let reports: BTreeSet<String> = SWITCHES.iter().map(Switch::report).collect();
        assert_eq!(reports.len(), SWITCHES.len());
    }

    #[test]
    fn every_switch_is_tried_somewhere_by_rows_of_the_list() {
        let list = std::fs::read_to_string(crate::workspace::root().join("docs/races.md")).unwrap();
        for switch in SWITCHES {
            assert!(!switch.backends.is_empty(), "{}", switch.names);
            for row in switch.rows.split(' ') {
                assert!(list.contains(&format!("| {row} |")), "{row} of {}", switch.names);
            }
            for row in switch.surely.split_terminator(' ') {
                assert!(
                    switch.rows.split(' ').any(|known| known == row),
                    "{row} of {}",
                    switch.names
                );
            }
        }
    }
}

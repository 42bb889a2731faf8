//! `cargo xtask itest --faults`: random clients on two servers while something goes wrong, and the verdict.
//!
//! Each fault happens once in the middle of a run, and is mended again. Nothing acknowledged may be lost, no answer may be
//! a failure but "not now" (503), each server must serve again without being started again, and the first write must be
//! through soon after the end of the fault (`tests/random/fault.rs`). Servers are containers, or they could not be cut off.

use std::path::Path;

use anyhow::{Result, bail, ensure};

use super::history::{self, Run};
use super::{BACKENDS, Bench, GALERA, SERVERS};

/// How long the clients play; the fault begins after a third of it.
const SECONDS: u64 = 18;

/// The same where a node of a cluster goes and comes back, which takes longer, and is to happen under load.
const SECONDS_OF_NODES: u64 = 45;

/// What goes wrong, and where that means anything.
const FAULTS: [(&str, &[&str]); 14] = [
    ("server-killed", &BACKENDS),
    ("server-dies-at-points", &BACKENDS),
    ("server-frozen", &BACKENDS),
    ("server-cut-off", SERVERS),
    ("database-killed", SERVERS),
    ("database-frozen", SERVERS),
    ("primary-failed-over", &["postgres"]),
    ("primary-frozen", &["postgres"]),
    ("primary-left-behind", &["postgres"]),
    ("standby-killed", &["postgres"]),
    ("disk-full", &["sqlite"]),
    ("clocks-apart", &BACKENDS),
    ("node-killed", &[GALERA]),
    ("node-cut-off", &[GALERA]),
];

/// Rules that the servers leave out, the fault that shows it, and what may be found.
const SWITCHES: [(&str, &str, &[&str]); 2] = [
    ("m-standby-probe", "primary-failed-over", &["standby-read"]),
    (
        "m-primary-watch",
        "primary-left-behind",
        &["late", "old-primary-read"],
    ),
];

/// Whether a fault befalls a primary that has a standby.
pub(super) fn takes_a_pair(fault: &str) -> bool {
    fault.starts_with("primary-") || fault.starts_with("standby-")
}

/// Lets each fault happen on each backend that takes part, and fails if any of it is not borne.
pub(super) fn run(bench: &Bench<'_>) -> Result<()> {
    let program = history::build(bench)?;
    let seed = history::seed(bench);
    println!("\n== faults, seed {seed}");
    let only = &bench.plan.only_faults;
    let wanted = |name: &str| only.is_empty() || only.iter().any(|fault| fault == name);
    let unknown = only
        .iter()
        .find(|name| FAULTS.iter().all(|(known, _)| known != name));
    if let Some(name) = unknown {
        let known: Vec<&str> = FAULTS.iter().map(|(known, _)| *known).collect();
        bail!("there is no fault `{name}`; there are {}", known.join(", "));
    }
    let suffered = |backends: &[&str]| backends.iter().any(|name| bench.plan.backends.contains(name));
    let nowhere: Vec<&str> = FAULTS
        .into_iter()
        .filter(|(name, backends)| only.iter().any(|fault| fault == name) && !suffered(backends))
        .map(|(name, _)| name)
        .collect();
    ensure!(
        nowhere.is_empty(),
        "no backend of this run can suffer {}",
        nowhere.join(", ")
    );
    ensure!(
        bench.plan.seconds.is_none_or(|seconds| seconds >= SECONDS),
        "a fault and what comes after it take {SECONDS} s"
    );
    if bench.plan.mutants {
        let seconds = bench.plan.seconds.unwrap_or(SECONDS);
        let switches = SWITCHES.into_iter().filter(|(_, fault, _)| wanted(fault));
        return without_rules(bench, &program, seed, seconds, switches);
    }
    let mut runs = Vec::new();
    for (fault, backends) in FAULTS.into_iter().filter(|(name, _)| wanted(name)) {
        let usual = if fault.starts_with("node-") {
            SECONDS_OF_NODES
        } else {
            SECONDS
        };
        let seconds = bench.plan.seconds.unwrap_or(usual);
        let backends = backends.iter().filter(|name| bench.plan.backends.contains(name));
        for backend in backends.copied() {
            let run = Run {
                backend,
                fault,
                seed,
                ..Run::default()
            };
            runs.push(history::play(bench, &program, run, seconds));
        }
    }
    print!("{}", table(&runs));
    ensure!(!runs.is_empty(), "there is no such fault on these backends");
    let failed: Vec<String> = runs.iter().filter(|run| !run.holds()).map(Run::name).collect();
    ensure!(failed.is_empty(), "not borne: {}", failed.join(", "));
    Ok(())
}

/// The faults that show a missing rule, on servers without it: something must be found.
fn without_rules(
    bench: &Bench<'_>,
    program: &Path,
    seed: u64,
    seconds: u64,
    switches: impl Iterator<Item = (&'static str, &'static str, &'static [&'static str])>,
) -> Result<()> {
    let wanted = |name: &str| bench.plan.switch.as_deref().is_none_or(|switch| switch == name);
    let (mut runs, mut survivors) = (Vec::new(), Vec::new());
    for (mutant, fault, found) in switches.filter(|(name, ..)| wanted(name)) {
        let run = Run {
            backend: "postgres",
            mutant,
            fault,
            seed,
            ..Run::default()
        };
        let run = history::play(bench, program, run, seconds);
        if run.found().is_disjoint(&found.iter().copied().collect()) {
            survivors.push(mutant);
        }
        runs.push(run);
    }
    print!("{}", table(&runs));
    ensure!(!runs.is_empty(), "no fault is suffered without that rule");
    ensure!(survivors.is_empty(), "not found: {}", survivors.join(", "));
    Ok(())
}

fn table(runs: &[Run]) -> String {
    let head = format!(
        "\n{:<22}{:<10}{:>11}{:>9}{:>9}{:>9}{:>9}{:>11}{:>14}{:>12}\n",
        "fault",
        "backend",
        "operations",
        "ok",
        "refused",
        "503",
        "unknown",
        "slowest",
        "serves after",
        "at most"
    );
    std::iter::once(head).chain(runs.iter().map(line)).collect()
}

fn line(run: &Run) -> String {
    let not_now = run.result("answers")["503"].as_u64().unwrap_or_default();
    // Who never served again did not do so after no time.
    let served = run.result("recovered_ms").as_u64();
    let served = served.map_or("never".to_owned(), |ms| format!("{ms} ms"));
    let found: Vec<&str> = run.found().into_iter().collect();
    let line = format!(
        "{:<22}{:<10}{:>11}{:>9}{:>9}{not_now:>9}{:>9}{:>8} ms{served:>14}{:>9} ms  {}",
        run.fault,
        run.backend,
        run.count("operations"),
        run.count("succeeded"),
        run.count("refused"),
        run.count("unknown"),
        run.count("slowest_ms"),
        run.count("recovered_ms_max"),
        found.join(" ")
    );
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_that_was_not_played_is_a_failed_line_among_the_others() {
        let result = json!({"operations": 7, "failed": 0, "recovered_ms": 12, "recovered_ms_max": 5_000});
        let run = |fault: &'static str, result: Option<serde_json::Value>| Run {
            backend: "postgres",
            fault,
            result,
            ..Run::default()
        };
        let runs = [run("server-killed", None), run("disk-full", Some(result))];
        assert!(!runs[0].holds() && runs[1].holds());
        let text = table(&runs);
        let lines: Vec<&str> = text.trim_start().lines().collect();
        assert!(
            lines[1].contains("never") && lines[1].ends_with("not-played"),
            "{text}"
        );
        assert!(
            lines[2].contains(" 12 ms") && lines[2].ends_with("5000 ms"),
            "{text}"
        );
    }

    #[test]
    fn a_fault_of_a_standby_takes_one() {
        assert!(takes_a_pair("primary-frozen") && takes_a_pair("standby-killed"));
        assert!(!takes_a_pair("database-killed"));
    }
}

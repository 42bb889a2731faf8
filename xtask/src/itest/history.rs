//! `cargo xtask itest --history`: random clients on two servers, on each backend, and the verdict on what they saw.
//!
//! The program that plays and judges is `tests/random`; here are its databases, and the table of what came of it. In a
//! soak there are three servers, of which one after the other is killed and comes back. With
//! `--mutants` the servers leave out a rule, and a run that nothing was found in fails.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{
    BACKENDS, BINARY_VARIABLE, Bench, CONTAINERS_VARIABLE, GALERA, LOCAL_LOCKS_VARIABLE, MUTANTS_VARIABLE,
    SERVERS, faults,
};
use crate::command;

/// How long the clients play, on each backend.
const SECONDS: u64 = 20;

/// The same, on servers without one of their rules: the first conflict shows it.
const SECONDS_WITHOUT_A_RULE: u64 = 8;

/// The same without the rule that holds only where a database errs, which it does now and then.
const RARE: &str = "m-intact";
const SECONDS_OF_RARE: u64 = 30;

/// What is a race must be won to be found, so a rule that seems to be there is looked for again.
const ATTEMPTS_MAX: u64 = 3;

/// What the exit code of the program says if it could not do its work.
const NOT_RUN: i32 = 2;

/// Names the container of the database server to a run that lets something go wrong with it.
pub(super) const CONTAINER_VARIABLE: &str = "TREELINE_TEST_CONTAINER";

/// What the audit's findings are called beside the rules of the checker.
const AUDIT: &str = "audit";

/// Rules that the servers leave out, where they mean anything, and what may find it. A child that was created below
/// what was being dropped is out of its clients' sight, since no path leads to it; only the audit sees it.
const SWITCHES: [(&str, &[&str], &[&str]); 7] = [
    (
        "m-version-predicate",
        &BACKENDS,
        &["H-VERSIONS", "H-LOST", "H-MATCH"],
    ),
    ("m-delta", &BACKENDS, &["H-LOST"]),
    ("m-strict-insert", &BACKENDS, &["H-UNIQUE"]),
    ("m-live-predicate", &BACKENDS, &["H-DROPPED"]),
    ("m-parent-lock,m-liveness-key", SERVERS, &["H-PARENT", AUDIT]),
    ("m-sync-wait", &[GALERA], &["H-LOST", "H-REALTIME", "H-DROPPED"]),
    (
        RARE,
        &[GALERA],
        &["H-LOST", "H-VERSIONS", "H-DROPPED", "H-PARENT", AUDIT],
    ),
];

/// What a run is called that was not played to its end.
const NOT_PLAYED: &str = "not-played";

/// One run of the program.
#[derive(Clone, Default)]
pub(super) struct Run {
    pub(super) backend: &'static str,
    /// What the servers leave out, if anything.
    pub(super) mutant: &'static str,
    /// What goes wrong, if anything.
    pub(super) fault: &'static str,
    pub(super) seed: u64,
    /// None if it could not be played to its end.
    pub(super) result: Option<Value>,
}

/// Plays on each backend that takes part, and fails if anything was found, or, without a rule, if nothing was.
pub(super) fn run(bench: &Bench<'_>) -> Result<()> {
    let program = build(bench)?;
    let seed = seed(bench);
    println!("\n== histories, seed {seed}");
    if bench.plan.mutants {
        return without_rules(bench, &program, seed);
    }
    let mut runs = Vec::new();
    for backend in bench.plan.backends.iter().copied() {
        let seconds = bench.plan.seconds.unwrap_or(SECONDS);
        let run = Run {
            backend,
            seed,
            ..Run::default()
        };
        runs.push(play(bench, &program, run, seconds));
    }
    print!("{}", table(&runs));
    let failed: Vec<String> = runs.iter().filter(|run| !run.holds()).map(Run::name).collect();
    ensure!(failed.is_empty(), "not as it should be: {}", failed.join(", "));
    Ok(())
}

fn without_rules(bench: &Bench<'_>, program: &Path, seed: u64) -> Result<()> {
    let wanted = |name: &str| bench.plan.switch.as_deref().is_none_or(|switch| switch == name);
    let (mut runs, mut survivors) = (Vec::new(), Vec::new());
    for (mutant, backends, rules) in SWITCHES.iter().filter(|(name, ..)| wanted(name)) {
        let usual = if *mutant == RARE {
            SECONDS_OF_RARE
        } else {
            SECONDS_WITHOUT_A_RULE
        };
        let seconds = bench.plan.seconds.unwrap_or(usual);
        let backends = backends.iter().filter(|name| bench.plan.backends.contains(name));
        for backend in backends.copied() {
            let mut is_caught = false;
            for attempt in 0..ATTEMPTS_MAX {
                let run = Run {
                    backend,
                    mutant,
                    seed: seed + attempt,
                    ..Run::default()
                };
                let run = play(bench, program, run, seconds);
                is_caught = run.found().iter().any(|found| rules.contains(found));
                runs.push(run);
                if is_caught {
                    break;
                }
            }
            if !is_caught {
                survivors.push(format!("{mutant} on {backend}"));
            }
        }
    }
    print!("{}", table(&runs));
    ensure!(!runs.is_empty(), "no history is played without that rule");
    ensure!(survivors.is_empty(), "not found: {}", survivors.join(", "));
    Ok(())
}

pub(super) fn build(bench: &Bench<'_>) -> Result<PathBuf> {
    let mut build = command::cargo(&bench.workspace.root);
    build.args(["build", "--quiet", "--locked", "-p", "treeline-tests"]);
    command::run(build.args(["--bin", "treeline-random"]))?;
    let name = format!("treeline-random{}", std::env::consts::EXE_SUFFIX);
    Ok(bench.workspace.target.join("debug").join(name))
}

/// What was asked for, or something else every time.
pub(super) fn seed(bench: &Bench<'_>) -> u64 {
    let random = || RandomState::new().build_hasher().finish() % 1_000_000;
    bench.plan.seed.unwrap_or_else(random)
}

/// Plays one run on a database of its own, and fills in its result. Of one that could not be played it is said why, and the others
/// go on.
pub(super) fn play(bench: &Bench<'_>, program: &Path, run: Run, seconds: u64) -> Run {
    let result = played(bench, program, &run, seconds)
        .inspect_err(|error| println!("{} could not be played: {error:#}", run.name()))
        .ok();
    Run { result, ..run }
}

fn played(bench: &Bench<'_>, program: &Path, run: &Run, seconds: u64) -> Result<Value> {
    let (backend, mutant) = (run.backend, run.mutant);
    let name = run.name().replace(' ', "-");
    let history = bench
        .workspace
        .target
        .join("itest")
        .join(format!("history-{name}.jsonl"));
    println!("{name}: {}", history.display());
    // A database's name may not be long.
    let number = SWITCHES.iter().position(|(names, ..)| *names == mutant);
    let short = format!(
        "h{}_{}{}",
        run.seed,
        run.fault,
        number.map_or(0, |number| number + 1)
    );
    // A failover leaves nothing of its servers that another run could use.
    let pair = faults::takes_a_pair(run.fault).then(|| bench.databases.pair(bench.plan));
    let pair = pair.transpose()?;
    let databases = match &pair {
        Some(pair) => vec![pair.make(&short)?],
        None => bench.databases.make(&short, 1, &[backend])?,
    };
    let mut play = Command::new(program);
    play.args(["--backend", backend, "--seed", &run.seed.to_string()]);
    play.args(["--seconds", &seconds.to_string(), "--history"])
        .arg(&history);
    if let Some(database) = databases.first() {
        play.args(["--database", database]);
    }
    if bench.plan.soak {
        play.args(["--servers", "3"]);
        // One that was started again would not show whether it had borne the fault.
        if run.fault.is_empty() {
            play.arg("--kills");
        }
    }
    if !run.fault.is_empty() {
        play.args(["--fault", run.fault]);
    }
    // The disk that is to fill up is made by the run, on this machine.
    if let (Some(place), true) = (bench.databases.place(), run.fault != "disk-full") {
        play.env(CONTAINERS_VARIABLE, place);
    }
    if let Some(container) = bench.databases.container(backend) {
        play.env(CONTAINER_VARIABLE, container);
    }
    // Writers that take turns within a server may never meet what a missing rule has broken.
    let off = (!mutant.is_empty()).then_some("off");
    if let Some(local_locks) = bench.plan.local_locks.or(off) {
        play.env(LOCAL_LOCKS_VARIABLE, local_locks);
    }
    play.env(BINARY_VARIABLE, &bench.binary)
        .env(MUTANTS_VARIABLE, mutant);
    bench.databases.tell(&mut play, &[backend]);
    if let Some(pair) = &pair {
        pair.tell(&mut play);
    }
    let output = play.stdin(Stdio::null()).output();
    if pair.is_none() {
        bench.databases.discard(&databases, &[backend]);
    }
    let output = output.context("cannot start the random clients")?;
    let is_played = output.status.code().is_some_and(|code| code < NOT_RUN);
    if mutant.is_empty() || !is_played {
        print!("{}", String::from_utf8_lossy(&output.stderr));
    }
    ensure!(is_played, "the random clients have ended with {}", output.status);
    serde_json::from_slice(&output.stdout).context("the random clients printed no result")
}

impl Run {
    pub(super) fn name(&self) -> String {
        let words = [self.backend, &self.seed.to_string(), self.mutant, self.fault];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        words.join(" ")
    }

    /// Something of its result; null if it has none.
    pub(super) fn result(&self, name: &str) -> &Value {
        self.result.as_ref().map_or(&Value::Null, |result| &result[name])
    }

    /// A number of its result; none is 0.
    pub(super) fn count(&self, name: &str) -> u64 {
        self.result(name).as_u64().unwrap_or_default()
    }

    /// Each rule that was broken, as often as it was.
    fn rules(&self) -> Vec<&str> {
        let rules = self.result("rules").as_array().into_iter().flatten();
        rules.filter_map(Value::as_str).collect()
    }

    pub(super) fn holds(&self) -> bool {
        self.found().is_empty()
    }

    /// Everything that is not as it should be, each once.
    pub(super) fn found(&self) -> BTreeSet<&str> {
        if self.result.is_none() {
            return BTreeSet::from([NOT_PLAYED]);
        }
        let audit = (!self.result("audit").is_null()).then_some(AUDIT);
        let failed = (*self.result("failed") != 0).then_some("5xx");
        let late = (*self.result("late") == true).then_some("late");
        let amiss = self.result("amiss").as_array().into_iter().flatten();
        self.rules()
            .into_iter()
            .chain(amiss.filter_map(Value::as_str))
            .chain(audit)
            .chain(failed)
            .chain(late)
            .collect()
    }

    fn line(&self) -> String {
        let counts = ["operations", "succeeded", "refused", "unknown", "entities"];
        let counts = counts.map(|name| format!("{:>11}", self.count(name)));
        let found: Vec<&str> = self.found().into_iter().collect();
        let line = format!(
            "{:<10}{:>10}{}{:>11}  {:<31}{}",
            self.backend,
            self.seed,
            counts.concat(),
            self.rules().len(),
            self.mutant,
            found.join(" ")
        );
        format!("{}\n", line.trim_end())
    }
}

fn table(runs: &[Run]) -> String {
    let heads = ["operations", "ok", "refused", "unknown", "entities", "violations"];
    let heads = heads.map(|head| format!("{head:>11}")).concat();
    let head = format!("\n{:<10}{:>10}{heads}\n", "backend", "seed");
    let place = |run: &&Run| BACKENDS.iter().position(|backend| *backend == run.backend);
    let mut runs: Vec<&Run> = runs.iter().collect();
    runs.sort_by_key(place);
    std::iter::once(head)
        .chain(runs.into_iter().map(Run::line))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_holds_only_if_checker_audit_and_answers_are_content() {
        let run = |rules: Value, audit: Value, failed: u64| Run {
            backend: "sqlite",
            mutant: "",
            fault: "",
            seed: 7,
            result: Some(json!({"operations": 12, "rules": rules, "audit": audit, "failed": failed})),
        };
        let good = run(json!([]), Value::Null, 0);
        assert!(good.holds());
        let bad = [
            run(json!(["H-LOST", "H-LOST"]), Value::Null, 0),
            run(json!([]), json!("INV-1"), 0),
            run(json!([]), Value::Null, 1),
        ];
        assert!(bad.iter().all(|run| !run.holds()));
        let not_played = Run {
            result: None,
            ..good.clone()
        };
        assert!(!not_played.holds());
        let runs: Vec<Run> = bad.into_iter().chain([good, not_played]).collect();
        let text = table(&runs);
        assert!(
            ["H-LOST", "audit", "5xx", NOT_PLAYED]
                .iter()
                .all(|found| text.contains(&format!("{found}\n"))),
            "{text}"
        );
        assert_eq!(text.lines().count(), 7);
    }
}

//! Two servers on one database, every race on every backend: `cargo xtask itest`.
//!
//! 1. The server is built with its sync points, into a target directory of its own, or the release would have them.
//! 2. Each database server that is asked for runs in a container, unless the environment names one
//!    (`TREELINE_TEST_<BACKEND>_URL`).
//! 3. The storage suite runs on all of them, then the rows of `docs/races.md`, and a table of those is printed.

mod cluster;
mod databases;
mod faults;
mod history;
mod mutants;
mod node;
mod pair;
mod races;
mod table;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};

use crate::command;
use crate::workspace::Workspace;
use databases::Databases;
pub(crate) use databases::image;
use races::Selection;

const USAGE: &str = "\
cargo xtask itest [--backend NAME]… [--without NAME]… [--race ID]… [--containers] [--local-locks on|off] [--keep] [--soak]
                   [--mutants] [--switch NAME] [--history] [--faults]
                   [--fault NAME]… [--seed N] [--seconds N]

  --backend NAME  only this one of sqlite, postgres, mariadb, mysql; or galera, a cluster of two MariaDB nodes with a
                  server at each, which takes part only where it is named
  --without NAME  all but this one; a backend that cannot run fails the command unless it is excluded so
  --race ID       only this row of docs/races.md, such as R-CREATE-1
  --containers    runs the servers in containers too, on the private network of the databases
  --keep          leaves the containers and databases for somebody to look at
  --soak          every kind in both orders, the whole sizes in one of them; histories on three servers that are killed in turn
  --mutants       shows that the rows can fail: runs them on servers with a rule switched off
  --switch NAME   only this switch, such as m-bump
  --local-locks on|off
                  whether writes of one name take turns within a server; if not given, as servers have it by default,
                  and off where a rule is switched off
  --history       plays random clients and judges what they saw, instead of the rows; also with --mutants
  --faults        the same while something goes wrong: servers die, stand still and lose their database, databases
                  die and stand still, a primary fails over to its standby or loses it, a disk is full, clocks are apart
  --fault NAME    only this one, such as database-killed
  --seed N        what they ask for; random where none is given
  --seconds N     how long they play on each backend";

/// Where the rows are unless something else is asked for, in the order of the table's columns.
const BACKENDS: [&str; 4] = ["sqlite", "postgres", "mariadb", "mysql"];

/// Two nodes of MariaDB that both accept writes, each server at its own; only if it is named.
pub(crate) const GALERA: &str = "galera";

/// Those that are servers themselves, with a network to them.
const SERVERS: &[&str] = &["postgres", "mariadb", "mysql"];

/// Pairs of servers that work at a time. Most of a row's time is one process waiting for another.
const PAIRS: usize = 4;

/// A database for each of them, and one for the row that begins on an empty one.
const DATABASES: usize = PAIRS + 1;

/// What the rows need to know of their servers. The suite reads the same names.
const BINARY_VARIABLE: &str = "TREELINE_TEST_BIN";
const DATABASES_VARIABLE: &str = "TREELINE_TEST_DATABASES";
const MUTANTS_VARIABLE: &str = "TREELINE_TEST_MUTANTS";
const ROWS_VARIABLE: &str = "TREELINE_TEST_ROWS";
const SOAK_VARIABLE: &str = "TREELINE_TEST_SOAK";
const ONE_KIND_VARIABLE: &str = "TREELINE_TEST_ONE_KIND";
pub(crate) const LOCAL_LOCKS_VARIABLE: &str = "TREELINE_TEST_LOCAL_LOCKS";
const REPORT_VARIABLE: &str = "TREELINE_TEST_REPORT";
const CONTAINERS_VARIABLE: &str = "TREELINE_TEST_CONTAINERS";

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) backends: Vec<&'static str>,
    rows: Vec<String>,
    containers: bool,
    keep: bool,
    soak: bool,
    mutants: bool,
    switch: Option<String>,
    local_locks: Option<&'static str>,
    history: bool,
    faults: bool,
    only_faults: Vec<String>,
    seed: Option<u64>,
    seconds: Option<u64>,
}

/// Runs what the arguments ask for, and fails if anything of it does.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let Some(plan) = Plan::read(arguments)? else {
        println!("{USAGE}");
        return Ok(());
    };
    let bench = Bench::start(workspace, &plan)?;
    if plan.faults {
        return faults::run(&bench);
    }
    if plan.history {
        return bench.run_history();
    }
    if plan.mutants {
        bench.run_mutants()
    } else {
        bench.run()
    }
}

impl Plan {
    /// The same with the servers in containers, unless nothing else needs Docker.
    pub(crate) fn in_containers(mut self) -> Plan {
        self.containers = self.backends.iter().any(|backend| *backend != "sqlite");
        self
    }

    /// `None` where help was asked for.
    pub(crate) fn read(arguments: &[String]) -> Result<Option<Plan>> {
        let mut plan = Plan::default();
        let (mut only, mut without) = (BTreeSet::new(), BTreeSet::new());
        let mut rest = arguments.iter().map(String::as_str);
        while let Some(argument) = rest.next() {
            let mut value = || {
                rest.next()
                    .with_context(|| format!("{argument} needs a value\n{USAGE}"))
            };
            match argument {
                "--backend" => only.extend([backend(value()?)?]),
                "--without" => without.extend([backend(value()?)?]),
                "--race" => plan.rows.push(value()?.to_uppercase()),
                "--switch" => plan.switch = Some(value()?.to_owned()),
                "--containers" => plan.containers = true,
                "--local-locks" => {
                    let given = value()?;
                    let known = ["on", "off"].into_iter().find(|known| *known == given);
                    plan.local_locks =
                        Some(known.with_context(|| format!("on or off, not {given}\n{USAGE}"))?);
                }
                "--history" => plan.history = true,
                "--faults" => plan.faults = true,
                "--fault" => plan.only_faults.push(value()?.to_owned()),
                "--seed" => plan.seed = Some(value()?.parse().context(USAGE)?),
                "--seconds" => plan.seconds = Some(value()?.parse().context(USAGE)?),
                "--keep" => plan.keep = true,
                "--soak" => plan.soak = true,
                "--mutants" => plan.mutants = true,
                "--help" | "-h" => return Ok(None),
                unknown => bail!("there is no option `{unknown}`\n{USAGE}"),
            }
        }
        if only.is_empty() {
            only.extend(BACKENDS);
        }
        plan.backends = known_backends()
            .filter(|name| only.contains(name) && !without.contains(name))
            .collect();
        plan.mutants |= plan.switch.is_some();
        plan.faults |= !plan.only_faults.is_empty();
        // Only a container can lose its network and nothing else.
        plan.containers |= plan.faults;
        ensure!(!plan.backends.is_empty(), "no backend is left to run on");
        Ok(Some(plan))
    }
}

/// Every backend that can be named.
fn known_backends() -> impl Iterator<Item = &'static str> {
    BACKENDS.into_iter().chain([GALERA])
}

fn backend(name: &str) -> Result<&'static str> {
    known_backends().find(|known| *known == name).with_context(|| {
        let known: Vec<&str> = known_backends().collect();
        format!("there is no backend `{name}`; there are {}", known.join(", "))
    })
}

/// The server with its sync points: the one that the environment names, or a fresh build.
fn binary(workspace: &Workspace) -> Result<PathBuf> {
    if let Some(binary) = std::env::var_os(BINARY_VARIABLE) {
        return Ok(std::path::absolute(binary)?);
    }
    println!("== the server with its sync points");
    let target = workspace.target.join("test-hooks");
    let mut build = command::cargo(&workspace.root);
    build.args(["build", "--quiet", "--locked", "-p", "treeline-server"]);
    build
        .args(["--features", "test-hooks", "--target-dir"])
        .arg(&target);
    // It takes most of a run's time unless it is optimised.
    build.args(["--config", "profile.dev.package.libsqlite3-sys.opt-level=3"]);
    command::run(&mut build)?;
    Ok(target
        .join("debug")
        .join(format!("treeline{}", std::env::consts::EXE_SUFFIX)))
}

/// Everything that a run needs.
pub(crate) struct Bench<'a> {
    workspace: &'a Workspace,
    plan: &'a Plan,
    binary: PathBuf,
    databases: Databases,
}

impl<'a> Bench<'a> {
    /// Builds the server and starts the databases.
    pub(crate) fn start(workspace: &'a Workspace, plan: &'a Plan) -> Result<Bench<'a>> {
        Ok(Bench {
            binary: binary(workspace)?,
            databases: Databases::start(workspace, plan)?,
            workspace,
            plan,
        })
    }

    /// The storage suite and the rows, unless only some rows are asked for.
    pub(crate) fn run(&self) -> Result<()> {
        if self.plan.rows.is_empty() {
            println!("\n== the storage suite");
            self.conformance()?;
        }
        self.run_selected(&Selection::of(self.plan))
    }

    /// The rows where writes of one name take turns within a server (`on`), or do not (`off`).
    pub(crate) fn run_races(&self, local_locks: &'static str) -> Result<()> {
        self.run_selected(&Selection {
            local_locks: Some(local_locks),
            // How turns are taken is the same for all.
            one_kind: local_locks == "on",
            ..Selection::of(self.plan)
        })
    }

    fn run_selected(&self, selection: &Selection) -> Result<()> {
        let turns = selection.local_locks.unwrap_or("as by default");
        println!("\n== the races, local locks: {turns}");
        let (table, outcome) = self.races("all", selection)?;
        print!("\n{table}");
        outcome
    }

    /// Random clients, and what they saw.
    pub(crate) fn run_history(&self) -> Result<()> {
        history::run(self)
    }

    /// Every rule switched off in turn: the rows must fail.
    pub(crate) fn run_mutants(&self) -> Result<()> {
        mutants::run(self)
    }

    /// The storage suite makes its own databases.
    pub(crate) fn conformance(&self) -> Result<()> {
        let mut suite = command::suite(&self.workspace.root, "treeline-storage", "conformance");
        self.databases.tell(&mut suite, &self.plan.backends);
        suite.args(["--", "--quiet"]);
        if !self.plan.backends.contains(&"sqlite") {
            suite.args(["--skip", "sqlite::"]);
        }
        command::run(&mut suite)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Result<Option<Plan>> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Plan::read(&words)
    }

    #[test]
    fn the_usual_backends_take_part_unless_some_are_named() {
        let backends = |line: &str| plan(line).unwrap().unwrap().backends;
        assert_eq!(backends(""), BACKENDS);
        assert_eq!(backends("--backend mysql --backend sqlite"), ["sqlite", "mysql"]);
        assert_eq!(backends("--without mysql"), ["sqlite", "postgres", "mariadb"]);
        assert_eq!(backends("--backend galera --backend mysql"), ["mysql", "galera"]);
        assert!(plan("--backend oracle").is_err());
        assert!(plan("--backend mysql --without mysql").is_err());
    }

    #[test]
    fn options_are_read_and_unknown_ones_refused() {
        let soak = plan("--soak --race r-create-1 --keep").unwrap().unwrap();
        assert!(soak.soak && soak.keep && !soak.mutants);
        assert_eq!(soak.rows, ["R-CREATE-1"]);
        let switch = plan("--switch m-bump").unwrap().unwrap();
        assert!(switch.mutants && switch.local_locks.is_none());
        let locks = plan("--local-locks off").unwrap().unwrap();
        assert_eq!(
            (locks.local_locks, plan("").unwrap().unwrap().local_locks),
            (Some("off"), None)
        );
        assert!(plan("--local-locks perhaps").is_err());
        assert_eq!(plan("--help").unwrap(), None);
        let history = plan("--history --seed 7 --seconds 5").unwrap().unwrap();
        assert!(history.history && history.seed == Some(7) && history.seconds == Some(5));
        assert!(plan("--seed x").is_err());
        assert!(plan("--sok").is_err() && plan("--race").is_err());
    }
}

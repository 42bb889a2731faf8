//! The fastest correct form of the same work without the server: the same tables, the same durability, the feed row
//! included.
//!
//! SQLite through its driver, in the example `raw` of the storage crate. PostgreSQL by `pgbench` with prepared
//! statements; where it is not installed, the same scripts through the driver, in the same example.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::database::Database;
use super::load::{build, number};
use super::options::{Backend, Options};
use super::{ROWS, Task, Work};
use crate::command;
use crate::workspace::Workspace;

const SCRIPTS: &str = "tests/bench/postgres";

/// What a created row keeps, the same text that the load generator sends.
const PAYLOAD: &str = "tests/bench/model.json";

/// Who runs the raw form, and on which database.
pub(super) struct Raw {
    runner: Runner,
    database: String,
    scripts: PathBuf,
    payload: String,
}

enum Runner {
    Pgbench,
    /// The example, which has the statements of SQLite in it and runs scripts on PostgreSQL.
    Example(PathBuf, Backend),
}

impl Raw {
    pub(super) fn prepare(workspace: &Workspace, options: &Options, database: &Database) -> Result<Raw> {
        let payload = std::fs::read_to_string(workspace.root.join(PAYLOAD))?;
        let has_pgbench = || command::succeeds(Command::new("pgbench").arg("--version"));
        let runner = if options.backend == Backend::Postgres && has_pgbench() {
            Runner::Pgbench
        } else {
            let built = build(workspace, &["-p", "treeline-storage", "--example", "raw"])?;
            let example = built.join(format!("examples/raw{}", std::env::consts::EXE_SUFFIX));
            Runner::Example(example, options.backend)
        };
        Ok(Raw {
            runner,
            database: database.url().to_owned(),
            scripts: workspace.root.join(SCRIPTS),
            payload: payload.trim_end().to_owned(),
        })
    }

    /// Shows what is run, so that a reader can judge whether it is the same work.
    pub(super) fn print(&self, works: &[(Work, usize)]) -> Result<()> {
        match &self.runner {
            Runner::Pgbench => println!("The raw form, by pgbench --protocol=prepared:"),
            Runner::Example(..) => println!("The raw form, by the driver, prepared once:"),
        }
        let mut last = None;
        for (work, _) in works {
            if last.replace(*work) == Some(*work) {
                continue;
            }
            let text = match &self.runner {
                Runner::Example(example, Backend::Sqlite) => {
                    command::output(Command::new(example).args(["show", work.word()]))?
                }
                Runner::Example(..) | Runner::Pgbench => std::fs::read_to_string(self.script(*work))?,
            };
            println!("\n{}\n{}", work.title(), indented(&text));
        }
        Ok(())
    }

    /// Transactions a second.
    pub(super) fn rate(&self, task: &Task) -> Result<f64> {
        match &self.runner {
            Runner::Pgbench => transactions(&command::output(&mut self.pgbench(task)?)?),
            Runner::Example(example, _) => number(&command::output(&mut self.example(example, task))?),
        }
    }

    fn script(&self, work: Work) -> PathBuf {
        self.scripts.join(format!("{}.sql", work.word()))
    }

    fn pgbench(&self, task: &Task) -> Result<Command> {
        let threads = task.clients.min(std::thread::available_parallelism()?.get());
        let mut pgbench = Command::new("pgbench");
        pgbench
            .args(["--no-vacuum", "--protocol=prepared"])
            .args(["--client", &task.clients.to_string()])
            .args(["--jobs", &threads.to_string()])
            // A second more, in which connections are opened, which the rate leaves out.
            .args(["--time", &(task.seconds + 1).to_string()])
            .arg("--file")
            .arg(self.script(task.work));
        let variables = [
            ("metalake", task.metalake.as_str()),
            ("tag", &format!("raw-{}", task.tag)),
            ("payload", &self.payload),
            ("clients", &task.clients.to_string()),
            ("rows", &ROWS.to_string()),
            ("counter", "0"),
        ];
        for (name, value) in variables {
            pgbench.arg(format!("--define={name}={value}"));
        }
        pgbench.arg(&self.database);
        Ok(pgbench)
    }

    fn example(&self, example: &Path, task: &Task) -> Command {
        let mut command = Command::new(example);
        command
            .args([task.work.word(), "--database", &self.database])
            .args([
                "--metalake",
                &task.metalake,
                "--tag",
                &format!("raw-{}", task.tag),
            ])
            .args(["--clients", &task.clients.to_string()])
            .args(["--seconds", &task.seconds.to_string()])
            .args(["--rows", &ROWS.to_string(), "--payload", &self.payload])
            .arg("--script")
            .arg(self.script(task.work));
        command
    }
}

/// The rate in a report of `pgbench`, in which every transaction must have succeeded.
fn transactions(report: &str) -> Result<f64> {
    let failed = value(report, "number of failed transactions:").unwrap_or("0");
    ensure!(failed == "0", "{failed} transactions failed:\n{report}");
    let rate = value(report, "tps =").with_context(|| format!("pgbench names no rate:\n{report}"))?;
    number(rate).with_context(|| format!("no transaction was in time:\n{report}"))
}

/// The word behind the beginning of a line.
fn value<'a>(report: &'a str, beginning: &str) -> Option<&'a str> {
    let rest = report.lines().find_map(|line| line.strip_prefix(beginning))?;
    rest.split_whitespace().next()
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "transaction type: read.sql\nnumber of clients: 8\n\
        number of failed transactions: 0 (0.000%)\nlatency average = 0.5 ms\n\
        initial connection time = 20.1 ms\ntps = 17123.456789 (without initial connection time)\n";

    #[test]
    fn the_rate_of_pgbench_is_read_from_its_report() {
        assert!((transactions(REPORT).unwrap() - 17_123.456_789).abs() < 1e-6);
    }

    #[test]
    fn a_report_with_a_failure_or_without_a_rate_is_refused() {
        assert!(transactions(&REPORT.replace(": 0 (", ": 3 (")).is_err());
        assert!(transactions(&REPORT.replace("17123.456789", "NaN")).is_err());
        assert!(transactions("pgbench: error: connection refused").is_err());
    }

    /// The yardstick for reads is the statement that the store runs, but for its parameters: the kinds are written
    /// out and the others have names. If the store's statement changes, the script must follow.
    #[test]
    fn the_script_that_reads_runs_the_statement_of_the_store() {
        let root = crate::workspace::root();
        let snapshot = root
            .join("crates/storage/src/sql/snapshots/treeline_storage__sql__tests__statements_sqlite.snap");
        let statements = std::fs::read_to_string(snapshot).unwrap();
        let mut lines = statements.lines().skip_while(|line| *line != "resolve_4");
        let (_, of_the_store) = lines.nth(1).unwrap().trim().split_once(' ').unwrap();
        for script in ["read.sql", "update.sql"] {
            let script = std::fs::read_to_string(root.join(SCRIPTS).join(script)).unwrap();
            let start = script.find("e1.id, ").unwrap();
            let end = start + script[start..].find([';', '\\']).unwrap();
            let mut text = script[start..end]
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            for parameter in [
                "'catalog'",
                "'models'",
                "'schema'",
                "'s'",
                "'model'",
                "'m' || :row",
                ":metalake",
            ] {
                text = text.replace(parameter, "?");
            }
            assert_eq!(text, of_the_store);
        }
    }
}

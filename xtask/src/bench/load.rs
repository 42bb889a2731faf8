//! The servers under load, and the load generator.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::database::Database;
use super::options::Options;
use super::{HOT_WRITERS, ROWS, Task};
use crate::command;
use crate::server::Server;
use crate::workspace::Workspace;

/// Servers that writers of one row contend on; measurements use the first or both.
const CONTENDED: usize = 2;

/// Servers on one database, and the program that asks them. Dropping it ends the servers.
pub(super) struct Load {
    generator: PathBuf,
    servers: Vec<Server>,
}

impl Load {
    pub(super) fn start(
        workspace: &Workspace,
        options: &Options,
        binary: &Path,
        directory: &Path,
        database: &Database,
        more: &[&str],
    ) -> Result<Load> {
        let generator = build(workspace, &["-p", "treeline-tests", "--bin", "treeline-load"])?;
        let mut servers = Vec::new();
        let count = if options.contention {
            CONTENDED
        } else {
            options.servers
        };
        for number in 1..=count {
            let own = directory.join(format!("server-{number}"));
            std::fs::create_dir_all(&own)?;
            let mut arguments = vec![OsStr::new("--database"), OsStr::new(database.url())];
            arguments.extend(more.iter().map(OsStr::new));
            servers.push(Server::start(binary, &own, &arguments)?);
        }
        Ok(Load {
            generator: generator.join(format!("treeline-load{}", std::env::consts::EXE_SUFFIX)),
            servers,
        })
    }

    /// Makes the tree that everything is measured on.
    pub(super) fn plant(&self, metalake: &str) -> Result<()> {
        let mut plant = self.generator("plant", metalake, HOT_WRITERS, 1);
        command::output(&mut plant).map(drop)
    }

    /// Requests a second, with the task's work.
    pub(super) fn rate(&self, task: &Task) -> Result<f64> {
        self.measure(task.work.word(), task)
    }

    /// Requests a second to `/health`, which does nothing, with as many clients.
    pub(super) fn health(&self, task: &Task) -> Result<f64> {
        self.measure("health", task)
    }

    /// The same on so many of the servers, with the milliseconds within which 99 of 100 were answered.
    pub(super) fn rate_and_p99(&self, task: &Task, servers: usize) -> Result<(f64, f64)> {
        let printed = self.run(task.work.word(), task, servers)?;
        let (rate, p99) = printed.trim().split_once(' ').context("two numbers")?;
        Ok((number(rate)?, number(p99)?))
    }

    /// A counter of so many of the servers so far, over all lines that have these labels.
    pub(super) fn counter(&self, name: &str, labels: &str, servers: usize) -> Result<f64> {
        let mut sum = 0.0;
        for server in &self.servers[..servers] {
            sum += counted(&server.ask("/metrics")?, name, labels);
        }
        Ok(sum)
    }

    fn measure(&self, work: &str, task: &Task) -> Result<f64> {
        let printed = self.run(work, task, self.servers.len())?;
        number(printed.split_whitespace().next().unwrap_or_default())
    }

    fn run(&self, work: &str, task: &Task, servers: usize) -> Result<String> {
        let mut generator = self.generator(work, &task.metalake, task.clients, servers);
        generator.args(["--seconds", &task.seconds.to_string(), "--tag", &task.tag]);
        command::output(&mut generator)
    }

    fn generator(&self, work: &str, metalake: &str, clients: usize, servers: usize) -> Command {
        let urls: Vec<String> = self.servers[..servers].iter().map(Server::url).collect();
        let mut generator = Command::new(&self.generator);
        generator
            .args([work, "--servers", &urls.join(",").replace("http://", "")])
            .args(["--metalake", metalake, "--clients", &clients.to_string()])
            .args(["--rows", &ROWS.to_string()]);
        generator
    }
}

/// Builds something in release mode and answers the directory of what was built.
pub(super) fn build(workspace: &Workspace, what: &[&str]) -> Result<PathBuf> {
    let mut cargo = command::cargo(&workspace.root);
    cargo
        .args(["build", "--quiet", "--release", "--locked"])
        .args(what);
    command::run(&mut cargo)?;
    Ok(workspace.target.join("release"))
}

/// The sum of a counter's lines that have these labels.
fn counted(metrics: &str, name: &str, labels: &str) -> f64 {
    let lines = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let (found, value) = rest.rsplit_once(' ')?;
        ((found.is_empty() || found.starts_with('{')) && found.contains(labels)).then_some(value)
    });
    let values = lines.filter_map(|value| value.parse::<f64>().ok());
    // The sum of nothing would be a zero with a sign.
    values.fold(0.0, |sum, value| sum + value)
}

/// The rate that a program printed. None at all is no rate: nothing could be divided by it.
pub(super) fn number(printed: &str) -> Result<f64> {
    let text = printed.trim();
    let rate: f64 = text
        .parse()
        .with_context(|| format!("`{text}` should be a number"))?;
    ensure!(rate.is_finite() && rate > 0.0, "`{text}` is no rate");
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_added_up_over_its_own_lines() {
        let metrics = "# TYPE a_total counter\na_total{x=\"1\",y=\"2\"} 3\na_total{x=\"2\"} 4\nb_total 5\na_total_more 6\n";
        let sum = |name, labels| format!("{:.0}", counted(metrics, name, labels));
        assert_eq!(sum("a_total", ""), "7");
        assert_eq!(sum("a_total", "x=\"1\""), "3");
        assert_eq!(
            (sum("b_total", ""), sum("c_total", "")),
            ("5".to_owned(), "0".to_owned())
        );
    }
}

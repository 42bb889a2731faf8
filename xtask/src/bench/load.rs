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
    ) -> Result<Load> {
        let generator = build(workspace, &["-p", "treeline-tests", "--bin", "treeline-load"])?;
        let mut servers = Vec::new();
        for number in 1..=options.servers {
            let own = directory.join(format!("server-{number}"));
            std::fs::create_dir_all(&own)?;
            let on_database = [OsStr::new("--database"), OsStr::new(database.url())];
            servers.push(Server::start(binary, &own, &on_database)?);
        }
        Ok(Load {
            generator: generator.join(format!("treeline-load{}", std::env::consts::EXE_SUFFIX)),
            servers,
        })
    }

    /// Makes the tree that everything is measured on.
    pub(super) fn plant(&self, metalake: &str) -> Result<()> {
        let mut plant = self.generator("plant", metalake, HOT_WRITERS);
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

    fn measure(&self, work: &str, task: &Task) -> Result<f64> {
        let mut generator = self.generator(work, &task.metalake, task.clients);
        generator.args(["--seconds", &task.seconds.to_string(), "--tag", &task.tag]);
        number(&command::output(&mut generator)?)
    }

    fn generator(&self, work: &str, metalake: &str, clients: usize) -> Command {
        let urls: Vec<String> = self.servers.iter().map(Server::url).collect();
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

/// The rate that a program printed. None at all is no rate: nothing could be divided by it.
pub(super) fn number(printed: &str) -> Result<f64> {
    let text = printed.trim();
    let rate: f64 = text
        .parse()
        .with_context(|| format!("`{text}` should be a number"))?;
    ensure!(rate.is_finite() && rate > 0.0, "`{text}` is no rate");
    Ok(rate)
}

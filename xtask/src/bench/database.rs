//! The database that is measured: a file, a container of its own, or one that was named.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::options::{Backend, Options};
use crate::command;
use crate::containers::{Container, USUAL_NETWORK};
use crate::images;
use crate::workspace::Workspace;

const READY_WITHIN: Duration = Duration::from_secs(60);

/// A database, ready to be connected to. Dropping it ends what was started for it.
pub(super) struct Database {
    url: String,
    _container: Option<Container>,
}

impl Database {
    pub(super) fn provide(workspace: &Workspace, options: &Options, directory: &Path) -> Result<Database> {
        if let Some(url) = &options.url {
            return Ok(Database {
                url: url.clone(),
                _container: None,
            });
        }
        match options.backend {
            Backend::Sqlite => Ok(Database {
                url: format!("sqlite:{}", directory.join("bench.db").display()),
                _container: None,
            }),
            Backend::Postgres | Backend::MariaDb | Backend::MySql => {
                let container = run(workspace, options.backend)?;
                Ok(Database {
                    url: container.url(options.backend.name(), USUAL_NETWORK)?,
                    _container: Some(container),
                })
            }
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Has the server's own audit look at what servers and raw forms have left.
    pub(super) fn check(&self, binary: &Path) -> Result<()> {
        let mut check = Command::new(binary);
        check.env_clear().args(["check", "--database", &self.url]);
        command::run(&mut check)
            .context("the benchmark left a database that is not sound, so its figures mean nothing")
    }
}

/// A container of a database server with the durability that it has by default, ready to be connected to.
fn run(workspace: &Workspace, backend: Backend) -> Result<Container> {
    let name = backend.name();
    let images = images::ensure(workspace, &[name])?;
    let image = images.get(name).context("no image")?;
    let arguments: &[&str] = if backend == Backend::MySql {
        &["--mysqlx=OFF"]
    } else {
        &[]
    };
    let options = ["--rm", "--label", "treeline=bench"];
    let container = Container::of_database(name, image, &options, arguments)?;
    wait_until_ready(&container, backend)?;
    Ok(container)
}

fn wait_until_ready(container: &Container, backend: Backend) -> Result<()> {
    let begun = Instant::now();
    let login = [
        "--protocol=tcp",
        "--user=treeline",
        "--password=treeline",
        "--execute=COMMIT",
        "treeline",
    ];
    let mut is_ready = vec!["exec", container.id.as_str()];
    match backend {
        Backend::MariaDb => is_ready.push("mariadb"),
        Backend::MySql => is_ready.push("mysql"),
        Backend::Postgres | Backend::Sqlite => is_ready.extend(["pg_isready", "--host=127.0.0.1"]),
    }
    if matches!(backend, Backend::MariaDb | Backend::MySql) {
        is_ready.extend(login);
    }
    while !command::succeeds(Command::new("docker").args(&is_ready)) {
        ensure!(
            begun.elapsed() < READY_WITHIN,
            "{backend} was not ready within {READY_WITHIN:?}: see `docker logs {}`",
            container.id
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

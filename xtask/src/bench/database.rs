//! The database that is measured: a file, a container of its own, or one that was named.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::options::{Backend, Options};
use crate::command;

const READY_WITHIN: Duration = Duration::from_secs(60);

/// A database, ready to be connected to. Dropping it ends what was started for it.
pub(super) struct Database {
    url: String,
    _container: Option<Container>,
}

impl Database {
    pub(super) fn provide(options: &Options, directory: &Path) -> Result<Database> {
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
                let container = Container::run(options.backend)?;
                let address = container.address()?;
                let scheme = options.backend.name();
                Ok(Database {
                    url: format!("{scheme}://treeline:treeline@{address}/treeline"),
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

/// A container of a database server with the durability that it has by default.
struct Container {
    id: String,
    backend: Backend,
}

impl Container {
    fn run(backend: Backend) -> Result<Container> {
        let image = image(backend)?;
        let mut run = Command::new("docker");
        run.args(["run", "--detach", "--rm", "--label", "treeline=bench"]);
        // The published image makes the database when it starts; ours has it.
        let (variables, arguments): (&[&str], &[&str]) = match backend {
            Backend::MariaDb => (
                &[
                    "MARIADB_USER",
                    "MARIADB_PASSWORD",
                    "MARIADB_DATABASE",
                    "MARIADB_ROOT_PASSWORD",
                ],
                &[],
            ),
            Backend::MySql => (
                &[
                    "MYSQL_USER",
                    "MYSQL_PASSWORD",
                    "MYSQL_DATABASE",
                    "MYSQL_ROOT_PASSWORD",
                ],
                &["--mysqlx=OFF"],
            ),
            Backend::Postgres | Backend::Sqlite => {
                (&["POSTGRES_USER", "POSTGRES_PASSWORD", "POSTGRES_DB"], &[])
            }
        };
        for name in variables {
            run.args(["--env", &format!("{name}=treeline")]);
        }
        let id = command::output(run.arg(image).args(arguments))?.trim().to_owned();
        let container = Container { id, backend };
        container.wait_until_ready()?;
        Ok(container)
    }

    fn wait_until_ready(&self) -> Result<()> {
        let begun = Instant::now();
        let login = [
            "--protocol=tcp",
            "--user=treeline",
            "--password=treeline",
            "--execute=COMMIT",
            "treeline",
        ];
        let mut is_ready = vec!["exec", &self.id];
        match self.backend {
            Backend::MariaDb => is_ready.push("mariadb"),
            Backend::MySql => is_ready.push("mysql"),
            Backend::Postgres | Backend::Sqlite => is_ready.extend(["pg_isready", "--host=127.0.0.1"]),
        }
        if matches!(self.backend, Backend::MariaDb | Backend::MySql) {
            is_ready.extend(login);
        }
        while !command::succeeds(Command::new("docker").args(&is_ready)) {
            ensure!(
                begun.elapsed() < READY_WITHIN,
                "{} was not ready within {READY_WITHIN:?}: see `docker logs {}`",
                self.backend,
                self.id
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn address(&self) -> Result<String> {
        const FORMAT: &str = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
        let address =
            command::output(Command::new("docker").args(["inspect", "--format", FORMAT, &self.id]))?;
        let port = if self.backend == Backend::Postgres {
            5432
        } else {
            3306
        };
        Ok(format!("{}:{port}", address.trim()))
    }
}

/// The tag of the image, made where it is missing. The command for it prints the name of each image before its tag.
fn image(backend: Backend) -> Result<String> {
    let name = backend.name();
    let xtask = std::env::current_exe().context("this program does not know where it is")?;
    let printed = command::output(Command::new(xtask).args(["images", name]))?;
    let mut lines = printed.lines().map(str::split_whitespace);
    lines
        .find_map(|mut words| (words.next() == Some(name)).then(|| words.next()).flatten())
        .map(str::to_owned)
        .with_context(|| format!("there is no image of {backend}:\n{printed}"))
}

impl Drop for Container {
    fn drop(&mut self) {
        // Whether it still runs or not, there is nothing else to do about it.
        let _ = command::output(Command::new("docker").args(["rm", "--force", "--volumes", &self.id]));
    }
}

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
            Backend::Postgres => {
                let container = Container::postgres()?;
                let address = container.address()?;
                Ok(Database {
                    url: format!("postgres://treeline:treeline@{address}/treeline"),
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

/// A container of PostgreSQL with the durability that it has by default.
struct Container {
    id: String,
}

impl Container {
    fn postgres() -> Result<Container> {
        let image = image()?;
        let mut run = Command::new("docker");
        run.args(["run", "--detach", "--rm", "--label", "treeline=bench"]);
        // The published image makes the database when it starts; ours has it.
        for name in ["POSTGRES_USER", "POSTGRES_PASSWORD", "POSTGRES_DB"] {
            run.args(["--env", &format!("{name}=treeline")]);
        }
        let id = command::output(run.arg(image))?.trim().to_owned();
        let container = Container { id };
        container.wait_until_ready()?;
        Ok(container)
    }

    fn wait_until_ready(&self) -> Result<()> {
        let begun = Instant::now();
        let is_ready = ["exec", &self.id, "pg_isready", "--host=127.0.0.1"];
        while !command::succeeds(Command::new("docker").args(is_ready)) {
            ensure!(
                begun.elapsed() < READY_WITHIN,
                "PostgreSQL was not ready within {READY_WITHIN:?}: see `docker logs {}`",
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
        Ok(format!("{}:5432", address.trim()))
    }
}

/// The tag of the image, made where it is missing. The command for it prints the name of each image before its tag.
fn image() -> Result<String> {
    let xtask = std::env::current_exe().context("this program does not know where it is")?;
    let printed = command::output(Command::new(xtask).args(["images", "postgres"]))?;
    let mut lines = printed.lines().map(str::split_whitespace);
    lines
        .find_map(|mut words| (words.next() == Some("postgres")).then(|| words.next()).flatten())
        .map(str::to_owned)
        .with_context(|| format!("there is no image of PostgreSQL:\n{printed}"))
}

impl Drop for Container {
    fn drop(&mut self) {
        // Whether it still runs or not, there is nothing else to do about it.
        let _ = command::output(Command::new("docker").args(["rm", "--force", "--volumes", &self.id]));
    }
}

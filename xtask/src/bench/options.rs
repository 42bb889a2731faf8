//! What the benchmark is told.

use std::fmt;

use anyhow::{Context as _, Result, bail, ensure};

use super::ROWS;

pub(super) const USAGE: &str = "cargo xtask bench [--backend sqlite|postgres] [--seconds N] [--clients 1,8,32] \
                                [--servers 1|2] [--url URL]\n       \
                                cargo xtask bench --contention [--backend sqlite|postgres|mariadb|mysql] [--seconds N] [--url URL]";

/// The database under the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backend {
    Sqlite,
    Postgres,
    MariaDb,
    MySql,
}

impl Backend {
    /// Its name on the command line, and that of its image.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Backend::Sqlite => "sqlite",
            Backend::Postgres => "postgres",
            Backend::MariaDb => "mariadb",
            Backend::MySql => "mysql",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Sqlite => "SQLite, synchronous=FULL",
            Backend::Postgres => "PostgreSQL",
            Backend::MariaDb => "MariaDB",
            Backend::MySql => "MySQL",
        })
    }
}

/// The whole command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) backend: Backend,
    /// Writers of one row, with local locks and without, instead of the whole table.
    pub(super) contention: bool,
    /// The length of one measurement.
    pub(super) seconds: u64,
    pub(super) clients: Vec<usize>,
    pub(super) servers: usize,
    /// A database that is there; none: one is made.
    pub(super) url: Option<String>,
}

impl Options {
    pub(super) fn parse(arguments: &[String]) -> Result<Options> {
        let mut options = Options {
            backend: Backend::Sqlite,
            contention: false,
            seconds: 5,
            clients: vec![1, 8, 32],
            servers: 1,
            url: None,
        };
        let mut words = arguments.iter();
        while let Some(option) = words.next() {
            if option == "--contention" {
                options.contention = true;
                continue;
            }
            let value = words.next().context(USAGE)?;
            match (option.as_str(), value.as_str()) {
                ("--backend", "sqlite") => options.backend = Backend::Sqlite,
                ("--backend", "postgres") => options.backend = Backend::Postgres,
                ("--backend", "mariadb") => options.backend = Backend::MariaDb,
                ("--backend", "mysql") => options.backend = Backend::MySql,
                ("--seconds", value) => options.seconds = value.parse().context(USAGE)?,
                ("--clients", value) => {
                    let counts = value.split(',').map(str::parse);
                    options.clients = counts.collect::<Result<_, _>>().context(USAGE)?;
                }
                ("--servers", value) => options.servers = value.parse().context(USAGE)?,
                ("--url", value) => options.url = Some(value.to_owned()),
                _ => bail!(USAGE),
            }
        }
        options.check()?;
        Ok(options)
    }

    fn check(&self) -> Result<()> {
        let clients_fit = self.clients.iter().all(|clients| (1..=ROWS).contains(clients));
        ensure!(clients_fit, "there can be 1 to {ROWS} clients: {USAGE}");
        ensure!(self.seconds > 0, "a measurement takes a second at least: {USAGE}");
        ensure!(
            (1..=2).contains(&self.servers),
            "there can be 1 or 2 servers: {USAGE}"
        );
        ensure!(
            self.contention || matches!(self.backend, Backend::Sqlite | Backend::Postgres),
            "{} has no raw form to compare with, only --contention: {USAGE}",
            self.backend
        );
        if let Some(url) = &self.url {
            let wanted: &[&str] = match self.backend {
                Backend::Sqlite => &["sqlite:"],
                Backend::Postgres => &["postgres:", "postgresql:"],
                Backend::MariaDb => &["mariadb:"],
                Backend::MySql => &["mysql:"],
            };
            ensure!(
                wanted.iter().any(|scheme| url.starts_with(scheme)),
                "--url must begin with `{}`, as --backend has it",
                wanted[0]
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn every_option_is_understood() {
        let line = "--backend postgres --seconds 2 --clients 1,64 --servers 2 --url postgres://h/d";
        let wanted = Options {
            backend: Backend::Postgres,
            contention: false,
            seconds: 2,
            clients: vec![1, 64],
            servers: 2,
            url: Some("postgres://h/d".to_owned()),
        };
        assert_eq!(parsed(line).unwrap(), wanted);
        assert_eq!(parsed("").unwrap().clients, [1, 8, 32]);
        let contention = parsed("--contention --backend mysql").unwrap();
        assert!(contention.contention && contention.backend == Backend::MySql);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "--backend oracle",
            "--backend mysql",
            "--contention --backend mysql --url mariadb://h/d",
            "--seconds",
            "--seconds 0",
            "--clients 0",
            "--clients 1,x",
            "--clients 5000",
            "--servers 3",
            "--url postgres://h/d",
            "--backend postgres --url sqlite:f",
            "--fast yes",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}

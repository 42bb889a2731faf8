//! The database servers of a run, in containers of its own or wherever the environment says, and databases on them.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::Plan;
use super::pair::Pair;
use crate::command;
use crate::containers::{ACCOUNT, Container, LABEL, Network};
use crate::images;
use crate::workspace::Workspace;

/// A database that takes longer to be ready is broken. Far more than any needs, for a machine that is busy.
pub(super) const READY_WITHIN: Duration = Duration::from_secs(120);

/// What every database does gladly, once it answers at all.
const PING: &str = "COMMIT";

/// Databases that somebody has made already, separated by commas, on every server that the environment names.
const DATABASES_VARIABLE: &str = super::DATABASES_VARIABLE;

/// The machine of the poolers before PostgreSQL. The storage suite reads the same name.
const POOLER_VARIABLE: &str = "TREELINE_TEST_PGBOUNCER";

/// All database servers of one run.
#[derive(Debug)]
pub(super) struct Databases {
    servers: BTreeMap<&'static str, Server>,
    /// What servers run in that are containers too.
    image: Option<String>,
    /// After the servers, since it goes when nobody is in it.
    network: Option<Network>,
    keep: bool,
}

#[derive(Debug)]
struct Server {
    backend: &'static str,
    url: Url,
    image: String,
    container: Option<Container>,
}

/// The parts of a database's URL.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Url {
    scheme: String,
    user: String,
    password: String,
    host: String,
    port: String,
    database: String,
}

impl Databases {
    /// Starts what the environment does not name.
    pub(super) fn start(workspace: &Workspace, plan: &Plan) -> Result<Databases> {
        let (backends, keep) = (&plan.backends, plan.keep);
        let wanted: Vec<&'static str> = backends
            .iter()
            .copied()
            .filter(|name| *name != "sqlite")
            .collect();
        let mut databases = Databases {
            servers: BTreeMap::new(),
            image: None,
            network: None,
            keep,
        };
        if wanted.is_empty() && !plan.containers {
            return Ok(databases);
        }
        let base = if plan.containers { Some(images::BASE) } else { None };
        let all: Vec<&str> = wanted.iter().copied().chain(base).collect();
        let images = images::ensure(workspace, &all)
            .context("exclude what cannot run with --without, or name servers in the environment")?;
        if let Some(base) = base {
            databases.image = images.get(base).cloned();
            databases.network = Some(Network::make(keep)?);
        }
        let network = databases.network.as_ref();
        for backend in wanted.iter().copied() {
            let image = images.get(backend).context("no image")?.clone();
            let server = match std::env::var(variable(backend)) {
                Ok(url) if !url.is_empty() => Server {
                    backend,
                    url: Url::parse(&url)?,
                    image,
                    container: None,
                },
                _ => Server::run(backend, image, network, plan)?,
            };
            databases.servers.insert(backend, server);
        }
        for server in databases.servers.values() {
            server.wait_until_ready()?;
            let place = if server.container.is_some() {
                "in a container"
            } else {
                "from the environment"
            };
            println!(
                "{:<10}{}:{}, {place}",
                server.backend, server.url.host, server.url.port
            );
        }
        Ok(databases)
    }

    /// Tells a suite where the servers are, and of no other.
    pub(super) fn tell(&self, suite: &mut Command, backends: &[&'static str]) {
        for backend in super::BACKENDS {
            match self.servers.get(backend) {
                Some(server) if backends.contains(&backend) => {
                    suite.env(variable(backend), server.url.text())
                }
                _ => suite.env_remove(variable(backend)),
            };
        }
        match self.servers.get("postgres") {
            Some(server) if server.has_pooler() => suite.env(POOLER_VARIABLE, &server.url.host),
            _ => suite.env_remove(POOLER_VARIABLE),
        };
    }

    /// The container of a database server, if it has one here.
    pub(super) fn container(&self, backend: &str) -> Option<&str> {
        let container = self.servers.get(backend)?.container.as_ref()?;
        Some(&container.id)
    }

    /// A PostgreSQL primary with a standby, beside the server that all other runs share.
    pub(super) fn pair(&self) -> Result<Pair> {
        let server = self.servers.get("postgres").context("PostgreSQL takes no part")?;
        let network = self.network.as_ref().context("there is no network")?;
        Pair::start(&server.image, &network.name, self.keep)
    }

    /// Where servers run that are containers too: the image, the network, and this machine's address in it.
    pub(super) fn place(&self) -> Option<String> {
        let (image, network) = (self.image.as_ref()?, self.network.as_ref()?);
        Some(format!("{image} {} {}", network.name, network.gateway))
    }

    /// Makes empty databases of the same names on all of these servers.
    pub(super) fn make(&self, run: &str, count: usize, backends: &[&'static str]) -> Result<Vec<String>> {
        if let Ok(given) = std::env::var(DATABASES_VARIABLE) {
            return Ok(given.split(',').map(str::to_owned).collect());
        }
        let run = run.replace(|character: char| !character.is_ascii_alphanumeric(), "_");
        let names: Vec<String> = (0..count)
            .map(|number| format!("race_{}_{run}_{number}", std::process::id()))
            .collect();
        let statements: Vec<String> = names
            .iter()
            .map(|name| format!("CREATE DATABASE {name}"))
            .collect();
        for server in self.of(backends) {
            server
                .query(&statements)
                .with_context(|| format!("cannot make databases on {}", server.backend))?;
        }
        Ok(names)
    }

    /// Drops them again, unless somebody wants to look at them. A database that stays does no harm.
    pub(super) fn discard(&self, names: &[String], backends: &[&'static str]) {
        if self.keep || std::env::var_os(DATABASES_VARIABLE).is_some() {
            return;
        }
        for server in self.of(backends) {
            // A server that was killed may not have left yet, as far as PostgreSQL knows.
            let force = if server.backend == "postgres" {
                " WITH (FORCE)"
            } else {
                ""
            };
            let drop = |name: &String| format!("DROP DATABASE {name}{force}");
            let statements: Vec<String> = names.iter().map(drop).collect();
            if let Err(error) = server.query(&statements) {
                println!("databases stay on {}: {error:#}", server.backend);
            }
        }
    }

    fn of(&self, backends: &[&'static str]) -> impl Iterator<Item = &Server> {
        let servers = self.servers.values();
        servers.filter(move |server| backends.contains(&server.backend))
    }
}

/// Room for many servers, and defaults that are not what the protocols need: each session sets its own.
pub(super) fn settings(backend: &str) -> &'static [&'static str] {
    match backend {
        "postgres" => &[
            "-c",
            "max_connections=400",
            "-c",
            "default_transaction_isolation=serializable",
            "-c",
            "DateStyle=German",
        ],
        "mysql" => &[
            "--max-connections=400",
            "--mysqlx=OFF",
            "--sql-mode=",
            "--transaction-isolation=SERIALIZABLE",
            "--character-set-server=latin1",
            "--collation-server=latin1_swedish_ci",
        ],
        _ => &[
            "--max-connections=400",
            "--skip-name-resolve",
            "--sql-mode=",
            "--transaction-isolation=SERIALIZABLE",
            "--character-set-server=latin1",
            "--collation-server=latin1_swedish_ci",
        ],
    }
}

pub(super) fn variable(backend: &str) -> String {
    format!("TREELINE_TEST_{}_URL", backend.to_uppercase())
}

impl Server {
    fn run(backend: &'static str, image: String, network: Option<&Network>, plan: &Plan) -> Result<Server> {
        let mut options = vec!["--label", LABEL];
        // Where nobody kills a database, the disk is all that a run would wait for.
        if !plan.faults {
            options.extend(["--env", "TREELINE_FAST=1"]);
        }
        if let Some(network) = network {
            options.extend(["--network", &network.name]);
        }
        let mut container = Container::of_database(backend, &image, &options, settings(backend))?;
        container.keep = plan.keep;
        Ok(Server {
            backend,
            url: Url::parse(&container.url(backend)?)?,
            image,
            container: Some(container),
        })
    }

    fn wait_until_ready(&self) -> Result<()> {
        let begun = Instant::now();
        loop {
            let Err(error) = self.query(&[PING.to_owned()]) else {
                return self.grant();
            };
            if begun.elapsed() > READY_WITHIN {
                bail!(
                    "{} was not ready within {READY_WITHIN:?}: {error:#}",
                    self.backend
                );
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// The published images give the user one database; ours give all, and a look at who waits.
    fn grant(&self) -> Result<()> {
        let published = !self.image.starts_with(images::REPOSITORY);
        if self.backend == "postgres" || self.container.is_none() || !published {
            return Ok(());
        }
        let statements = [
            format!("GRANT ALL ON `%`.* TO '{ACCOUNT}'@'%'"),
            format!("GRANT PROCESS ON *.* TO '{ACCOUNT}'@'%'"),
            "CREATE USER IF NOT EXISTS 'reader'@'%' IDENTIFIED BY 'reader'".to_owned(),
            "GRANT SELECT ON `%`.* TO 'reader'@'%'".to_owned(),
        ];
        let root = Url {
            user: "root".to_owned(),
            ..self.url.clone()
        };
        self.query_as(&root, &statements)
    }

    /// The recipe of this repository puts two before PostgreSQL.
    fn has_pooler(&self) -> bool {
        self.container.is_some() && self.image.starts_with(images::REPOSITORY)
    }

    fn query(&self, statements: &[String]) -> Result<()> {
        self.query_as(&self.url, statements)
    }

    /// With the client that the image has, since this machine need not have any.
    fn query_as(&self, url: &Url, statements: &[String]) -> Result<()> {
        let mut docker = Command::new("docker");
        // Handed on by its name: what is on a command line is printed when the command fails.
        let password = match self.backend {
            "postgres" => "PGPASSWORD",
            _ => "MYSQL_PWD",
        };
        docker.env(password, &url.password);
        let (client, host) = match &self.container {
            Some(container) => {
                docker.args(["exec", "--env", password, &container.id]);
                (Some(self.client()), "127.0.0.1")
            }
            None => {
                docker.args(["run", "--rm", "--network", "host", "--env", password]);
                docker.args(["--entrypoint", self.client(), &self.image]);
                (None, url.host.as_str())
            }
        };
        docker.args(client);
        docker.args(["--host", host, "--port", &url.port]);
        if self.backend == "postgres" {
            docker.args(["--username", &url.user, "--dbname", &url.database]);
            docker.args(["--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1"]);
            for statement in statements {
                docker.args(["--command", statement]);
            }
        } else {
            docker.args(["--user", &url.user, "--protocol", "tcp"]);
            docker.args(["--execute", &statements.join(";"), &url.database]);
        }
        command::output(&mut docker).map(drop)
    }

    fn client(&self) -> &'static str {
        match self.backend {
            "postgres" => "psql",
            "mysql" => "mysql",
            _ => "mariadb",
        }
    }
}

impl Url {
    fn parse(text: &str) -> Result<Url> {
        let parts = || {
            let (scheme, rest) = text.split_once("://")?;
            let (account, rest) = rest.rsplit_once('@')?;
            let (user, password) = account.split_once(':').unwrap_or((account, ""));
            let (address, database) = rest.split_once('/')?;
            let (host, port) = address.rsplit_once(':')?;
            Some([scheme, user, password, host, port, database])
        };
        // The URL itself may hold a password that is somebody's.
        let parts = parts().context("a database's URL is `scheme://user:password@host:port/database`")?;
        ensure!(
            parts.iter().all(|part| !part.contains(' ')),
            "the URL of a database has a blank"
        );
        let [scheme, user, password, host, port, database] = parts.map(str::to_owned);
        Ok(Url {
            scheme,
            user,
            password,
            host,
            port,
            database,
        })
    }

    fn text(&self) -> String {
        format!(
            "{}://{}:{}@{}:{}/{}",
            self.scheme, self.user, self.password, self.host, self.port, self.database
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_and_put_together() {
        let text = "postgres://me:p@ss@db.example:5433/catalog";
        let url = Url::parse(text).unwrap();
        assert_eq!((url.password.as_str(), url.host.as_str()), ("p@ss", "db.example"));
        assert_eq!(url.text(), text);
        assert!(Url::parse("postgres://nowhere").is_err());
    }
}

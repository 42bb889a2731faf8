//! One database server of a run, or one node of a cluster of them: where it is, and how to ask it.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::{GALERA, Plan};
use crate::command;
use crate::containers::{ACCOUNT, Container, LABEL, Network, USUAL_NETWORK};
use crate::images;

/// A database that takes longer to be ready is broken. Far more than any needs, for a machine that is busy.
pub(super) const READY_WITHIN: Duration = Duration::from_secs(120);

/// What every database does gladly, once it answers at all.
const PING: &str = "COMMIT";

/// What a node of a cluster answers once it may be used.
const PING_NODE: &str = "SHOW STATUS LIKE 'wsrep_local_state_comment'";
const SYNCED: &str = "Synced";

#[derive(Debug)]
pub(super) struct Node {
    pub(super) backend: &'static str,
    pub(super) url: Url,
    pub(super) image: String,
    pub(super) container: Option<Container>,
}

/// The parts of a database's URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Url {
    scheme: String,
    user: String,
    password: String,
    pub(super) host: String,
    pub(super) port: String,
    database: String,
}

/// Room for many servers, and defaults that are not what the protocols need: each session sets its own.
fn settings(backend: &str) -> &'static [&'static str] {
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

impl Node {
    /// One that the environment names.
    pub(super) fn elsewhere(backend: &'static str, image: &str, url: Url) -> Node {
        Node {
            backend,
            url,
            image: image.to_owned(),
            container: None,
        }
    }

    /// A server by itself.
    pub(super) fn run(
        backend: &'static str,
        image: &str,
        network: Option<&Network>,
        plan: &Plan,
    ) -> Result<Node> {
        let network = network.map_or(USUAL_NETWORK, |network| &network.name);
        let container = Node::container(backend, image, &["--network", network], &[], plan)?;
        Node::of(backend, image, container, network)
    }

    /// Starts a container, with more options of `docker run` and more settings of the server.
    pub(super) fn container(
        backend: &'static str,
        image: &str,
        options: &[&str],
        own: &[&str],
        plan: &Plan,
    ) -> Result<Container> {
        let mut all = vec!["--label", LABEL];
        // Where nobody kills a database, the disk is all that a run would wait for.
        if !plan.faults {
            all.extend(["--env", "TREELINE_FAST=1"]);
        }
        all.extend(options);
        let settings = [settings(backend), own].concat();
        let mut container = Container::of_database(backend, image, &all, &settings)?;
        container.keep = plan.keep;
        Ok(container)
    }

    /// A container that servers reach in this network.
    pub(super) fn of(
        backend: &'static str,
        image: &str,
        container: Container,
        network: &str,
    ) -> Result<Node> {
        Ok(Node {
            backend,
            url: Url::parse(&container.url(backend, network)?)?,
            image: image.to_owned(),
            container: Some(container),
        })
    }

    /// Waits until it answers, and until a node of a cluster has caught up with the others.
    pub(super) fn wait_until_ready(&self) -> Result<()> {
        let begun = Instant::now();
        let (ping, expected) = if self.backend == GALERA {
            (PING_NODE, SYNCED)
        } else {
            (PING, "")
        };
        loop {
            let error = match self.ask(&self.url, &[ping.to_owned()]) {
                Ok(said) if said.contains(expected) => return self.grant(),
                Ok(said) => anyhow::anyhow!("it says {said}"),
                Err(error) => error,
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
        self.ask(&root, &statements).map(drop)
    }

    /// The recipe of this repository puts two before PostgreSQL.
    pub(super) fn has_pooler(&self) -> bool {
        self.container.is_some() && self.image.starts_with(images::REPOSITORY)
    }

    /// Runs statements on it.
    pub(super) fn query(&self, statements: &[String]) -> Result<()> {
        self.ask(&self.url, statements).map(drop)
    }

    /// With the client that the image has, since this machine need not have any.
    fn ask(&self, url: &Url, statements: &[String]) -> Result<String> {
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
        command::output(&mut docker)
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
    /// Takes a URL apart.
    pub(super) fn parse(text: &str) -> Result<Url> {
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

    /// Puts it together again.
    pub(super) fn text(&self) -> String {
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

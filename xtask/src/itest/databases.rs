//! The database servers of a run, in containers of its own or wherever the environment says, and databases on them.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::node::{Node, Url};
use super::pair::Pair;
use super::{GALERA, Plan, cluster};
use crate::containers::Network;
use crate::images;
use crate::workspace::Workspace;

/// Databases that somebody has made already, separated by commas, on every server that the environment names.
const DATABASES_VARIABLE: &str = super::DATABASES_VARIABLE;

/// The machine of the poolers before PostgreSQL. The storage suite reads the same name.
const POOLER_VARIABLE: &str = "TREELINE_TEST_PGBOUNCER";

/// The network of a cluster's nodes, by which one can be cut off from the others. Random clients read the same name.
const CLUSTER_VARIABLE: &str = "TREELINE_TEST_CLUSTER_NETWORK";

/// All database servers of one run.
#[derive(Debug)]
pub(super) struct Databases {
    /// Of each backend the server, or the nodes of its cluster.
    servers: BTreeMap<&'static str, Vec<Node>>,
    /// What servers run in that are containers too.
    image: Option<String>,
    /// After the servers, since they go when nobody is in them: that of the servers, and that of a cluster's nodes.
    network: Option<Network>,
    cluster: Option<Network>,
    keep: bool,
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
            cluster: None,
            keep,
        };
        if wanted.is_empty() && !plan.containers {
            return Ok(databases);
        }
        let base = if plan.containers { Some(images::BASE) } else { None };
        let all: Vec<&str> = wanted.iter().map(|backend| image(backend)).chain(base).collect();
        let images = images::ensure(workspace, &all).context("exclude what cannot run with --without")?;
        if let Some(base) = base {
            databases.image = images.get(base).cloned();
            databases.network = Some(Network::make(keep)?);
        }
        let network = databases.network.as_ref();
        for backend in wanted.iter().copied() {
            let image = images.get(image(backend)).context("no image")?;
            let nodes = match std::env::var(variable(backend)) {
                Ok(urls) if !urls.is_empty() => urls
                    .split(',')
                    .map(|url| Ok(Node::elsewhere(backend, image, Url::parse(url)?)))
                    .collect::<Result<_>>()?,
                _ if backend == GALERA => {
                    let inner = Network::make_with_addresses("cluster", keep)?;
                    let nodes = cluster::start(image, &inner, network, plan)?;
                    databases.cluster = Some(inner);
                    nodes
                }
                _ => vec![Node::run(backend, image, network, plan)?],
            };
            databases.servers.insert(backend, nodes);
        }
        for node in databases.servers.values().flatten() {
            node.wait_until_ready()?;
            let place = if node.container.is_some() {
                "in a container"
            } else {
                "from the environment"
            };
            println!("{:<10}{}:{}, {place}", node.backend, node.url.host, node.url.port);
        }
        Ok(databases)
    }

    /// Tells a suite where the servers are, and of no other.
    pub(super) fn tell(&self, suite: &mut Command, backends: &[&'static str]) {
        for backend in super::known_backends() {
            match self.servers.get(backend) {
                Some(nodes) if backends.contains(&backend) => {
                    let urls: Vec<String> = nodes.iter().map(|node| node.url.text()).collect();
                    suite.env(variable(backend), urls.join(" "))
                }
                _ => suite.env_remove(variable(backend)),
            };
        }
        match self.servers.get("postgres").and_then(|nodes| nodes.first()) {
            Some(server) if server.has_pooler() => suite.env(POOLER_VARIABLE, &server.url.host),
            _ => suite.env_remove(POOLER_VARIABLE),
        };
        match &self.cluster {
            Some(network) => suite.env(CLUSTER_VARIABLE, &network.name),
            None => suite.env_remove(CLUSTER_VARIABLE),
        };
    }

    /// The container of a database server, if it has one here; of a cluster, that of the node which it can do without.
    pub(super) fn container(&self, backend: &str) -> Option<&str> {
        let container = self.servers.get(backend)?.last()?.container.as_ref()?;
        Some(&container.id)
    }

    /// A PostgreSQL primary with a standby, beside the server that all other runs share.
    pub(super) fn pair(&self, plan: &Plan) -> Result<Pair> {
        let server = self
            .of(&["postgres"])
            .next()
            .context("PostgreSQL takes no part")?;
        let network = self.network.as_ref().context("there is no network")?;
        Pair::start(&server.image, &network.name, plan)
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
        for node in self.servers.values().flat_map(|nodes| nodes.iter().skip(1)) {
            // Until the other nodes have them too, nobody can connect to them there.
            node.query(&[
                "SET SESSION wsrep_sync_wait = 1".to_owned(),
                "START TRANSACTION".to_owned(),
            ])?;
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

    /// The servers of these backends; of a cluster one node, which tells the others.
    fn of(&self, backends: &[&'static str]) -> impl Iterator<Item = &Node> {
        let servers = self.servers.values().filter_map(|nodes| nodes.first());
        servers.filter(move |server| backends.contains(&server.backend))
    }
}

pub(super) fn variable(backend: &str) -> String {
    format!("TREELINE_TEST_{}_URL", backend.to_uppercase())
}

/// The image of a backend.
pub(crate) fn image(backend: &str) -> &str {
    if backend == GALERA { "mariadb" } else { backend }
}

//! A server in a container of its own, instead of as a process of this machine.
//!
//! It stands in two networks: in Docker's usual one, where the tests reach it, and in the private one of the databases.
//! So it can be cut off from its database while its clients still reach it.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, bail};
use tokio::process::Command;

use crate::program::output;
use crate::server::eventually;

/// Names the image that servers run in, the network of the databases, and this machine's address in it, with blanks
/// between. Without it servers are processes.
const CONTAINERS_VARIABLE: &str = "TREELINE_TEST_CONTAINERS";

/// Of everything that a run makes. Whoever made the network removes with it what a killed test has left in it.
const LABEL: &str = "treeline=itest";

/// Where each server listens on its own address.
pub(crate) const API: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8090);
pub(crate) const HOOKS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8091);

/// Where the server's binary is, inside.
const BINARY: &str = "/usr/local/bin/treeline";

/// Where servers run that are not processes of this machine.
#[derive(Clone, Debug)]
pub(crate) struct Containers {
    image: String,
    network: String,
    /// This machine, as a container reaches it.
    pub(crate) host: Ipv4Addr,
}

/// What one server is told.
pub(crate) struct Told<'a> {
    pub(crate) binary: &'a Path,
    /// The same inside as outside.
    pub(crate) directory: &'a Path,
    pub(crate) variables: Vec<(OsString, OsString)>,
    pub(crate) arguments: Vec<String>,
}

/// The container of one server. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Container {
    name: String,
    network: String,
}

impl Containers {
    pub(crate) fn from_environment() -> Result<Option<Containers>> {
        let Ok(words) = std::env::var(CONTAINERS_VARIABLE) else {
            return Ok(None);
        };
        let words: Vec<&str> = words.split(' ').collect();
        let [image, network, host] = words[..] else {
            bail!("{CONTAINERS_VARIABLE} names an image, a network and an address");
        };
        Ok(Some(Containers {
            image: image.to_owned(),
            network: network.to_owned(),
            host: host.parse()?,
        }))
    }

    /// Makes a container, and the command that starts it, stays with it and ends as it does.
    pub(crate) async fn make(&self, told: Told<'_>) -> Result<(Container, Command)> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let container = Container {
            name: format!("treeline-{}-{count}", std::process::id()),
            network: self.network.clone(),
        };
        let mut create = Command::new("docker");
        create.args(["create", "--rm", "--label", LABEL, "--name", &container.name]);
        let binary = format!("{}:{BINARY}:ro", told.binary.display());
        create.args(["--volume", &binary]);
        let directory = told.directory.display();
        create.args(["--volume", &format!("{directory}:{directory}")]);
        create.arg("--workdir").arg(told.directory);
        for (name, value) in told.variables {
            let mut pair = name;
            pair.push("=");
            pair.push(value);
            create.arg("--env").arg(pair);
        }
        create.arg(&self.image).arg(BINARY).args(told.arguments);
        output(create).await?;
        container.join().await?;
        let mut start = Command::new("docker");
        start
            .args(["start", "--attach", &container.name])
            .kill_on_drop(true);
        Ok((container, start))
    }
}

impl Container {
    pub(crate) async fn signal(&self, signal: &str) -> Result<()> {
        self.ask(&["kill", "--signal", signal.trim_start_matches('-')])
            .await
    }

    /// Stops every process in it, as a machine that goes silent.
    pub(crate) async fn freeze(&self) -> Result<()> {
        self.ask(&["pause"]).await
    }

    pub(crate) async fn thaw(&self) -> Result<()> {
        self.ask(&["unpause"]).await
    }

    /// Its address in Docker's usual network, once it has one.
    pub(crate) async fn address(&self) -> Result<Ipv4Addr> {
        const ADDRESS: &str = "{{.NetworkSettings.Networks.bridge.IPAddress}}";
        let mut address = None;
        eventually("the container has an address", async || {
            let mut inspect = Command::new("docker");
            inspect.args(["inspect", "--format", ADDRESS, &self.name]);
            address = output(inspect).await?.parse().ok();
            Ok(address.is_some())
        })
        .await?;
        address.context("no address")
    }

    /// Joins the network of the databases.
    pub(crate) async fn join(&self) -> Result<()> {
        self.ask(&["network", "connect", &self.network]).await
    }

    /// Leaves it: what is sent either way is lost, and nobody is told.
    pub(crate) async fn leave(&self) -> Result<()> {
        self.ask(&["network", "disconnect", &self.network]).await
    }

    async fn ask(&self, words: &[&str]) -> Result<()> {
        let mut command = Command::new("docker");
        command.args(words).arg(&self.name);
        output(command).await.map(drop)
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let mut remove = std::process::Command::new("docker");
        // It is gone already where its process has ended.
        let _ = remove.args(["rm", "--force", "--volumes", &self.name]).output();
    }
}

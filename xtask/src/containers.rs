//! What `itest` and `bench` make of Docker besides images, and remove again when they are over.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::command;

/// Of everything that a run of `itest` makes, so that what a killed run has left can be found.
pub(crate) const LABEL: &str = "treeline=itest";

/// The user, the password and the database of every image.
pub(crate) const ACCOUNT: &str = "treeline";

/// A container that this run has started. Dropping it removes it, its data included.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) id: String,
    pub(crate) keep: bool,
}

/// The network that a container stands in unless another is named.
pub(crate) const USUAL_NETWORK: &str = "bridge";

/// A private network: that of the databases and of servers in containers, or that of the nodes of a cluster.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) name: String,
    /// This machine, as seen from inside.
    pub(crate) gateway: String,
    keep: bool,
}

impl Container {
    /// Runs a database server, with more options of `docker run` and with arguments of its own. It is not ready yet.
    pub(crate) fn of_database(
        backend: &str,
        image: &str,
        options: &[&str],
        arguments: &[&str],
    ) -> Result<Container> {
        let mut run = Command::new("docker");
        run.args(["run", "--detach"]).args(options);
        // The published images are told their account; ours have it.
        let prefix = backend.to_uppercase();
        let database = if backend == "postgres" { "DB" } else { "DATABASE" };
        for setting in ["USER", "PASSWORD", database, "ROOT_PASSWORD"] {
            run.args(["--env", &format!("{prefix}_{setting}={ACCOUNT}")]);
        }
        let id = command::output(run.arg(image).args(arguments))?;
        Ok(Container {
            id: id.trim().to_owned(),
            keep: false,
        })
    }

    /// Where its database server is, in a network that it stands in, as everybody who may see it is told.
    pub(crate) fn url(&self, backend: &str, network: &str) -> Result<String> {
        let address = format!("{{{{(index .NetworkSettings.Networks \"{network}\").IPAddress}}}}");
        let inspect = ["inspect", "--format", &address, &self.id];
        let host = command::output(Command::new("docker").args(inspect))?;
        let (scheme, port) = match backend {
            "postgres" => ("postgres", 5432),
            "mysql" => ("mysql", 3306),
            _ => ("mariadb", 3306),
        };
        let host = host.trim();
        Ok(format!("{scheme}://{ACCOUNT}:{ACCOUNT}@{host}:{port}/{ACCOUNT}"))
    }

    /// Joins one more network.
    pub(crate) fn join(&self, network: &str) -> Result<()> {
        let connect = ["network", "connect", network, &self.id];
        command::output(Command::new("docker").args(connect)).map(drop)
    }
}

impl Network {
    /// One with addresses that Docker gives.
    pub(crate) fn make(keep: bool) -> Result<Network> {
        Network::create(format!("treeline-itest-{}", std::process::id()), &[], keep)
    }

    /// One in which a container may ask for its address: its range has to be given. Docker has found a free one for it.
    pub(crate) fn make_with_addresses(name: &str, keep: bool) -> Result<Network> {
        let name = format!("treeline-itest-{}-{name}", std::process::id());
        let found = Network::create(name.clone(), &[], false)?;
        let range = found.inspect("{{(index .IPAM.Config 0).Subnet}}")?;
        let gateway = found.gateway.clone();
        drop(found);
        Network::create(name, &["--subnet", &range, "--gateway", &gateway], keep)
    }

    fn create(name: String, options: &[&str], keep: bool) -> Result<Network> {
        let create = ["network", "create", "--label", LABEL];
        command::output(Command::new("docker").args(create).args(options).arg(&name))?;
        let mut network = Network {
            name,
            gateway: String::new(),
            keep,
        };
        network.gateway = network.inspect("{{(index .IPAM.Config 0).Gateway}}")?;
        Ok(network)
    }

    /// An address of it: the gateway is the first, and those that Docker gives follow it.
    pub(crate) fn address(&self, number: u8) -> Result<String> {
        let (range, _) = self.gateway.rsplit_once('.').context("a network has a gateway")?;
        Ok(format!("{range}.{number}"))
    }

    fn inspect(&self, format: &str) -> Result<String> {
        let inspect = ["network", "inspect", "--format", format, &self.name];
        Ok(command::output(Command::new("docker").args(inspect))?
            .trim()
            .to_owned())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        // Servers that a suite has left, because it was killed.
        let filter = format!("network={}", self.name);
        let list =
            command::output(Command::new("docker").args(["ps", "--all", "--quiet", "--filter", &filter]));
        for id in list.unwrap_or_default().split_whitespace() {
            command::succeeds(Command::new("docker").args(["rm", "--force", "--volumes", id]));
        }
        command::succeeds(Command::new("docker").args(["network", "rm", &self.name]));
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if self.keep {
            println!("container {} stays", self.id.get(..12).unwrap_or(&self.id));
        } else {
            command::succeeds(Command::new("docker").args(["rm", "--force", "--volumes", &self.id]));
        }
    }
}

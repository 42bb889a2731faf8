//! What `itest` and `bench` make of Docker besides images, and remove again when they are over.

use std::process::Command;

use anyhow::Result;

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

/// The private network of the databases and of servers in containers.
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

    /// Where its database server is, as everybody who may see it is told.
    pub(crate) fn url(&self, backend: &str) -> Result<String> {
        const ADDRESS: &str = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
        let inspect = ["inspect", "--format", ADDRESS, &self.id];
        let host = command::output(Command::new("docker").args(inspect))?;
        let port = if backend == "postgres" { 5432 } else { 3306 };
        let host = host.trim();
        Ok(format!("{backend}://{ACCOUNT}:{ACCOUNT}@{host}:{port}/{ACCOUNT}"))
    }
}

impl Network {
    pub(crate) fn make(keep: bool) -> Result<Network> {
        let name = format!("treeline-itest-{}", std::process::id());
        let create = ["network", "create", "--label", LABEL, &name];
        command::output(Command::new("docker").args(create))?;
        let mut network = Network {
            name,
            gateway: String::new(),
            keep,
        };
        let gateway = "{{(index .IPAM.Config 0).Gateway}}";
        let inspect = ["network", "inspect", "--format", gateway, &network.name];
        network.gateway = command::output(Command::new("docker").args(inspect))?
            .trim()
            .to_owned();
        Ok(network)
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

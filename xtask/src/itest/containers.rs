//! What a run makes of Docker besides images, and removes again when it is over.

use std::process::Command;

use anyhow::Result;

use crate::command;

/// Of everything that a run makes, so that what a killed run has left can be found.
pub(super) const LABEL: &str = "treeline=itest";

/// A container that this run has started. Dropping it removes it, its data included.
#[derive(Debug)]
pub(super) struct Container {
    pub(super) id: String,
    pub(super) keep: bool,
}

/// The private network of the databases and of servers in containers.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) name: String,
    /// This machine, as seen from inside.
    pub(super) gateway: String,
    keep: bool,
}

impl Network {
    pub(super) fn make(keep: bool) -> Result<Network> {
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

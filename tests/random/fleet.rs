//! The servers of a run, and where they are now: one that was killed comes back at another address.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use treeline_tests::{Bed, Client, Server};

/// Enough for the clients, and few enough for several servers on one database.
const ARGUMENTS: [&str; 4] = [
    "--database-connections-max",
    "8",
    "--database-acquire-ms-max",
    "20000",
];

/// A port that was free a moment ago may be taken by a connection that a client has opened meanwhile.
const STARTS_MAX: usize = 3;

/// All servers.
pub(crate) struct Fleet<'b> {
    bed: &'b Bed,
    servers: Vec<Server>,
    addresses: Addresses,
}

/// Where the servers are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses(Arc<Mutex<Vec<SocketAddr>>>);

impl Addresses {
    /// A client of the server with this number, counted round.
    pub(crate) fn client(&self, number: usize) -> (usize, Client) {
        let addresses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = number % addresses.len();
        (number, Client::new(addresses[number]))
    }

    fn set(&self, addresses: Vec<SocketAddr>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = addresses;
    }
}

impl<'b> Fleet<'b> {
    /// One after the other: the first makes the tables.
    pub(crate) async fn start(bed: &'b Bed, count: usize) -> Result<Fleet<'b>> {
        let mut fleet = Fleet {
            bed,
            servers: Vec::new(),
            addresses: Addresses::default(),
        };
        for _ in 0..count {
            let server = fleet.start_one().await?;
            fleet.servers.push(server);
        }
        fleet.tell();
        Ok(fleet)
    }

    pub(crate) fn addresses(&self) -> Addresses {
        self.addresses.clone()
    }

    /// Kills a server in the middle of whatever it does, and starts another in its place.
    pub(crate) async fn replace(&mut self, number: usize) -> Result<()> {
        let number = number % self.servers.len();
        self.servers[number].kill().await?;
        self.servers[number] = self.start_one().await?;
        self.tell();
        Ok(())
    }

    /// A fault that brings a server down must not pass for a quiet one.
    pub(crate) fn all_are_alive(&mut self) -> Result<()> {
        for server in &mut self.servers {
            ensure!(server.is_alive(), "a server has ended:\n{}", server.log_tail());
        }
        Ok(())
    }

    async fn start_one(&self) -> Result<Server> {
        let mut attempt = 1;
        loop {
            match self.bed.start_with(&ARGUMENTS).await {
                Ok(mut server) => {
                    server.hush();
                    return Ok(server);
                }
                Err(error) if attempt < STARTS_MAX && format!("{error:#}").contains("in use") => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn tell(&self) {
        self.addresses
            .set(self.servers.iter().map(Server::address).collect());
    }
}

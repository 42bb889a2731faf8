//! The servers of a run, and where they are now: one that was killed comes back at another address.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use treeline_tests::{Bed, Client, Hooks, Server, eventually};

use crate::fault::Fault;

/// Enough for the clients, and few enough for several servers on one database.
const ARGUMENTS: [&str; 4] = [
    "--database-connections-max",
    "8",
    "--database-acquire-ms-max",
    "20000",
];

/// As many as a server has connections.
const REQUESTS_AT_ONCE: usize = 8;

/// Where faults are suffered: no wait is longer than the fault itself.
const HASTY: [&str; 2] = ["--operation-ms-max", "5000"];

/// Where every point must be come to: writers that take turns never lose to each other.
const MEETING: [&str; 2] = ["--local-locks", "off"];

/// All servers.
pub(crate) struct Fleet<'b> {
    bed: &'b Bed,
    fault: Option<Fault>,
    servers: Vec<Server>,
    /// Where each is driven, if the fault needs it.
    hooks: Vec<Option<Hooks>>,
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
    pub(crate) async fn start(bed: &'b Bed, count: usize, fault: Option<Fault>) -> Result<Fleet<'b>> {
        let mut fleet = Fleet {
            bed,
            fault,
            servers: Vec::new(),
            hooks: Vec::new(),
            addresses: Addresses::default(),
        };
        for number in 0..count {
            let (server, hooks) = fleet.start_one(number).await?;
            fleet.servers.push(server);
            fleet.hooks.push(hooks);
        }
        fleet.tell();
        if fault.is_some() {
            fleet.warm_up().await?;
        }
        Ok(fleet)
    }

    /// Lets each server open its connections. On a machine that is overloaded, to open them all at once takes longer than
    /// it may, and no fault would explain the 503.
    async fn warm_up(&self) -> Result<()> {
        eventually("the servers have their connections", async || {
            let clients = (0..REQUESTS_AT_ONCE).flat_map(|_| self.clients());
            let answers = Client::all_get(clients, "/api/metalakes").await?;
            Ok(answers.iter().all(|answer| answer.status == 200))
        })
        .await
    }

    pub(crate) fn addresses(&self) -> Addresses {
        self.addresses.clone()
    }

    /// Kills a server in the middle of whatever it does, and starts another in its place.
    pub(crate) async fn replace(&mut self, number: usize) -> Result<()> {
        let number = number % self.servers.len();
        self.servers[number].kill().await?;
        self.revive(number).await
    }

    /// Starts another in the place of one that has died.
    pub(crate) async fn revive(&mut self, number: usize) -> Result<()> {
        (self.servers[number], self.hooks[number]) = self.start_one(number).await?;
        self.tell();
        Ok(())
    }

    /// Waits until a server has died of its own accord.
    pub(crate) async fn has_died(&mut self, number: usize) -> Result<()> {
        let status = self.servers[number].wait().await?;
        ensure!(!status.success(), "the server has ended in peace");
        Ok(())
    }

    pub(crate) fn count(&self) -> usize {
        self.servers.len()
    }

    /// Where a server's sync points are driven.
    pub(crate) fn hooks(&self, number: usize) -> Result<Hooks> {
        self.hooks[number].context("the server was started without its hooks")
    }

    /// A fault that brings a server down must not pass for a quiet one.
    pub(crate) async fn all_are_alive(&mut self) -> Result<()> {
        for server in &mut self.servers {
            ensure!(
                server.is_alive(),
                "a server has ended ({:?}):\n{}",
                server.wait().await.ok(),
                server.log_tail()
            );
        }
        Ok(())
    }

    /// What those that the fault befell have not told the operator of it, though they could.
    pub(crate) async fn has_passed_over(&self) -> Result<Vec<&'static str>> {
        let mut passed_over = Vec::new();
        let Some(fault) = self.fault else {
            return Ok(passed_over);
        };
        if let Some(metric) = fault.metric() {
            let mut counted = Vec::new();
            for server in &self.servers {
                counted.push(server.count(metric).await? > 0);
            }
            if !fault.owed().is_settled(counted.into_iter()) {
                passed_over.push("uncounted");
            }
        }
        if let Some(line) = fault.log_line() {
            let logged = self.servers.iter().map(|server| server.has_logged(line));
            if !fault.owed().is_settled(logged) {
                passed_over.push("unlogged");
            }
        }
        Ok(passed_over)
    }

    /// What the servers have logged as failures of their own; of those that were killed, what came after.
    pub(crate) fn log_errors(&self) -> String {
        let logs: Vec<String> = self.servers.iter().map(Server::log_errors).collect();
        logs.join("\n").trim().to_owned()
    }

    /// The one that faults of servers befall.
    pub(crate) fn first(&self) -> &Server {
        &self.servers[0]
    }

    /// A client of each server.
    pub(crate) fn clients(&self) -> impl Iterator<Item = Client> {
        self.servers.iter().map(Server::client)
    }

    /// Any of them, by its number.
    pub(crate) fn server(&self, number: usize) -> &Server {
        &self.servers[number]
    }

    /// Where the run's files are.
    pub(crate) fn directory(&self) -> &Path {
        self.bed.root()
    }

    /// What the servers stand on.
    pub(crate) fn bed(&self) -> &Bed {
        self.bed
    }

    async fn start_one(&self, number: usize) -> Result<(Server, Option<Hooks>)> {
        let skew = self
            .fault
            .map_or(0, |fault| fault.clock_skew_ms(number))
            .to_string();
        let mut arguments = ARGUMENTS.to_vec();
        arguments.extend(["--database", self.bed.database_url(number)]);
        if skew != "0" {
            arguments.extend(["--test-clock-skew-ms", &skew]);
        }
        if self.fault.is_some() {
            arguments.extend(HASTY);
        }
        let (mut server, hooks) = if self.fault == Some(Fault::ServerDiesAtPoints) {
            arguments.extend(MEETING);
            let (server, hooks) = self.bed.start_with_hooks(&arguments).await?;
            (server, Some(hooks))
        } else {
            (self.bed.start_with(&arguments).await?, None)
        };
        server.hush();
        Ok((server, hooks))
    }

    fn tell(&self) {
        self.addresses
            .set(self.servers.iter().map(Server::address).collect());
    }
}

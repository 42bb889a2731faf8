//! The servers of a run, and where they are now: one that was killed comes back at another address.

use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use treeline_tests::{Bed, Client, Hooks, Server, eventually};

use crate::due::OPERATION_MS_MAX;
use crate::fault::Fault;
use crate::log::{Log, Unanswered};

/// Enough for the clients, and few enough for several servers on one database.
const ARGUMENTS: [&str; 4] = [
    "--database-connections-max",
    "8",
    "--database-acquire-ms-max",
    "20000",
];

/// As many as a server has connections.
const REQUESTS_AT_ONCE: usize = 8;

/// Where every point must be come to: writers that take turns never lose to each other.
const MEETING: [&str; 2] = ["--local-locks", "off"];

/// All servers.
pub(crate) struct Fleet<'b> {
    bed: &'b Bed,
    log: &'b Log,
    fault: Option<Fault>,
    servers: Vec<Server>,
    /// Where each is driven, if the fault needs it.
    hooks: Vec<Option<Hooks>>,
    addresses: Addresses,
    /// What each had told before the fault.
    told: Vec<Told>,
    deaths: Vec<Death>,
}

/// What a server has told of a fault.
#[derive(Clone, Copy, Debug)]
struct Told {
    counted: u64,
    log_length: usize,
}

/// When a server was dead, or about to die, by the clock of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Death {
    pub(crate) server: usize,
    pub(crate) from: u64,
    /// When another served in its place.
    pub(crate) until: u64,
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

impl Death {
    /// Whether it is why a request was not answered: it was sent to that server, and it was on its way then.
    pub(crate) fn explains(&self, request: &Unanswered) -> bool {
        request.server == self.server && request.ended >= self.from && request.begun <= self.until
    }
}

impl<'b> Fleet<'b> {
    /// One after the other: the first makes the tables.
    pub(crate) async fn start(
        bed: &'b Bed,
        count: usize,
        fault: Option<Fault>,
        log: &'b Log,
    ) -> Result<Fleet<'b>> {
        let mut fleet = Fleet {
            bed,
            log,
            fault,
            servers: Vec::new(),
            hooks: Vec::new(),
            addresses: Addresses::default(),
            told: Vec::new(),
            deaths: Vec::new(),
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
        let from = self.log.now();
        self.servers[number].kill().await?;
        self.revive(number, from).await
    }

    /// Starts another in the place of one that has died since then.
    pub(crate) async fn revive(&mut self, number: usize, from: u64) -> Result<()> {
        (self.servers[number], self.hooks[number]) = self.start_one(number).await?;
        self.tell();
        self.deaths.push(Death {
            server: number,
            from,
            until: self.log.now(),
        });
        Ok(())
    }

    /// Waits until a server has died at a sync point, and of nothing else.
    pub(crate) async fn has_died(&mut self, number: usize) -> Result<()> {
        let server = &mut self.servers[number];
        let status = server.wait().await?;
        ensure!(
            is_of_a_sync_point(status),
            "the server has not died at the point, it ended with {status}:\n{}",
            server.log_tail()
        );
        Ok(())
    }

    /// Which servers were dead, and when.
    pub(crate) fn deaths(&self) -> &[Death] {
        &self.deaths
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

    /// Looks at what each server has told by now, so that only what comes after it counts.
    pub(crate) async fn looks_out(&mut self) -> Result<()> {
        self.told.clear();
        for number in 0..self.servers.len() {
            let told = self.told_by(&self.servers[number]).await?;
            self.told.push(told);
        }
        Ok(())
    }

    async fn told_by(&self, server: &Server) -> Result<Told> {
        let metric = self.fault.and_then(Fault::metric);
        Ok(Told {
            counted: match metric {
                Some(metric) => server.count(metric).await?,
                None => 0,
            },
            log_length: server.log_length(),
        })
    }

    /// What those that the fault befell have not told the operator of it since then, though they could.
    pub(crate) async fn has_passed_over(&self) -> Result<Vec<&'static str>> {
        let mut passed_over = Vec::new();
        let Some(fault) = self.fault else {
            return Ok(passed_over);
        };
        if fault.metric().is_some() {
            let mut counted = Vec::new();
            for (server, before) in self.servers.iter().zip(&self.told) {
                counted.push(self.told_by(server).await?.counted > before.counted);
            }
            if !fault.owed().is_settled(counted.into_iter()) {
                passed_over.push("uncounted");
            }
        }
        if let Some(line) = fault.log_line() {
            let told = self.servers.iter().zip(&self.told);
            let logged = told.map(|(server, before)| server.has_logged_since(before.log_length, line));
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
        let operation = OPERATION_MS_MAX.to_string();
        if self.fault.is_some() {
            arguments.extend(["--operation-ms-max", &operation]);
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

/// Whether a process that was told to die at a sync point ends so: it aborts itself. In a container the exit code says so. The
/// first process there is spared by its own signals, and is ended by the instruction that an abort has for this case, which
/// counts as a segmentation fault.
fn is_of_a_sync_point(status: ExitStatus) -> bool {
    const ABORTED: i32 = 6;
    const SEGMENTATION_FAULT: i32 = 11;
    let ends = [128 + ABORTED, 128 + SEGMENTATION_FAULT];
    status.signal() == Some(ABORTED) || status.code().is_some_and(|code| ends.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_abort_is_a_death_at_a_sync_point() {
        let signal = ExitStatus::from_raw;
        let code = |code: i32| ExitStatus::from_raw(code << 8);
        for status in [signal(6), code(134), code(139)] {
            assert!(is_of_a_sync_point(status), "{status}");
        }
        // Killed by somebody, out of memory in a container, a panic, a start that failed, a stop in peace.
        for status in [signal(9), signal(11), code(137), code(101), code(1), code(0)] {
            assert!(!is_of_a_sync_point(status), "{status}");
        }
    }

    #[test]
    fn a_death_explains_only_what_was_asked_of_the_dead_and_only_then() {
        let death = Death {
            server: 1,
            from: 10,
            until: 20,
        };
        let explains = |server, begun, ended| death.explains(&Unanswered { server, begun, ended });
        assert!(explains(1, 5, 10) && explains(1, 20, 25));
        assert!(!explains(0, 5, 10) && !explains(1, 5, 9) && !explains(1, 21, 25));
    }
}

//! A server as the process that it is, here or in a container.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tokio::process::{Child, Command};

use crate::container::{self, Container};
use crate::{Client, Hooks};

/// Far more than a server needs to start or to stop: a loaded machine must not fail a run.
const WITHIN: Duration = Duration::from_secs(30);

/// One that does not answer a probe by then may have ended, which is looked at next. The server's own bound is shorter.
const PROBED_WITHIN: Duration = Duration::from_secs(4);

/// How much of its log a failure shows.
const LOG_LINES_MAX: usize = 20;

/// Where a server is to be.
pub(crate) enum Place {
    /// A process that listens there.
    Here(SocketAddr),
    /// Already made, and started by the command.
    Container(Container),
}

/// A running server. Dropping it kills it, and prints the end of its log, which is shown for a test that fails.
#[derive(Debug)]
pub struct Server {
    /// The server, or what stays with its container.
    child: Child,
    container: Option<Container>,
    address: SocketAddr,
    log: PathBuf,
    quiet: bool,
}

impl Server {
    /// Starts the command and waits until it says that it is ready.
    pub(crate) async fn start(command: Command, place: Place, log: PathBuf) -> Result<Server> {
        let mut server = Server::begin(command, place, log).await?;
        server.wait_until_ready().await?;
        Ok(server)
    }

    /// Starts the command, and does not wait.
    pub(crate) async fn begin(mut command: Command, place: Place, log: PathBuf) -> Result<Server> {
        let output = File::create(&log)?;
        command
            .stdout(output.try_clone()?)
            .stderr(output)
            .stdin(Stdio::null());
        let child = command.spawn().context("cannot start the server")?;
        let (address, container) = match place {
            Place::Here(address) => (address, None),
            Place::Container(container) => {
                let ip = container.address().await.with_context(|| tail(&log))?;
                (SocketAddr::from((ip, container::API.port())), Some(container))
            }
        };
        Ok(Server {
            child,
            container,
            address,
            log,
            quiet: false,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A client with a connection of its own.
    pub fn client(&self) -> Client {
        Client::new(self.address)
    }

    /// What a counter of its metrics has come to, all labels together; with a label, that one.
    pub async fn count(&self, metric: &str) -> Result<u64> {
        let shown = self.client().get("/prometheus/metrics").await?;
        let lines = shown.text.lines().filter(|line| {
            line.strip_prefix(metric)
                .is_some_and(|rest| rest.starts_with(['{', ' ', ',', '}']))
        });
        let counts = lines.filter_map(|line| line.rsplit(' ').next());
        counts.map(|count| Ok(count.parse::<u64>()?)).sum()
    }

    /// Keeps its log to itself when it is dropped: it serves many tests, and each that fails shows the log on its own.
    pub fn hush(&mut self) {
        self.quiet = true;
    }

    /// Asks it to stop, as an operator would (SIGTERM), and does not wait.
    pub async fn ask_to_stop(&self) -> Result<()> {
        self.signal("-TERM").await
    }

    /// Freezes it as it stands, as a machine that goes silent.
    pub async fn freeze(&self) -> Result<()> {
        match &self.container {
            Some(container) => container.freeze().await,
            None => self.signal("-STOP").await,
        }
    }

    /// Lets what was frozen go on.
    pub async fn thaw(&self) -> Result<()> {
        match &self.container {
            Some(container) => container.thaw().await,
            None => self.signal("-CONT").await,
        }
    }

    /// Cuts it off from the network of its database: what is sent is lost, and nobody is told. Only a container can be.
    pub async fn cut_off(&self) -> Result<()> {
        self.in_container()?.leave().await
    }

    /// Ends the cut.
    pub async fn reconnect(&self) -> Result<()> {
        self.in_container()?.join().await
    }

    fn in_container(&self) -> Result<&Container> {
        let container = self.container.as_ref();
        container.context("the server runs in no container: `cargo xtask itest` decides that")
    }

    async fn signal(&self, signal: &str) -> Result<()> {
        if let Some(container) = &self.container {
            return container.signal(signal).await;
        }
        let id = self.child.id().context("the server is not running")?.to_string();
        let status = Command::new("kill").args([signal, &id]).status().await?;
        ensure!(status.success(), "cannot signal the server");
        Ok(())
    }

    /// Kills it as a crash would (SIGKILL), and waits until it is gone.
    pub async fn kill(&mut self) -> Result<()> {
        match &self.container {
            Some(container) => container.signal("-KILL").await?,
            None => self.child.start_kill()?,
        }
        self.wait().await?;
        Ok(())
    }

    /// Waits until it ends, within a bound.
    pub async fn wait(&mut self) -> Result<ExitStatus> {
        let waited = tokio::time::timeout(WITHIN, self.child.wait()).await;
        Ok(waited.with_context(|| format!("the server did not end within {WITHIN:?}"))??)
    }

    /// Asks it to stop and fails unless it does so with exit code 0.
    pub async fn stop(&mut self) -> Result<()> {
        self.ask_to_stop().await?;
        let status = self.wait().await?;
        ensure!(
            status.success(),
            "the server ended with {status}:\n{}",
            self.log_tail()
        );
        Ok(())
    }

    /// Whether it still runs. A server that a test brought down must not pass for one that held out.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        tail(&self.log)
    }

    /// How long its log is by now, in bytes.
    pub fn log_length(&self) -> usize {
        self.log().len()
    }

    /// Whether its log says so after that many bytes.
    pub fn has_logged_since(&self, length: usize, text: &str) -> bool {
        let log = self.log();
        let since = log.get(length..).unwrap_or_default();
        String::from_utf8_lossy(since).contains(text)
    }

    fn log(&self) -> Vec<u8> {
        std::fs::read(&self.log).unwrap_or_default()
    }

    /// Whether it has said so. A log that is no file tells nothing, and is believed.
    fn listens(&self) -> bool {
        !self.log.is_file() || self.has_logged_since(0, "treeline listens")
    }

    /// What it has logged as failures of its own; the last of them.
    pub fn log_errors(&self) -> String {
        last_lines(&self.log, |line| line.contains(" ERROR "))
    }

    /// Waits until it is held at a point on its way to serve, and fails if it comes through.
    pub(crate) async fn wait_until_held(&mut self, hooks: Hooks, point: &str) -> Result<()> {
        let held = async || Ok(hooks.reached(point, Hooks::ANY_NAME).await.is_ok());
        tokio::select! {
            held = eventually(point, held) => held,
            ready = self.wait_until_ready() => {
                ready?;
                bail!("the server is ready, and has not been held at {point}")
            }
        }
    }

    /// Waits until it serves.
    pub async fn wait_until_ready(&mut self) -> Result<()> {
        let Ok(ready) = tokio::time::timeout(WITHIN, self.becomes_ready()).await else {
            bail!("the server was not ready within {WITHIN:?}:\n{}", self.log_tail());
        };
        ready
    }

    async fn becomes_ready(&mut self) -> Result<()> {
        loop {
            let mut client = self.client();
            let answer = tokio::time::timeout(PROBED_WITHIN, client.get("/api/health/ready")).await;
            let is_ready = answer.is_ok_and(|answer| answer.is_ok_and(|answer| answer.status == 200));
            if let Some(status) = self.child.try_wait()? {
                let whose = if is_ready {
                    "the port is taken, by another that answers; "
                } else {
                    ""
                };
                bail!(
                    "{whose}the server ended before it was ready ({status}):\n{}",
                    self.log_tail()
                );
            }
            // Whoever has the port may answer before this one has found it taken.
            if is_ready && self.listens() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Server {
    #[expect(
        clippy::print_stderr,
        reason = "the test's output is where somebody looks for the reason"
    )]
    fn drop(&mut self) {
        if self.quiet {
            return;
        }
        eprintln!("the log of the server at {}:\n{}", self.address, self.log_tail());
    }
}

fn tail(log: &Path) -> String {
    last_lines(log, |_| true)
}

fn last_lines(log: &Path, wanted: impl Fn(&str) -> bool) -> String {
    // A log that is no file, such as a full device, may have no end.
    let text = if log.is_file() {
        std::fs::read_to_string(log).unwrap_or_default()
    } else {
        String::new()
    };
    let lines: Vec<&str> = text.lines().filter(|line| wanted(line)).collect();
    lines[lines.len().saturating_sub(LOG_LINES_MAX)..].join("\n")
}

/// Asks again until the answer is yes, and fails past a bound. A question under way by then gets as long again, since a
/// look at a big database takes its time; one that takes longer still is not answered at all.
pub async fn eventually(what: &str, question: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    eventually_within(WITHIN, what, question).await
}

/// The same with a bound of the caller's own.
pub(crate) async fn eventually_within(
    within: Duration,
    what: &str,
    mut question: impl AsyncFnMut() -> Result<bool>,
) -> Result<()> {
    let begun = tokio::time::Instant::now();
    loop {
        let answer = tokio::time::timeout_at(begun + 2 * within, question()).await;
        if answer.with_context(|| format!("no answer within {:?}: {what}", 2 * within))?? {
            return Ok(());
        }
        ensure!(begun.elapsed() < within, "not within {within:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// An address whose port was free a moment ago.
pub fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on 127.0.0.1")?;
    Ok(listener.local_addr()?)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn a_question_that_is_never_answered_ends_at_twice_the_bound() {
        let bound = Duration::from_millis(20);
        let never = async || Ok(std::future::pending().await);
        let error = eventually_within(bound, "it answers", never).await.unwrap_err();
        assert_eq!(error.to_string(), "no answer within 40ms: it answers");
        let error = eventually_within(bound, "it is so", async || Ok(false)).await;
        assert_eq!(error.unwrap_err().to_string(), "not within 20ms: it is so");
    }

    #[tokio::test]
    async fn only_what_was_logged_since_then_counts() -> Result<()> {
        let directory = tempfile::tempdir()?;
        let log = directory.path().join("log");
        let place = Place::Here(free_address()?);
        let mut server = Server::begin(Command::new("true"), place, log.clone()).await?;
        server.hush();
        std::fs::write(&log, "early")?;
        let length = server.log_length();
        std::fs::write(&log, "early late")?;
        assert!(server.has_logged_since(0, "early") && !server.has_logged_since(length, "early"));
        assert!(server.has_logged_since(length, "late"));
        Ok(())
    }

    #[tokio::test]
    async fn another_that_answers_at_the_port_is_not_taken_for_the_server() -> Result<()> {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 1024]).await;
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                    .await;
            }
        });
        let directory = tempfile::tempdir()?;
        let (command, log) = (Command::new("true"), directory.path().join("log"));
        let mut server = Server::begin(command, Place::Here(address), log).await?;
        let error = server.wait_until_ready().await.unwrap_err();
        assert!(error.to_string().contains("the port is taken"), "{error}");
        Ok(())
    }
}

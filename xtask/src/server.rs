//! Building the server once, and running it for a command that needs one.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::command;
use crate::workspace::Workspace;

/// How the test suites find the server that they drive.
pub(crate) const BINARY_VARIABLE: &str = "TREELINE_BIN";

/// How long a server may take until it is ready. Far more than it needs: a loaded machine must not fail a run.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Builds the release binary and answers where it is. The one exact set of packages keeps features that only
/// tests ask for out of it.
pub(crate) fn build(workspace: &Workspace) -> Result<PathBuf> {
    let arguments = [
        "build",
        "--quiet",
        "--release",
        "--locked",
        "-p",
        "treeline-server",
    ];
    command::run(command::cargo(&workspace.root).args(arguments))?;
    Ok(binary(workspace))
}

/// Where the release binary is, once it is built.
pub(crate) fn binary(workspace: &Workspace) -> PathBuf {
    workspace
        .target
        .join("release")
        .join(format!("treeline{}", std::env::consts::EXE_SUFFIX))
}

/// A server of ours on a port of its own. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl Server {
    /// Starts the binary with its data and its log under `directory`, and waits until it is ready.
    pub(crate) fn start(binary: &Path, directory: &Path, options: &[&OsStr]) -> Result<Server> {
        let address = free_address()?;
        let log = directory.join("server.log");
        let log_file = File::create(&log).context("cannot create the server's log")?;
        let child = program(binary)
            .args(["serve", "--listen", &address.to_string(), "--data-dir"])
            .arg(directory.join("data"))
            .args(options)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(log_file.try_clone()?)
            .stderr(log_file)
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let mut server = Server { child, address, log };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// `http://host:port`, without a slash at its end.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it answers to a `GET`, head and all.
    pub(crate) fn ask(&self, path: &str) -> Result<String> {
        ask(self.address, path).with_context(|| format!("the server at {} does not answer", self.address))
    }

    /// Ends it without a word, as a crash would.
    pub(crate) fn end(&mut self) {
        // It may have ended by itself; there is nobody left to tell either way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The last lines that it logged.
    pub(crate) fn log_tail(&self, lines_max: usize) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(lines_max)..].join("\n")
    }

    /// Whether it still runs. A server that a test ended must not pass for one that held out.
    pub(crate) fn alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let begun = Instant::now();
        while !is_ready(self.address) {
            if let Some(status) = self.child.try_wait()? {
                bail!(
                    "the server ended before it was ready ({status}):\n{}",
                    self.log_tail(20)
                );
            }
            if begun.elapsed() > READY_WITHIN {
                bail!(
                    "the server was not ready within {READY_WITHIN:?}:\n{}",
                    self.log_tail(20)
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Has the server's own audit look for anything broken in what a server left under `directory`.
pub(crate) fn check(binary: &Path, directory: &Path) -> Result<()> {
    let mut audit = program(binary);
    audit.args(["check", "--data-dir"]).arg(directory.join("data"));
    command::run(&mut audit)
}

/// The server without a developer's own settings, which must not decide what a test run writes to.
fn program(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TREELINE_")) {
        command.env_remove(name);
    }
    command
}

/// A port that was free a moment ago.
fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on 127.0.0.1")?;
    Ok(listener.local_addr()?)
}

fn is_ready(address: SocketAddr) -> bool {
    ask(address, "/api/health/ready").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

/// One request by hand: an HTTP client would be the largest dependency of this package.
fn ask(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let patience = Duration::from_secs(2);
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

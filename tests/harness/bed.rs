//! A place for one test: a database, a directory for files, and the servers that run on them.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};

use crate::container::{self, Containers, Told};
use crate::server::{Place, eventually_within};
use crate::{Client, Hooks, Rows, Server, free_address};

/// Names the binary to test. Without it nothing can be tested, and a test that does nothing must not pass.
const BINARY_VARIABLE: &str = "TREELINE_BIN";

/// `on` or `off`: whether the servers of this run let writes of one name take turns. Unset: as they do by default.
const LOCAL_LOCKS_VARIABLE: &str = "TREELINE_TEST_LOCAL_LOCKS";

/// The database's file, in the bed's directory.
const DATABASE_FILE: &str = "catalog.db";

/// How long a command that is not a server may take. An audit of some hundred thousand rows takes a minute.
const COMMAND_WITHIN: Duration = Duration::from_secs(600);

/// How long the nodes of a cluster have to come to hold the same rows: time to look at all of them more than once.
const AGREE_WITHIN: Duration = Duration::from_secs(120);

/// Everything of one test, on disk until it is dropped.
#[derive(Debug)]
pub struct Bed {
    directory: TempDir,
    binary: PathBuf,
    /// The URL of the database, a file of the bed's own unless the test brought one; of a cluster, one a node.
    databases: Vec<String>,
    /// What the servers are told beyond their arguments; commands are not.
    variables: Vec<(String, String)>,
    /// Where servers run, if not as processes.
    containers: Option<Containers>,
}

/// A database that somebody else is writing to. Dropping it rolls that back.
#[derive(Debug)]
#[must_use = "the database is free as soon as this is dropped"]
pub struct HeldDatabase(#[expect(dead_code, reason = "is killed when it is dropped")] Child);

/// Which build a server is of, and how far its start is waited for.
#[derive(Clone, Copy)]
enum Build<'a> {
    /// Release or test, until it is ready.
    Any,
    /// A test build that tests may drive, until it is ready.
    WithHooks,
    /// The same, until it is held at this point.
    HeldAt(&'a str),
}

/// How a command ended.
#[derive(Debug)]
pub struct Outcome {
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// What it printed for programs.
    pub stdout: String,
    /// What it printed for people.
    pub stderr: String,
}

impl Outcome {
    /// All that it printed.
    pub fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// The server binary that the suites run. Fails where none is named.
pub fn binary() -> Result<PathBuf> {
    let Some(binary) = std::env::var_os(BINARY_VARIABLE) else {
        bail!(
            "{BINARY_VARIABLE} is not set, so there is no server to test. `cargo xtask ci` builds one and sets it; \
             by hand: `cargo build --release -p treeline-server` and {BINARY_VARIABLE}=target/release/treeline"
        );
    };
    let binary = std::path::absolute(binary)?;
    ensure!(
        binary.is_file(),
        "{BINARY_VARIABLE} names `{}`, which is no file",
        binary.display()
    );
    Ok(binary)
}

impl Bed {
    /// An empty bed. Fails where no binary is named.
    pub fn new() -> Result<Bed> {
        Bed::of(binary()?, Vec::new())
    }

    /// An empty bed for another build of the server, on a database that lies elsewhere if URLs are given: several are
    /// of the nodes of one cluster.
    pub fn of(binary: PathBuf, mut databases: Vec<String>) -> Result<Bed> {
        let directory = tempfile::Builder::new().prefix("treeline-test-").tempdir()?;
        if databases.is_empty() {
            let file = directory.path().join(DATABASE_FILE);
            databases.push(format!("sqlite:{}", file.display()));
        }
        let mut bed = Bed {
            directory,
            binary,
            databases,
            variables: Vec::new(),
            containers: Containers::from_environment()?,
        };
        if let Ok(local_locks) = std::env::var(LOCAL_LOCKS_VARIABLE) {
            bed.set_variable("TREELINE_LOCAL_LOCKS", &local_locks);
        }
        std::fs::create_dir(bed.files())?;
        Ok(bed)
    }

    /// Tells every server that is started from now on one more variable.
    pub fn set_variable(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Where filesets of this test keep their files.
    pub fn files(&self) -> PathBuf {
        self.path("files")
    }

    /// The file that all servers of this bed share, unless the database lies elsewhere.
    pub fn database(&self) -> PathBuf {
        self.path(DATABASE_FILE)
    }

    /// The URL by which a server of this bed reaches the database that all share. Those with even numbers and those with
    /// odd ones do so at different nodes where it is a cluster of two.
    pub fn database_url(&self, server: usize) -> &str {
        &self.databases[server % self.databases.len()]
    }

    /// At how many nodes the database can be written to.
    pub fn nodes(&self) -> usize {
        self.databases.len()
    }

    /// Something of this test's own.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// One more server on the shared database, ready to answer. Each has a data directory of its own.
    pub async fn start(&self) -> Result<Server> {
        self.start_with(&[]).await
    }

    /// The same with more arguments.
    pub async fn start_with(&self, arguments: &[&str]) -> Result<Server> {
        let (server, _) = self.launch(Build::Any, arguments).await?;
        Ok(server)
    }

    /// One whose log goes there, whatever becomes of it.
    pub async fn start_logging_to(&self, log: &Path) -> Result<Server> {
        let address = free_address()?;
        let command = self.command(&["serve", "--listen", &address.to_string()]);
        Server::start(command, Place::Here(address), log.to_owned()).await
    }

    /// A test build with more arguments, which also listens for tests.
    pub async fn start_with_hooks(&self, arguments: &[&str]) -> Result<(Server, Hooks)> {
        self.launch(Build::WithHooks, arguments).await
    }

    /// The same, held at a point on its way to serve: under [`Hooks::ANY_NAME`] it is released there.
    pub async fn start_held(&self, point: &str, arguments: &[&str]) -> Result<(Server, Hooks)> {
        self.launch(Build::HeldAt(point), arguments).await
    }

    /// A port that was free a moment ago may be taken by a connection that somebody opened meanwhile, so a start may
    /// need another try.
    async fn launch(&self, build: Build<'_>, arguments: &[&str]) -> Result<(Server, Hooks)> {
        const ATTEMPTS_MAX: usize = 3;
        let mut attempt = 1;
        loop {
            let (address, mut hooks) = match self.containers {
                Some(_) => (container::API, container::HOOKS),
                None => (free_address()?, free_address()?),
            };
            let mut words = vec!["serve".to_owned(), "--listen".to_owned(), address.to_string()];
            if !matches!(build, Build::Any) {
                words.extend(["--test-listen".to_owned(), hooks.to_string()]);
            }
            if let Build::HeldAt(point) = build {
                words.extend(["--test-hold".to_owned(), point.to_owned()]);
            }
            words.extend(arguments.iter().map(|argument| (*argument).to_owned()));
            let mut server = self.begin(address, words).await?;
            hooks.set_ip(server.address().ip());
            let hooks = Hooks::at(hooks);
            let begun = match build {
                Build::HeldAt(point) => server.wait_until_held(hooks, point).await,
                Build::Any | Build::WithHooks => server.wait_until_ready().await,
            };
            match begun {
                Ok(()) => return Ok((server, hooks)),
                Err(error) if attempt < ATTEMPTS_MAX && is_taken(&error) => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    async fn begin(&self, address: SocketAddr, words: Vec<String>) -> Result<Server> {
        let mut command = self.command(&[]);
        command.args(&words);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let log = self.path(&format!("server-{:08x}.log", fastrand::u32(..)));
        let Some(containers) = &self.containers else {
            return Server::begin(command, Place::Here(address), log).await;
        };
        let variables = command.as_std().get_envs();
        let told = Told {
            binary: &self.binary,
            directory: self.root(),
            variables: variables
                .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
                .collect(),
            arguments: words,
        };
        let (container, command) = containers.make(told).await?;
        Server::begin(command, Place::Container(container), log).await
    }

    /// Where servers reach something that a test listens on.
    pub fn host(&self) -> Ipv4Addr {
        self.containers
            .as_ref()
            .map_or(Ipv4Addr::LOCALHOST, |containers| containers.host)
    }

    /// Runs a command of the binary on the shared database to its end.
    pub async fn run(&self, arguments: &[&str]) -> Result<Outcome> {
        self.run_on(self.database_url(0), arguments).await
    }

    /// The same on another database.
    pub async fn run_on(&self, database: &str, arguments: &[&str]) -> Result<Outcome> {
        let mut command = self.command(arguments);
        command.env("TREELINE_DATABASE", database);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = tokio::time::timeout(COMMAND_WITHIN, command.output())
            .await
            .with_context(|| format!("`treeline {}` did not end", arguments.join(" ")))??;
        Ok(Outcome {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Fails unless the audit of the database finds nothing.
    pub async fn check_is_clean(&self) -> Result<()> {
        let outcome = self.run(&["check"]).await?;
        ensure!(
            outcome.code == Some(0),
            "`treeline check` found something:\n{}",
            outcome.text()
        );
        Ok(())
    }

    /// Every row of the database, damaged or not.
    pub async fn rows(&self) -> Result<Rows> {
        self.rows_at(0).await
    }

    /// The same as a server with this number would see them.
    pub async fn rows_at(&self, server: usize) -> Result<Rows> {
        let outcome = self
            .run_on(self.database_url(server), &["check", "--dump"])
            .await?;
        Rows::parse(&outcome.stdout)
            .with_context(|| format!("`treeline check --dump` said:\n{}", outcome.text()))
    }

    /// What the nodes of a cluster hold that is not the same at each, if they do not come to agree. Servers go on with what
    /// they do of their own accord, between one look and the other as well.
    pub async fn difference_of_nodes(&self) -> Result<Option<String>> {
        for node in 1..self.nodes() {
            let agree = eventually_within(AGREE_WITHIN, "the nodes hold the same rows", async || {
                Ok(self.rows().await? == self.rows_at(node).await?)
            });
            if agree.await.is_err() {
                return Ok(Some(self.rows().await?.difference(&self.rows_at(node).await?)));
            }
        }
        Ok(None)
    }

    /// Changes the database by hand, with the foreign keys off.
    pub async fn damage(&self, sql: &str) -> Result<()> {
        const SCRIPT: &str = "import sqlite3, sys\n\
            database = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
            database.execute('PRAGMA foreign_keys = OFF')\n\
            database.execute('PRAGMA ignore_check_constraints = ON')\n\
            database.executescript(sys.argv[2])\n";
        let database = self.database();
        let output = Command::new("python3")
            .args(["-c", SCRIPT])
            .arg(&database)
            .arg(sql)
            .output()
            .await?;
        ensure!(
            output.status.success(),
            "the damage failed:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    /// Keeps every other process from writing to the database, until what is answered is dropped.
    pub async fn hold(&self) -> Result<HeldDatabase> {
        const SCRIPT: &str = "import sqlite3, sys\n\
            database = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
            database.execute('BEGIN IMMEDIATE')\n\
            print('held', flush=True)\n\
            sys.stdin.read()\n";
        let mut child = Command::new("python3")
            .args(["-c", SCRIPT])
            .arg(self.database())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut said = [0; 4];
        let stdout = child.stdout.as_mut().context("it has a standard output")?;
        let held = tokio::time::timeout(COMMAND_WITHIN, stdout.read_exact(&mut said)).await;
        held.context("the database is not to be had")??;
        Ok(HeldDatabase(child))
    }

    /// As many clients as asked for, dealt out over the servers in turn.
    pub fn clients(servers: &[&Server], count: usize) -> Vec<Client> {
        let addresses: Vec<SocketAddr> = servers.iter().map(|server| server.address()).collect();
        (0..count)
            .map(|number| Client::new(addresses[number % addresses.len()]))
            .collect()
    }

    /// The directory of everything that is this bed's.
    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    /// The binary, told where the database is and nothing else of the environment.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("TREELINE_") {
                command.env_remove(variable);
            }
        }
        command
            .args(arguments)
            .env("TREELINE_DATABASE", self.database_url(0))
            .env("TREELINE_DATA_DIR", self.path("data"))
            .current_dir(self.root())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

/// As the server says it of its own port and of the one for tests.
fn is_taken(error: &anyhow::Error) -> bool {
    let text = format!("{error:#}");
    text.contains("the port is taken") || text.contains("in use")
}

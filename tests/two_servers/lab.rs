//! What all rows share: the build under test, the backends that take part, and the pairs of servers on them.
//!
//! A pair takes a second to start and a row far less, so pairs are used again. A row has its pair alone: a writer that
//! is held on SQLite would hold up any other row on the same file.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, ensure};
use tokio::runtime::Runtime;
use treeline_tests::Bed;

use crate::pair::Pair;

/// Names the test build of the server.
const BINARY_VARIABLE: &str = "TREELINE_TEST_BIN";

/// Names databases, one a pair, which are there and empty on every database server that takes part.
const DATABASES_VARIABLE: &str = "TREELINE_TEST_DATABASES";

/// Ids of the rows to run, separated by commas; all where there are none.
const ROWS_VARIABLE: &str = "TREELINE_TEST_ROWS";

/// Rules that the servers are to leave out.
const MUTANTS_VARIABLE: &str = "TREELINE_TEST_MUTANTS";

/// Everything, instead of what fits into a coffee break.
const SOAK_VARIABLE: &str = "TREELINE_TEST_SOAK";

/// Set: each row of one kind only, in turn.
const ONE_KIND_VARIABLE: &str = "TREELINE_TEST_ONE_KIND";

/// Where the rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Sqlite,
    Postgres,
    MariaDb,
    MySql,
    /// A cluster of two MariaDB nodes, each server at its own.
    Galera,
}

impl Backend {
    pub(crate) const ALL: [Backend; 5] = [
        Backend::Sqlite,
        Backend::Postgres,
        Backend::MariaDb,
        Backend::MySql,
        Backend::Galera,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Backend::Sqlite => "sqlite",
            Backend::Postgres => "postgres",
            Backend::MariaDb => "mariadb",
            Backend::MySql => "mysql",
            Backend::Galera => "galera",
        }
    }

    /// Whether a writer that is held anywhere holds up every other writer.
    pub(crate) const fn has_one_writer(self) -> bool {
        matches!(self, Backend::Sqlite)
    }

    /// Whether each server writes at a node of its own. A row that is locked at one is not locked at the other, so that
    /// nobody waits, and who commits second is refused.
    pub(crate) const fn has_two_primaries(self) -> bool {
        matches!(self, Backend::Galera)
    }

    /// The URLs of the server that takes part, or of the nodes of its cluster; SQLite needs none.
    fn servers(self) -> Vec<String> {
        let urls = std::env::var(self.variable()).unwrap_or_default();
        urls.split_whitespace().map(str::to_owned).collect()
    }

    fn variable(self) -> String {
        format!("TREELINE_TEST_{}_URL", self.name().to_uppercase())
    }
}

/// The shared part of a run.
pub(crate) struct Lab {
    pub(crate) runtime: Runtime,
    pub(crate) soak: bool,
    /// Whether one kind a row is enough, on every backend.
    pub(crate) one_kind: bool,
    rows: Vec<String>,
    binary: PathBuf,
    mutants: String,
    pools: Vec<Pool>,
}

/// The pairs of one backend.
struct Pool {
    backend: Backend,
    servers: Vec<String>,
    /// Databases without a pair yet.
    databases: Mutex<Vec<String>>,
    idle: Mutex<Vec<Pair>>,
}

impl Lab {
    /// Looks at the environment. `None` where no build under test is named; why is said on the way.
    #[expect(
        clippy::print_stderr,
        reason = "what does not take part is said, never passed over"
    )]
    pub(crate) fn open() -> Result<Option<Lab>> {
        let Some(binary) = std::env::var_os(BINARY_VARIABLE) else {
            eprintln!(
                "not run: {BINARY_VARIABLE} names no test build of the server; `cargo xtask itest` makes one and sets it"
            );
            return Ok(None);
        };
        let binary = std::path::absolute(binary)?;
        ensure!(
            binary.is_file(),
            "{BINARY_VARIABLE} names `{}`, which is no file",
            binary.display()
        );
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let databases = words(DATABASES_VARIABLE);
        let mut pools = Vec::new();
        for backend in Backend::ALL {
            let servers = backend.servers();
            if servers.is_empty() && backend != Backend::Sqlite {
                eprintln!(
                    "not run: {}, since {} is not set",
                    backend.name(),
                    backend.variable()
                );
                continue;
            }
            pools.push(Pool {
                backend,
                servers,
                databases: Mutex::new(databases.clone()),
                idle: Mutex::default(),
            });
        }
        Ok(Some(Lab {
            runtime,
            soak: std::env::var_os(SOAK_VARIABLE).is_some(),
            one_kind: std::env::var_os(ONE_KIND_VARIABLE).is_some(),
            rows: words(ROWS_VARIABLE),
            binary,
            mutants: std::env::var(MUTANTS_VARIABLE).unwrap_or_default(),
            pools,
        }))
    }

    /// Whether this row was asked for.
    pub(crate) fn wants(&self, id: &str) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|row| row == id)
    }

    /// Whether the servers leave out a rule, so that rows are expected to fail.
    pub(crate) fn has_mutants(&self) -> bool {
        !self.mutants.is_empty()
    }

    pub(crate) fn backends(&self) -> impl Iterator<Item = Backend> {
        self.pools.iter().map(|pool| pool.backend)
    }

    /// A pair that nobody uses, with both servers up.
    pub(crate) async fn take(&self, backend: Backend) -> Result<Pair> {
        let pool = self.pool(backend)?;
        let idle = lock(&pool.idle).pop();
        match idle {
            Some(mut pair) => match pair.revive().await {
                Ok(()) => Ok(pair),
                Err(error) => {
                    lock(&pool.idle).push(pair);
                    Err(error)
                }
            },
            None => self.start(backend).await,
        }
    }

    /// A new pair, on a database that is empty.
    async fn start(&self, backend: Backend) -> Result<Pair> {
        Pair::start(self.bed(self.pool(backend)?)?, backend).await
    }

    /// A new pair on an empty database, of which the second server found the first about to make the tables.
    pub(crate) async fn start_in_turn(&self, backend: Backend) -> Result<Pair> {
        Pair::start_in_turn(self.bed(self.pool(backend)?)?, backend).await
    }

    /// The row is done; the pair waits for the next.
    pub(crate) fn put(&self, pair: Pair) -> Result<()> {
        lock(&self.pool(pair.backend)?.idle).push(pair);
        Ok(())
    }

    /// Ends every server.
    pub(crate) fn close(&self) {
        // Ending a child needs the runtime that started it.
        let _entered = self.runtime.enter();
        for pool in &self.pools {
            lock(&pool.idle).clear();
        }
    }

    fn bed(&self, pool: &Pool) -> Result<Bed> {
        let mut urls = Vec::new();
        if !pool.servers.is_empty() {
            let database = lock(&pool.databases).pop().with_context(|| {
                format!(
                    "{DATABASES_VARIABLE} names too few databases for {}",
                    pool.backend.name()
                )
            })?;
            for server in &pool.servers {
                let (server, _) = server
                    .rsplit_once('/')
                    .context("a server's URL ends with a database")?;
                urls.push(format!("{server}/{database}"));
            }
        }
        let mut bed = Bed::of(self.binary.clone(), urls)?;
        if !self.mutants.is_empty() {
            bed.set_variable("TREELINE_MUTANTS", &self.mutants);
        }
        Ok(bed)
    }

    fn pool(&self, backend: Backend) -> Result<&Pool> {
        let mut pools = self.pools.iter();
        pools
            .find(|pool| pool.backend == backend)
            .with_context(|| format!("{} takes no part", backend.name()))
    }
}

/// What a variable lists, separated by commas.
fn words(variable: &str) -> Vec<String> {
    let list = std::env::var(variable).unwrap_or_default();
    let words = list.split(',').filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

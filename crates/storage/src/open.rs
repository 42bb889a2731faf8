//! Opening a database: which one, with what bounds, and what an operator is told when it cannot be used.

use std::fmt;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use treeline_core::{Error, Result};

use crate::dialect::sqlite::SQLITE;
use crate::failure::Failure;
use crate::ids::Ids;
use crate::migrate::{self, MigrateReport};
use crate::network::{self, Network};
use crate::sql::Rendered;
use crate::sqlite::Sqlite;
use crate::store::{Shared, Store};
use crate::transaction::{Backend, Database};

/// How to open a store.
#[derive(Clone)]
pub struct StoreOptions {
    /// Which database: `sqlite:` and a file's path, or a `postgres:`, `mysql:` or `mariadb:` URL. One of PostgreSQL may name
    /// several hosts, of which the primary is used: `postgres://user@h1:5432,h2:5432/db`.
    pub url: String,
    /// The password, if it does not stand in the URL.
    pub password: Option<String>,
    /// Connections to a database server. Reads are fastest with four a core, and writes want more, since the database
    /// commits together what arrives together.
    pub connections_max: usize,
    /// The bound of a wait for a connection, in milliseconds.
    pub acquire_ms_max: u64,
    /// How often an update is tried again after it lost its version check (`occ.max_retries`).
    pub occ_retries_max: u32,
    /// The bound of one operation, waits and retries included, in milliseconds.
    pub operation_ms_max: u64,
    /// How long a claimed task belongs to its claimer, in milliseconds.
    pub task_lease_ms: i64,
}

impl StoreOptions {
    /// The defaults for a database.
    pub fn new(url: impl Into<String>) -> StoreOptions {
        StoreOptions {
            url: url.into(),
            password: None,
            connections_max: 16,
            acquire_ms_max: 10_000,
            occ_retries_max: 3,
            operation_ms_max: 10_000,
            task_lease_ms: 30_000,
        }
    }
}

impl fmt::Debug for StoreOptions {
    /// Shows the scheme of the URL only: the rest may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.url.split(':').next().unwrap_or_default();
        f.debug_struct("StoreOptions")
            .field("scheme", &scheme)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens a database. An empty one is initialised, and the embedded default upgrades an older schema itself.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a URL that names no database, or a schema newer than this binary;
    /// [`Error::ConnectionFailed`] for a database that cannot be reached, and [`Error::Unavailable`] for one that can and
    /// is of no use now: read-only, full, behind a pooler of transactions.
    pub async fn open(options: StoreOptions) -> Result<Store> {
        let database = match network::parse(&options)? {
            Some(network) => {
                #[cfg(feature = "test-hooks")]
                let _ = crate::mutants::BESIDE.set(network.clone());
                let network = Network::new(network);
                migrate::migrate_network(&network, false)
                    .await
                    .map_err(cannot_open)?;
                Database::Network(network)
            }
            None => {
                let file = sqlite_file(&options.url)?;
                blocking(move || {
                    migrate::migrate_sqlite(&file)?;
                    Ok(Database::Sqlite(Sqlite::open(&file, Rendered::new(&SQLITE))?))
                })
                .await?
            }
        };
        let backend = Backend::new(database, options.operation_ms_max);
        Ok(Store {
            shared: Arc::new(Shared {
                backend,
                ids: Arc::new(Ids::new()),
                options,
            }),
        })
    }

    /// Brings a database to this binary's schema and does nothing else.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn migrate(options: StoreOptions) -> Result<MigrateReport> {
        match network::parse(&options)? {
            Some(network) => migrate::migrate_network(&Network::new(network), true)
                .await
                .map_err(cannot_open),
            None => {
                let file = sqlite_file(&options.url)?;
                blocking(move || migrate::migrate_sqlite(&file)).await
            }
        }
    }
}

fn sqlite_file(url: &str) -> Result<PathBuf> {
    match url.strip_prefix("sqlite:") {
        Some(path) if !path.trim().is_empty() => {
            Ok(FilePath::new(path.strip_prefix("//").unwrap_or(path)).to_owned())
        }
        Some(_) | None => {
            let reason = "is none of sqlite:FILE, postgres://…, mysql://…, mariadb://…";
            Err(Error::invalid("database", reason))
        }
    }
}

/// An operator sees this one on the terminal: it says what the database said, and which key to mend.
fn cannot_open(failure: Failure) -> Error {
    match failure {
        Failure::Answer(error) => error,
        Failure::Refused(detail) | Failure::Broken(detail) => Error::invalid("database", detail),
        Failure::Unavailable(reason) | Failure::ReadOnly(reason) => Error::Unavailable { reason },
        Failure::Disconnected(detail) | Failure::Transient(_, detail) => Error::ConnectionFailed {
            target: "the database".to_owned(),
            reason: detail,
        },
        Failure::Lost | Failure::Unique(_) | Failure::Liveness => Error::invalid(
            "database",
            format!("it holds tables that are not ours: {failure:?}"),
        ),
    }
}

/// Runs file work away from the executor's threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::result::Result<T, Failure> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome.map_err(cannot_open),
        Err(panic) => Err(Error::internal(panic.to_string())),
    }
}

//! How the server gets at what is below it: the store and the dispatcher, made from the configuration.

use treeline_core::{Error, Result};
use treeline_dispatch::{Dispatcher, Settings};
use treeline_storage::{Finding, MigrateReport, Store, StoreOptions};

use crate::config::Config;

/// What a write waits for its turn comes on top of what it may take in the database, and must not matter beside it.
const LOCAL_LOCK_SHARE: u64 = 20;

/// How long a statement of an audit may take, in milliseconds: it looks at every row, and nobody waits for it as a client
/// does.
const AUDIT_MS_MAX: u64 = 30 * 60 * 1_000;

/// Opens the database (an empty one is initialised) and puts a dispatcher on it.
pub(crate) async fn open(config: &Config) -> Result<Dispatcher> {
    let store = Store::open(store_options(config)).await?;
    let defaults = Settings::new(config.data_dir.clone());
    let settings = Settings {
        allowed_roots: config.allowed_roots.clone(),
        retention_ms: config.retention_ms,
        sweep_interval_ms: config.sweep_interval_ms,
        local_locks: config.local_locks,
        local_lock_ms_max: defaults
            .local_lock_ms_max
            .min(config.operation_ms_max / LOCAL_LOCK_SHARE),
        ..defaults
    };
    Ok(Dispatcher::new(store, settings))
}

/// Upgrades the database and does nothing else.
pub(crate) async fn migrate(config: &Config) -> Result<MigrateReport> {
    Store::migrate(store_options(config)).await
}

/// What is wrong with the database.
pub(crate) async fn check(config: &Config) -> Result<Vec<Finding>> {
    let audited = existing(config, AUDIT_MS_MAX).await?;
    audited.check().await
}

/// Every row as a JSON line.
pub(crate) async fn dump(config: &Config) -> Result<String> {
    let dumped = existing(config, AUDIT_MS_MAX).await?;
    dumped.dump().await
}

/// Purges dropped rows past retention; answers how many.
pub(crate) async fn gc(config: &Config) -> Result<u64> {
    let purged = existing(config, config.operation_ms_max).await?;
    purged.purge(config.retention_ms).await
}

/// Opens a database that is there. To audit one that a mistyped path has just made would find nothing wrong.
async fn existing(config: &Config, operation_ms_max: u64) -> Result<Store> {
    if let Some(file) = config.database.file().filter(|file| !file.exists()) {
        let reason = format!("there is no file `{}`", file.display());
        return Err(Error::Unavailable { reason });
    }
    let options = StoreOptions {
        operation_ms_max: operation_ms_max.max(config.operation_ms_max),
        ..store_options(config)
    };
    Store::open(options).await
}

fn store_options(config: &Config) -> StoreOptions {
    StoreOptions {
        password: config.database.password().map(str::to_owned),
        connections_max: config.database.connections_max,
        acquire_ms_max: config.database.acquire_ms_max,
        occ_retries_max: config.occ_retries_max,
        operation_ms_max: config.operation_ms_max,
        task_lease_ms: config.task_lease_ms,
        ..StoreOptions::new(config.database.url())
    }
}

//! How the server gets at what is below it: the store and the dispatcher, made from the configuration.

use treeline_core::Result;
use treeline_dispatch::{Dispatcher, Settings};
use treeline_storage::{Finding, MigrateReport, Store, StoreOptions};

use crate::config::Config;

/// Opens the database (an empty one is initialised) and puts a dispatcher on it.
pub(crate) async fn open(config: &Config) -> Result<Dispatcher> {
    let store = Store::open(store_options(config)).await?;
    let settings = Settings {
        allowed_roots: config.allowed_roots.clone(),
        retention_ms: config.retention_ms,
        sweep_interval_ms: config.sweep_interval_ms,
        ..Settings::new(config.data_dir.clone())
    };
    Ok(Dispatcher::new(store, settings))
}

/// Upgrades the database and does nothing else.
pub(crate) async fn migrate(config: &Config) -> Result<MigrateReport> {
    Store::migrate(store_options(config)).await
}

/// What is wrong with the database.
pub(crate) async fn check(config: &Config) -> Result<Vec<Finding>> {
    Store::open(store_options(config)).await?.check().await
}

/// Every row as a JSON line.
pub(crate) async fn dump(config: &Config) -> Result<String> {
    Store::open(store_options(config)).await?.dump().await
}

/// Purges dropped rows past retention; answers how many.
pub(crate) async fn gc(config: &Config) -> Result<u64> {
    Store::open(store_options(config))
        .await?
        .purge(config.retention_ms)
        .await
}

fn store_options(config: &Config) -> StoreOptions {
    StoreOptions {
        occ_retries_max: config.occ_retries_max,
        operation_ms_max: config.operation_ms_max,
        task_lease_ms: config.task_lease_ms,
        ..StoreOptions::new(config.database.clone())
    }
}

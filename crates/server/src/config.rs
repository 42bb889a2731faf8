//! The configuration: every option once, as a flag, as a variable, and as a key of the file.
//!
//! A flag wins over its variable, which wins over the file, which wins over the default. [`Options`] is what was
//! given (by any of them), [`Config`] what it comes to, checked. Options are named alike everywhere: `--data-dir`,
//! `TREELINE_DATA_DIR`, `data_dir`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::Semaphore;
use treeline_dispatch::Settings;
use treeline_storage::StoreOptions;

use crate::app::Limits;

mod conf;
mod database;
mod options;

pub use database::Database;
pub use options::{LocalLocks, LogFormat, Options};

/// Why the configuration cannot be used: one line for the operator.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct ConfigError(String);

/// What the options come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where to listen.
    pub listen: String,
    /// Where everything of the server is kept; absolute.
    pub data_dir: PathBuf,
    /// The database.
    pub database: Database,
    /// What is logged.
    pub log_level: String,
    /// How log lines look.
    pub log_format: LogFormat,
    /// Below which directories filesets may lie; none: anywhere but the system's.
    pub allowed_roots: Option<Vec<PathBuf>>,
    /// The bounds of a request.
    pub limits: Limits,
    /// How long the head of a request may take.
    pub head_read_max: Duration,
    /// How long a client may take to read any of its answer.
    pub answer_stall_max: Duration,
    /// How many connections are open at a time.
    pub connections_max: usize,
    /// How long a shutdown waits.
    pub shutdown_max: Duration,
    /// How many threads serve requests.
    pub worker_threads: usize,
    /// How often a lost update is tried again.
    pub occ_retries_max: u32,
    /// How long one operation on the database may take, in milliseconds.
    pub operation_ms_max: u64,
    /// Whether writes of one name take turns.
    pub local_locks: bool,
    /// How long dropped rows are kept, in milliseconds.
    pub retention_ms: i64,
    /// How long a claim on a task holds, in milliseconds.
    pub task_lease_ms: i64,
    /// How often tasks are looked for, in milliseconds.
    pub sweep_interval_ms: u64,
    /// What the operator should know of the file, a line each; the log is not there yet when it is read.
    pub warnings: Vec<String>,
}

/// What a file gave.
#[derive(Debug, Default)]
struct Given {
    options: Options,
    /// The database's password, which a `gravitino.conf` may name; our own options only name a file with it.
    password: Option<String>,
    warnings: Vec<String>,
}

impl Config {
    /// Reads the file that the options name and puts everything together.
    pub fn load(given: Options) -> Result<Config, ConfigError> {
        let file = match &given.config {
            None => Given::default(),
            Some(path) => read_file(path)?,
        };
        let options = given.over(file.options);
        let data_dir = options
            .data_dir
            .clone()
            .unwrap_or_else(|| PathBuf::from("./treeline-data"));
        let data_dir = std::path::absolute(&data_dir)
            .map_err(|error| ConfigError(format!("the data directory `{}`: {error}", data_dir.display())))?;
        // What the layers below work with where nobody says otherwise.
        let (default_limits, store) = (Limits::default(), StoreOptions::new(""));
        let settings = Settings::new(data_dir.clone());
        let ms = |value: Option<u64>, default: Duration| value.map_or(default, Duration::from_millis);
        let database = Database::of(&options, file.password, &data_dir)?;
        let local_locks = match options.local_locks.unwrap_or(LocalLocks::Auto) {
            LocalLocks::On => true,
            LocalLocks::Off => false,
            LocalLocks::Auto => database.gains_by_local_locks(),
        };
        let config = Config {
            listen: options.listen.unwrap_or_else(|| "127.0.0.1:8090".to_owned()),
            database,
            data_dir,
            log_level: options.log_level.unwrap_or_else(|| "info".to_owned()),
            log_format: options.log_format.unwrap_or(LogFormat::Text),
            allowed_roots: options.allowed_roots,
            limits: Limits {
                body_bytes_max: options.body_bytes_max.unwrap_or(default_limits.body_bytes_max),
                bodies_bytes_max: options
                    .bodies_bytes_max
                    .unwrap_or(default_limits.bodies_bytes_max),
                body_read_max: ms(options.body_read_ms_max, default_limits.body_read_max),
                request_max: ms(options.request_ms_max, default_limits.request_max),
                requests_max: options.requests_max.unwrap_or(default_limits.requests_max),
                probe_max: default_limits.probe_max,
            },
            head_read_max: ms(options.head_read_ms_max, Duration::from_secs(30)),
            answer_stall_max: ms(options.answer_stall_ms_max, Duration::from_secs(30)),
            connections_max: options.connections_max.unwrap_or(4096),
            shutdown_max: ms(options.shutdown_ms_max, Duration::from_secs(30)),
            worker_threads: options.worker_threads.unwrap_or_else(cores),
            occ_retries_max: options.occ_retries_max.unwrap_or(store.occ_retries_max),
            operation_ms_max: options.operation_ms_max.unwrap_or(store.operation_ms_max),
            local_locks,
            retention_ms: signed("retention_ms", options.retention_ms)?.unwrap_or(settings.retention_ms),
            task_lease_ms: signed("task_lease_ms", options.task_lease_ms)?.unwrap_or(store.task_lease_ms),
            sweep_interval_ms: options.sweep_interval_ms.unwrap_or(settings.sweep_interval_ms),
            warnings: file.warnings,
        };
        config.check()?;
        Ok(config)
    }

    /// Refuses what would start a server that cannot work.
    fn check(&self) -> Result<(), ConfigError> {
        const PERMITS_MAX: usize = 1 << 20;
        let counts = [
            ("requests_max", self.limits.requests_max, PERMITS_MAX),
            ("connections_max", self.connections_max, PERMITS_MAX),
            ("worker_threads", self.worker_threads, 1024),
            ("database_connections_max", self.database.connections_max, 1024),
            ("body_bytes_max", self.limits.body_bytes_max, 1 << 30),
            (
                "bodies_bytes_max",
                self.limits.bodies_bytes_max,
                Semaphore::MAX_PERMITS,
            ),
        ];
        for (key, value, max) in counts {
            if !(1..=max).contains(&value) {
                return Err(ConfigError(format!(
                    "`{key}` is {value}; it must be from 1 to {max}"
                )));
            }
        }
        let Limits {
            body_bytes_max,
            bodies_bytes_max,
            ..
        } = self.limits;
        if bodies_bytes_max < body_bytes_max {
            return Err(ConfigError(format!(
                "`bodies_bytes_max` is {bodies_bytes_max}; it must not be below `body_bytes_max`, which is {body_bytes_max}"
            )));
        }
        let waits = [
            ("head_read_ms_max", self.head_read_max.as_millis()),
            ("answer_stall_ms_max", self.answer_stall_max.as_millis()),
            ("body_read_ms_max", self.limits.body_read_max.as_millis()),
            ("request_ms_max", self.limits.request_max.as_millis()),
            ("operation_ms_max", self.operation_ms_max.into()),
            ("database_acquire_ms_max", self.database.acquire_ms_max.into()),
            ("task_lease_ms", self.task_lease_ms.unsigned_abs().into()),
            ("sweep_interval_ms", self.sweep_interval_ms.into()),
        ];
        for (key, value) in waits {
            if value == 0 {
                return Err(ConfigError(format!("`{key}` is 0; it must be at least 1")));
            }
        }
        let roots = self.allowed_roots.iter().flatten();
        match roots.into_iter().find(|root| !root.is_absolute()) {
            Some(root) => Err(ConfigError(format!(
                "`allowed_roots`: `{}` is not absolute",
                root.display()
            ))),
            None => Ok(()),
        }
    }
}

fn read_file(path: &Path) -> Result<Given, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| ConfigError(format!("the configuration file `{}`: {error}", path.display())))?;
    if path.extension().is_some_and(|ending| ending == "conf") {
        return conf::read(&text);
    }
    let options = toml::from_str(&text).map_err(|error| {
        let line = error
            .span()
            .map_or(0, |span| text[..span.start].matches('\n').count() + 1);
        ConfigError(format!(
            "the configuration file `{}`, line {line}: {}",
            path.display(),
            error.message()
        ))
    })?;
    Ok(Given {
        options,
        ..Given::default()
    })
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

fn signed(key: &str, value: Option<u64>) -> Result<Option<i64>, ConfigError> {
    let signed = value.map(i64::try_from).transpose();
    signed.map_err(|_| ConfigError(format!("`{key}` is too large")))
}

#[cfg(test)]
mod tests;

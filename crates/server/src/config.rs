//! The configuration: every option once, as a flag, as a variable, and as a key of the file.
//!
//! A flag wins over its variable, which wins over the file, which wins over the default. [`Options`] is what was
//! given (by any of them), [`Config`] what it comes to, checked. Options are named alike everywhere: `--data-dir`,
//! `TREELINE_DATA_DIR`, `data_dir`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use serde::Deserialize;

use crate::app::Limits;

mod conf;

/// Why the configuration cannot be used: one line for the operator.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct ConfigError(String);

/// What was given: each is none where it was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Where to listen
    #[arg(
        long,
        global = true,
        env = "TREELINE_LISTEN",
        value_name = "HOST:PORT",
        help_heading = "Options"
    )]
    pub listen: Option<String>,

    /// Where the embedded database and everything else of the server is kept [default: ./treeline-data]
    #[arg(long, global = true, env = "TREELINE_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// The database [default: sqlite:<data-dir>/treeline.db]
    #[arg(long, global = true, env = "TREELINE_DATABASE", value_name = "URL")]
    pub database: Option<String>,

    /// A configuration file: TOML, or `gravitino.conf` by its ending
    #[arg(long, global = true, env = "TREELINE_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// What is logged, as a filter: `info`, or `info,treeline_server=debug` for an access log [default: info]
    #[arg(long, global = true, env = "TREELINE_LOG_LEVEL", value_name = "FILTER")]
    pub log_level: Option<String>,

    /// How log lines look [default: text]
    #[arg(long, global = true, env = "TREELINE_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,

    /// Below which directories filesets may lie, separated by commas [default: any but the system's]
    #[arg(
        long,
        global = true,
        env = "TREELINE_ALLOWED_ROOTS",
        value_name = "DIRS",
        value_delimiter = ',',
        num_args = 1
    )]
    pub allowed_roots: Option<Vec<PathBuf>>,

    /// The longest body of a request [default: 4194304]
    #[arg(long, global = true, env = "TREELINE_BODY_BYTES_MAX", value_name = "BYTES")]
    pub body_bytes_max: Option<usize>,

    /// How long the head of a request may take, and an idle connection stays open [default: 30000]
    #[arg(long, global = true, env = "TREELINE_HEAD_READ_MS_MAX", value_name = "MS")]
    pub head_read_ms_max: Option<u64>,

    /// How long the body of a request may take to arrive [default: 20000]
    #[arg(long, global = true, env = "TREELINE_BODY_READ_MS_MAX", value_name = "MS")]
    pub body_read_ms_max: Option<u64>,

    /// How long a request may take before it is answered 503 [default: 30000]
    #[arg(long, global = true, env = "TREELINE_REQUEST_MS_MAX", value_name = "MS")]
    pub request_ms_max: Option<u64>,

    /// How many requests are worked on at a time [default: 512]
    #[arg(long, global = true, env = "TREELINE_REQUESTS_MAX", value_name = "COUNT")]
    pub requests_max: Option<usize>,

    /// How many connections are open at a time [default: 4096]
    #[arg(long, global = true, env = "TREELINE_CONNECTIONS_MAX", value_name = "COUNT")]
    pub connections_max: Option<usize>,

    /// How long a shutdown waits for requests in flight [default: 30000]
    #[arg(long, global = true, env = "TREELINE_SHUTDOWN_MS_MAX", value_name = "MS")]
    pub shutdown_ms_max: Option<u64>,

    /// How many threads serve requests [default: one a core]
    #[arg(long, global = true, env = "TREELINE_WORKER_THREADS", value_name = "COUNT")]
    pub worker_threads: Option<usize>,

    /// How often an update that lost a race is tried again [default: 3]
    #[arg(long, global = true, env = "TREELINE_OCC_RETRIES_MAX", value_name = "COUNT")]
    pub occ_retries_max: Option<u32>,

    /// How long one operation on the database may take, its retries included [default: 10000]
    #[arg(long, global = true, env = "TREELINE_OPERATION_MS_MAX", value_name = "MS")]
    pub operation_ms_max: Option<u64>,

    /// How long dropped rows are kept before they are purged [default: 604800000, a week]
    #[arg(long, global = true, env = "TREELINE_RETENTION_MS", value_name = "MS")]
    pub retention_ms: Option<u64>,

    /// How long a server may be silent before another takes over its work on directories [default: 60000]
    #[arg(long, global = true, env = "TREELINE_TASK_LEASE_MS", value_name = "MS")]
    pub task_lease_ms: Option<u64>,

    /// How often unfinished work on directories is looked for [default: 30000]
    #[arg(long, global = true, env = "TREELINE_SWEEP_INTERVAL_MS", value_name = "MS")]
    pub sweep_interval_ms: Option<u64>,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What the options come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where to listen.
    pub listen: String,
    /// Where everything of the server is kept; absolute.
    pub data_dir: PathBuf,
    /// The database's URL.
    pub database: String,
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
    /// How long dropped rows are kept, in milliseconds.
    pub retention_ms: i64,
    /// How long a claim on a task holds, in milliseconds.
    pub task_lease_ms: i64,
    /// How often tasks are looked for, in milliseconds.
    pub sweep_interval_ms: u64,
    /// What the operator should know of the file, a line each; the log is not there yet when it is read.
    pub warnings: Vec<String>,
}

impl Config {
    /// Reads the file that the options name and puts everything together.
    pub fn load(given: Options) -> Result<Config, ConfigError> {
        let (file, warnings) = match &given.config {
            None => (Options::default(), Vec::new()),
            Some(path) => read_file(path)?,
        };
        Config::of(given.over(file), warnings)
    }

    fn of(options: Options, warnings: Vec<String>) -> Result<Config, ConfigError> {
        let data_dir = options
            .data_dir
            .unwrap_or_else(|| PathBuf::from("./treeline-data"));
        let data_dir = std::path::absolute(&data_dir)
            .map_err(|error| ConfigError(format!("the data directory `{}`: {error}", data_dir.display())))?;
        let default_limits = Limits::default();
        let ms = |value: Option<u64>, default: Duration| value.map_or(default, Duration::from_millis);
        let config = Config {
            listen: options.listen.unwrap_or_else(|| "127.0.0.1:8090".to_owned()),
            database: database(options.database, &data_dir)?,
            data_dir,
            log_level: options.log_level.unwrap_or_else(|| "info".to_owned()),
            log_format: options.log_format.unwrap_or(LogFormat::Text),
            allowed_roots: options.allowed_roots,
            limits: Limits {
                body_bytes_max: options.body_bytes_max.unwrap_or(default_limits.body_bytes_max),
                body_read_max: ms(options.body_read_ms_max, default_limits.body_read_max),
                request_max: ms(options.request_ms_max, default_limits.request_max),
                requests_max: options.requests_max.unwrap_or(default_limits.requests_max),
                probe_max: default_limits.probe_max,
            },
            head_read_max: ms(options.head_read_ms_max, Duration::from_secs(30)),
            connections_max: options.connections_max.unwrap_or(4096),
            shutdown_max: ms(options.shutdown_ms_max, Duration::from_secs(30)),
            worker_threads: options.worker_threads.unwrap_or_else(cores),
            occ_retries_max: options.occ_retries_max.unwrap_or(3),
            operation_ms_max: options.operation_ms_max.unwrap_or(10_000),
            retention_ms: signed("retention_ms", options.retention_ms.unwrap_or(7 * 24 * 3_600_000))?,
            task_lease_ms: signed("task_lease_ms", options.task_lease_ms.unwrap_or(60_000))?,
            sweep_interval_ms: options.sweep_interval_ms.unwrap_or(30_000),
            warnings,
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
            ("body_bytes_max", self.limits.body_bytes_max, 1 << 30),
        ];
        for (key, value, max) in counts {
            if !(1..=max).contains(&value) {
                return Err(ConfigError(format!(
                    "`{key}` is {value}; it must be from 1 to {max}"
                )));
            }
        }
        let waits = [
            ("head_read_ms_max", self.head_read_max.as_millis()),
            ("body_read_ms_max", self.limits.body_read_max.as_millis()),
            ("request_ms_max", self.limits.request_max.as_millis()),
            ("operation_ms_max", self.operation_ms_max.into()),
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

impl Options {
    /// These, and for each that was not given the other's.
    fn over(self, below: Options) -> Options {
        Options {
            listen: self.listen.or(below.listen),
            data_dir: self.data_dir.or(below.data_dir),
            database: self.database.or(below.database),
            config: self.config.or(below.config),
            log_level: self.log_level.or(below.log_level),
            log_format: self.log_format.or(below.log_format),
            allowed_roots: self.allowed_roots.or(below.allowed_roots),
            body_bytes_max: self.body_bytes_max.or(below.body_bytes_max),
            head_read_ms_max: self.head_read_ms_max.or(below.head_read_ms_max),
            body_read_ms_max: self.body_read_ms_max.or(below.body_read_ms_max),
            request_ms_max: self.request_ms_max.or(below.request_ms_max),
            requests_max: self.requests_max.or(below.requests_max),
            connections_max: self.connections_max.or(below.connections_max),
            shutdown_ms_max: self.shutdown_ms_max.or(below.shutdown_ms_max),
            worker_threads: self.worker_threads.or(below.worker_threads),
            occ_retries_max: self.occ_retries_max.or(below.occ_retries_max),
            operation_ms_max: self.operation_ms_max.or(below.operation_ms_max),
            retention_ms: self.retention_ms.or(below.retention_ms),
            task_lease_ms: self.task_lease_ms.or(below.task_lease_ms),
            sweep_interval_ms: self.sweep_interval_ms.or(below.sweep_interval_ms),
        }
    }
}

fn read_file(path: &Path) -> Result<(Options, Vec<String>), ConfigError> {
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
    Ok((options, Vec::new()))
}

/// The database's URL; by default a file in the data directory.
fn database(given: Option<String>, data_dir: &Path) -> Result<String, ConfigError> {
    let Some(url) = given else {
        return Ok(format!("sqlite:{}", data_dir.join("treeline.db").display()));
    };
    match url.split_once(':') {
        Some(("sqlite", rest)) if !rest.is_empty() => Ok(url),
        Some(("sqlite", _)) => Err(ConfigError("the database URL `sqlite:` names no file".to_owned())),
        Some((scheme, _)) if scheme.len() > 1 => Err(ConfigError(format!(
            "the database URL begins with `{scheme}:`, which this server does not know; it knows `sqlite:`"
        ))),
        _ => Err(ConfigError(format!(
            "the database `{url}` is no URL; an example: `sqlite:/var/lib/treeline.db`"
        ))),
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

fn signed(key: &str, value: u64) -> Result<i64, ConfigError> {
    i64::try_from(value).map_err(|_| ConfigError(format!("`{key}` is too large")))
}

#[cfg(test)]
mod tests;

//! What can be given: each option once, as a flag, as a variable, and as a key of the file, under one name.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Deserialize;

/// What was given: each is none where it was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Where to listen [default: 127.0.0.1:8090]
    #[arg(long, global = true, env = "TREELINE_LISTEN", value_name = "HOST:PORT")]
    pub listen: Option<String>,

    /// Where the embedded database and everything else of the server is kept [default: ./treeline-data]
    #[arg(long, global = true, env = "TREELINE_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// The database: a `sqlite:`, `postgres:`, `mysql:` or `mariadb:` URL; one of PostgreSQL may name a primary and its
    /// standbys, as in `postgres://user@h1:5432,h2:5432/db` [default: sqlite:DATA_DIR/treeline.db]
    #[arg(long, global = true, env = "TREELINE_DATABASE", value_name = "URL")]
    pub database: Option<String>,

    /// A file with the database's password, if it does not stand in the URL
    #[arg(
        long,
        global = true,
        env = "TREELINE_DATABASE_PASSWORD_FILE",
        value_name = "FILE"
    )]
    pub database_password_file: Option<PathBuf>,

    /// How many connections to a database server [default: 16]
    #[arg(
        long,
        global = true,
        env = "TREELINE_DATABASE_CONNECTIONS_MAX",
        value_name = "COUNT"
    )]
    pub database_connections_max: Option<usize>,

    /// How long a request waits for a connection to a database server [default: 10000]
    #[arg(
        long,
        global = true,
        env = "TREELINE_DATABASE_ACQUIRE_MS_MAX",
        value_name = "MS"
    )]
    pub database_acquire_ms_max: Option<u64>,

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

    /// How many bytes of bodies are held at a time, over all requests; what does not fit is answered 503 [default:
    /// 268435456]
    #[arg(long, global = true, env = "TREELINE_BODIES_BYTES_MAX", value_name = "BYTES")]
    pub bodies_bytes_max: Option<usize>,

    /// How long the head of a request may take, and an idle connection stays open [default: 30000]
    #[arg(long, global = true, env = "TREELINE_HEAD_READ_MS_MAX", value_name = "MS")]
    pub head_read_ms_max: Option<u64>,

    /// How long the body of a request may take to arrive [default: 20000]
    #[arg(long, global = true, env = "TREELINE_BODY_READ_MS_MAX", value_name = "MS")]
    pub body_read_ms_max: Option<u64>,

    /// How long a client may read nothing of its answer before its connection is ended [default: 30000]
    #[arg(long, global = true, env = "TREELINE_ANSWER_STALL_MS_MAX", value_name = "MS")]
    pub answer_stall_ms_max: Option<u64>,

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

    /// Whether writes of one name take turns within this server: for speed, never for correctness [default: auto, which
    /// is on over PostgreSQL and MySQL, and off over SQLite and MariaDB]
    #[arg(long, global = true, env = "TREELINE_LOCAL_LOCKS", value_name = "WHEN")]
    pub local_locks: Option<LocalLocks>,

    /// How long dropped rows are kept before they are purged [default: 604800000, a week]
    #[arg(long, global = true, env = "TREELINE_RETENTION_MS", value_name = "MS")]
    pub retention_ms: Option<u64>,

    /// How long a server may be silent before another takes over its work on directories [default: 30000]
    #[arg(long, global = true, env = "TREELINE_TASK_LEASE_MS", value_name = "MS")]
    pub task_lease_ms: Option<u64>,

    /// How often unfinished work on directories is looked for [default: 60000]
    #[arg(long, global = true, env = "TREELINE_SWEEP_INTERVAL_MS", value_name = "MS")]
    pub sweep_interval_ms: Option<u64>,
}

impl Options {
    /// These, and for each that was not given the other's.
    pub(super) fn over(self, below: Options) -> Options {
        Options {
            listen: self.listen.or(below.listen),
            data_dir: self.data_dir.or(below.data_dir),
            database: self.database.or(below.database),
            database_password_file: self.database_password_file.or(below.database_password_file),
            database_connections_max: self.database_connections_max.or(below.database_connections_max),
            database_acquire_ms_max: self.database_acquire_ms_max.or(below.database_acquire_ms_max),
            config: self.config.or(below.config),
            log_level: self.log_level.or(below.log_level),
            log_format: self.log_format.or(below.log_format),
            allowed_roots: self.allowed_roots.or(below.allowed_roots),
            body_bytes_max: self.body_bytes_max.or(below.body_bytes_max),
            bodies_bytes_max: self.bodies_bytes_max.or(below.bodies_bytes_max),
            head_read_ms_max: self.head_read_ms_max.or(below.head_read_ms_max),
            body_read_ms_max: self.body_read_ms_max.or(below.body_read_ms_max),
            answer_stall_ms_max: self.answer_stall_ms_max.or(below.answer_stall_ms_max),
            request_ms_max: self.request_ms_max.or(below.request_ms_max),
            requests_max: self.requests_max.or(below.requests_max),
            connections_max: self.connections_max.or(below.connections_max),
            shutdown_ms_max: self.shutdown_ms_max.or(below.shutdown_ms_max),
            worker_threads: self.worker_threads.or(below.worker_threads),
            occ_retries_max: self.occ_retries_max.or(below.occ_retries_max),
            operation_ms_max: self.operation_ms_max.or(below.operation_ms_max),
            local_locks: self.local_locks.or(below.local_locks),
            retention_ms: self.retention_ms.or(below.retention_ms),
            task_lease_ms: self.task_lease_ms.or(below.task_lease_ms),
            sweep_interval_ms: self.sweep_interval_ms.or(below.sweep_interval_ms),
        }
    }
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

/// Whether writes of one name take turns within one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LocalLocks {
    /// They do.
    On,
    /// They meet in the database.
    Off,
    /// As it pays: on over PostgreSQL and MySQL, where a writer that waits holds a connection; off over MariaDB, where that
    /// gains nothing, and over SQLite, whose one writer has a queue of its own.
    Auto,
}

//! What an operator decides about the work of this layer.

use std::path::PathBuf;

/// Bounds and places. Every field has a default that [`Settings::new`] gives.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where filesets may keep files; any absolute path outside the system's directories if none is given.
    pub allowed_roots: Option<Vec<PathBuf>>,
    /// The server's own directory, which no fileset may touch.
    pub data_dir: PathBuf,
    /// How long dropped rows are kept, in milliseconds.
    pub retention_ms: i64,
    /// How often unfinished tasks are looked for, in milliseconds.
    pub sweep_interval_ms: u64,
    /// How long a drop waits for its directories to be removed before it leaves the rest to the sweep, and how long a
    /// create waits for somebody else's removal, in milliseconds.
    pub directory_wait_ms: u64,
    /// How long one call to what keeps files may take, in milliseconds; a tree is removed by many. Far above what a file
    /// system takes that answers at all, and far below what a request may.
    pub directory_call_ms_max: u64,
    /// Whether writes of one name on this server take turns. Speed only: it pays over some database servers, where
    /// a writer that waits holds a connection, and not on SQLite, whose one writer has a queue of its own.
    pub local_locks: bool,
    /// How long a write waits for its turn before it goes on without, in milliseconds. Far below what an operation may
    /// take in the database, since it comes on top of that; and far above what one write takes, so that it only
    /// passes when whoever holds the name waits in the database itself, where the next may as well wait too.
    pub local_lock_ms_max: u64,
}

impl Settings {
    /// The defaults: dropped rows stay for a week, tasks are looked for once a minute, writes take no turns.
    pub fn new(data_dir: PathBuf) -> Settings {
        Settings {
            allowed_roots: None,
            data_dir,
            retention_ms: 7 * 24 * 60 * 60 * 1_000,
            sweep_interval_ms: 60_000,
            directory_wait_ms: 10_000,
            directory_call_ms_max: 10_000,
            local_locks: false,
            local_lock_ms_max: 500,
        }
    }
}

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
}

impl Settings {
    /// The defaults: dropped rows stay for a week, tasks are looked for once a minute.
    pub fn new(data_dir: PathBuf) -> Settings {
        Settings {
            allowed_roots: None,
            data_dir,
            retention_ms: 7 * 24 * 60 * 60 * 1_000,
            sweep_interval_ms: 60_000,
            directory_wait_ms: 10_000,
        }
    }
}

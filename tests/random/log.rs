//! The history as it is written: a line an operation, by one clock.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result};
use treeline_history::Operation;

/// Shared by all clients of a run.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    file: Arc<Mutex<BufWriter<File>>>,
    begun: Instant,
}

impl Log {
    pub(crate) fn create(path: &Path) -> Result<Log> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Log {
            file: Arc::new(Mutex::new(BufWriter::new(file))),
            begun: Instant::now(),
        })
    }

    /// Microseconds since the log was begun. It never goes back, whichever thread asks.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Adds an operation that has ended.
    pub(crate) fn add(&self, operation: &Operation) -> Result<()> {
        let mut line = serde_json::to_vec(operation)?;
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(file.write_all(&line)?)
    }

    /// Puts all of it on disk.
    pub(crate) fn finish(&self) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(file.flush()?)
    }
}

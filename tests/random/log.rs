//! The history as it is written: a line an operation, by one clock, and an end line.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result};
use treeline_history::{End, Operation};

/// Shared by all clients of a run.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    written: Arc<Mutex<Written>>,
    begun: Instant,
}

#[derive(Debug)]
struct Written {
    file: BufWriter<File>,
    operations: usize,
    oddities: Oddities,
}

/// What clients have seen that no history tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Oddities {
    /// Requests that were not answered, though their clients waited. To the history they are unknown, as are those whose
    /// clients hung up.
    pub(crate) unanswered: Vec<Unanswered>,
    /// A 503 that does not say what a 503 must: code 1002, and when to come again.
    pub(crate) bare: usize,
}

/// One request that was not answered: whom it was sent to, when, and when its connection broke.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unanswered {
    pub(crate) server: usize,
    pub(crate) begun: u64,
    pub(crate) ended: u64,
}

impl Log {
    pub(crate) fn create(path: &Path) -> Result<Log> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Log {
            written: Arc::new(Mutex::new(Written {
                file: BufWriter::new(file),
                operations: 0,
                oddities: Oddities::default(),
            })),
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
        let mut written = self.written();
        written.operations += 1;
        Ok(written.file.write_all(&line)?)
    }

    /// Takes down what the lines cannot say.
    pub(crate) fn note(&self, note: impl FnOnce(&mut Oddities)) {
        note(&mut self.written().oddities);
    }

    /// Ends it, and puts all of it on disk.
    pub(crate) fn finish(&self) -> Result<Oddities> {
        let mut written = self.written();
        let end = End {
            end: written.operations,
        };
        writeln!(written.file, "{}", serde_json::to_string(&end)?)?;
        written.file.flush()?;
        Ok(written.oddities.clone())
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

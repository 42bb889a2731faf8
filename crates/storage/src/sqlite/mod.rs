//! SQLite under the store: one writer thread that commits in groups, and readers.
//!
//! Reads of a few rows run in the caller's task, since the way to another thread and back costs more than the query
//! (8 µs); reads of many rows run on a thread of tokio's blocking pool. Writes are handed to the writer whole.

mod connection;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;
use tokio::time::Instant;

pub(crate) use connection::SqliteSession;

use crate::failure::Failure;
use crate::sql::Rendered;
use crate::transaction::{Transaction, Work};
use writer::Writer;

/// Connections that are kept open for reads. More may run at once; they are closed afterwards.
const READERS_KEPT_MAX: usize = 8;

/// Reads of many rows that run at once.
const SCANS_MAX: usize = 4;

/// One SQLite file, opened by this process.
#[derive(Debug)]
pub(crate) struct Sqlite {
    file: PathBuf,
    rendered: Arc<Rendered>,
    readers: Arc<Readers>,
    scans: Arc<Semaphore>,
    writer: Writer,
}

/// Idle read connections. A std mutex, since it is held for a push or a pop and never over an await.
#[derive(Debug, Default)]
struct Readers(Mutex<Vec<SqliteSession>>);

impl Sqlite {
    /// Opens the file, which must be there and migrated, and starts the writer thread.
    pub(crate) fn open(file: &Path, rendered: Rendered) -> Result<Sqlite, Failure> {
        let rendered = Arc::new(rendered);
        let mut session = SqliteSession::open(file)?;
        session.never_wait()?;
        let writer = Writer::start(session, Arc::clone(&rendered))?;
        let readers = Arc::new(Readers::default());
        Ok(Sqlite {
            file: file.to_owned(),
            rendered,
            readers,
            scans: Arc::new(Semaphore::new(SCANS_MAX)),
            writer,
        })
    }

    /// Runs one write: queued to the writer thread, answered after its group's commit.
    pub(crate) async fn write<W: Work>(&self, work: Arc<W>, deadline: Instant) -> Result<W::Output, Failure> {
        self.writer.run(work, deadline).await
    }

    /// Writes of this process that wait for others.
    #[cfg(feature = "test-hooks")]
    pub(crate) fn blocked(&self) -> usize {
        let waits = crate::hooks::WRITER_WAITS.load(std::sync::atomic::Ordering::SeqCst);
        usize::from(waits) + self.writer.queued()
    }

    /// Runs one short read in the caller's task.
    pub(crate) async fn read<W: Work>(&self, work: &W) -> Result<W::Output, Failure> {
        let mut session = self.readers.take(&self.file)?;
        let answer = work
            .run(&mut Transaction::new(&mut session, &self.rendered))
            .await;
        self.readers.put(session);
        answer
    }

    /// Runs one long read on a thread of its own, in one snapshot, once there are few enough others.
    pub(crate) async fn scan<W: Work>(&self, work: W, deadline: Instant) -> Result<W::Output, Failure> {
        let turn = tokio::time::timeout_at(deadline, Arc::clone(&self.scans).acquire_owned()).await;
        let permit = turn.map_err(|_| Failure::Unavailable("too many long reads at once".to_owned()))?;
        let (readers, rendered, file) = (
            Arc::clone(&self.readers),
            Arc::clone(&self.rendered),
            self.file.clone(),
        );
        let scan = move || {
            let _permit = permit;
            let mut session = readers.take(&file)?;
            session.begin_snapshot()?;
            let answer = futures_executor::block_on(work.run(&mut Transaction::new(&mut session, &rendered)));
            session.end_snapshot()?;
            readers.put(session);
            answer
        };
        match tokio::task::spawn_blocking(scan).await {
            Ok(answer) => answer,
            Err(panic) => Err(Failure::Broken(format!("a read did not finish: {panic}"))),
        }
    }
}

impl Readers {
    fn take(&self, file: &Path) -> Result<SqliteSession, Failure> {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(session) => Ok(session),
            None => SqliteSession::open(file),
        }
    }

    fn put(&self, session: SqliteSession) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < READERS_KEPT_MAX {
            idle.push(session);
        }
    }
}

//! The writer thread: all that waits is written in one transaction and answered after its commit.
//!
//! 1. Wait for a job, begin, and run it under a savepoint.
//! 2. Run what has come meanwhile, each under a savepoint of its own, up to [`GROUP_MAX`]: one that fails rolls back
//!    to its savepoint and harms no other.
//! 3. Commit, which is the one wait for the disk.
//! 4. Only then answer (INV-16): every member with its own result, or all with the error if the commit failed. A refusal may
//!    rest on what another member of the group wrote, so refusals wait for the commit too.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::SqliteSession;
use crate::failure::{Cause, Failure};
use crate::sql::Rendered;
use crate::transaction::{Transaction, Work};

/// Members of one group. Eight times this many clients still see each other's group commit in turn.
const GROUP_MAX: usize = 128;

/// Between two looks whether another process still writes.
const OTHER_WRITER_WAIT: Duration = Duration::from_millis(2);

/// Writes that may wait for the thread; more wait in their own tasks, up to their deadline.
const QUEUE_MAX: usize = 1_024;

/// The way to the writer thread. The thread ends when the last of these is dropped.
#[derive(Debug)]
pub(super) struct Writer {
    queue: mpsc::Sender<Box<dyn Job>>,
}

/// One write on its way through a group.
trait Job: Send {
    /// When the caller gives up.
    fn deadline(&self) -> Instant;
    /// Nobody waits for the answer any more, and nothing was begun.
    fn abandoned(&self) -> bool;
    /// Runs the work and keeps its result. Whether it succeeded.
    fn run(&mut self, session: &mut SqliteSession, rendered: &Rendered) -> bool;
    /// Answers, after the commit.
    fn answer(self: Box<Self>, commit: Result<(), Failure>);
}

struct WorkJob<W: Work> {
    work: Arc<W>,
    deadline: Instant,
    result: Option<Result<W::Output, Failure>>,
    reply: oneshot::Sender<Result<W::Output, Failure>>,
}

impl Writer {
    pub(super) fn start(session: SqliteSession, rendered: Arc<Rendered>) -> Result<Writer, Failure> {
        let (queue, jobs) = mpsc::channel(QUEUE_MAX);
        thread::Builder::new()
            .name("sqlite-writer".to_owned())
            .spawn(move || write_all(session, &rendered, jobs))
            .map_err(|error| Failure::Unavailable(format!("no thread for the writer: {error}")))?;
        Ok(Writer { queue })
    }

    /// Writes that are queued and not picked up.
    #[cfg(feature = "test-hooks")]
    pub(super) fn queued(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    pub(super) async fn run<W: Work>(&self, work: Arc<W>, deadline: Instant) -> Result<W::Output, Failure> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(WorkJob {
            work,
            deadline,
            result: None,
            reply,
        });
        match tokio::time::timeout_at(deadline, self.queue.send(job)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(Failure::Unavailable("the writer thread has ended".to_owned())),
            Err(_) => {
                return Err(Failure::Unavailable(
                    "the queue to the writer stayed full".to_owned(),
                ));
            }
        }
        // No timeout here: once a job has run, its answer is the truth, and a commit ends within SQLite's own bounds.
        answer
            .await
            .unwrap_or_else(|_| Err(Failure::Unavailable("the writer thread has ended".to_owned())))
    }
}

fn write_all(mut session: SqliteSession, rendered: &Rendered, mut jobs: mpsc::Receiver<Box<dyn Job>>) {
    while let Some(job) = jobs.blocking_recv() {
        write_group(&mut session, rendered, job, &mut jobs);
    }
}

fn write_group(
    session: &mut SqliteSession,
    rendered: &Rendered,
    first: Box<dyn Job>,
    jobs: &mut mpsc::Receiver<Box<dyn Job>>,
) {
    let mut group = Vec::new();
    let mut outcome = begin(session, first.deadline());
    let mut next = Some(first);
    while let Some(mut job) = next.take() {
        if !job.abandoned() {
            if outcome.is_ok() {
                outcome = run_member(session, rendered, job.as_mut());
            }
            group.push(job);
        }
        if group.len() < GROUP_MAX {
            next = jobs.try_recv().ok();
        }
    }
    let commit = outcome.and_then(|()| session.commit());
    if commit.is_err() {
        session.roll_back();
    }
    metrics::histogram!("treeline_sqlite_group_size").record(u32::try_from(group.len()).unwrap_or(u32::MAX));
    for job in group {
        job.answer(commit.clone());
    }
}

/// Begins a transaction, waiting for the writers of other processes no longer than the first of the group may.
fn begin(session: &mut SqliteSession, deadline: Instant) -> Result<(), Failure> {
    loop {
        let begun = session.begin_write();
        let waits = matches!(begun, Err(Failure::Transient(..))) && Instant::now() < deadline;
        #[cfg(feature = "test-hooks")]
        crate::hooks::WRITER_WAITS.store(waits, std::sync::atomic::Ordering::SeqCst);
        if !waits {
            return match begun {
                Err(Failure::Transient(cause, detail)) => Err(Failure::counted(cause, detail)),
                settled => settled,
            };
        }
        // SQLite's own waits grow to 100 ms, which starves one process while another keeps writing.
        thread::sleep(OTHER_WRITER_WAIT);
    }
}

/// One member under its savepoint. An error here means that the whole group is lost, since SQLite has ended the
/// transaction under us (a full disk does that).
fn run_member(session: &mut SqliteSession, rendered: &Rendered, job: &mut dyn Job) -> Result<(), Failure> {
    session.savepoint()?;
    let succeeded = job.run(session, rendered);
    if !session.in_transaction() {
        return Err(Failure::Unavailable(
            "SQLite ended the transaction of a group".to_owned(),
        ));
    }
    if succeeded {
        session.keep_savepoint()
    } else {
        session.undo_savepoint()
    }
}

impl<W: Work> Job for WorkJob<W> {
    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn run(&mut self, session: &mut SqliteSession, rendered: &Rendered) -> bool {
        let result = if Instant::now() >= self.deadline {
            let detail = "the writer was busy until the deadline".to_owned();
            Err(Failure::counted(Cause::LockTimeout, detail))
        } else {
            let mut transaction = Transaction::new(session, rendered);
            let run = || futures_executor::block_on(self.work.run(&mut transaction));
            // A panic is a defect of one write; the thread and the other members must outlive it.
            catch_unwind(AssertUnwindSafe(run))
                .unwrap_or_else(|_| Err(Failure::Broken(format!("{} panicked", W::NAME))))
        };
        let succeeded = result.is_ok();
        self.result = Some(result);
        succeeded
    }

    fn answer(self: Box<Self>, commit: Result<(), Failure>) {
        let answer = match (commit, self.result) {
            (Ok(()), Some(result)) => result,
            (Ok(()), None) => Err(Failure::Broken(format!("{} was never run", W::NAME))),
            (Err(failure), _) => Err(failure),
        };
        // Whoever asked may have gone; the commit stands all the same.
        let _ = self.reply.send(answer);
    }
}

#[cfg(test)]
mod tests;

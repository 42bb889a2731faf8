//! The one way to run a transaction: begin, run the work, commit; run it again on what is transient; bound it all.
//!
//! 1. A [`Work`] says what one transaction does. It may run several times, so it keeps nothing between runs.
//! 2. An error rolls everything back, whatever it is (INV-5).
//! 3. Deadlocks, lock timeouts and serialization failures are retried here, with jitter, out of a budget of their
//!    own; a lost version check is not transient and goes back to its protocol.
//! 4. One deadline covers the whole operation, waits and retries included.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::session::Session;
use crate::sql::{Rendered, Statement};
use crate::sqlite::Sqlite;
use crate::value::{Row, Value};

/// How often a transaction is run again after transient failures. They are short, so the deadline usually comes first.
const TRANSIENT_RETRIES_MAX: u32 = 20;
const BACKOFF_MS_MIN: u64 = 2;
const BACKOFF_MS_MAX: u64 = 64;

/// What one transaction does.
#[async_trait]
pub(crate) trait Work: Send + Sync + 'static {
    /// What it answers once committed.
    type Output: Send + 'static;

    /// The name of the transaction in logs and metrics.
    const NAME: &'static str;

    /// The steps. Runs on the transaction it is given and on nothing else.
    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<Self::Output, Failure>;
}

/// How much a read may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// A few rows by key: run where the caller is.
    Point,
    /// Any number of rows, as of one moment: kept away from the executor's threads.
    Scan,
}

/// An open transaction, as the protocols see it.
pub(crate) struct Transaction<'s> {
    session: &'s mut dyn Session,
    rendered: &'s Rendered,
}

impl<'s> Transaction<'s> {
    pub(crate) fn new(session: &'s mut dyn Session, rendered: &'s Rendered) -> Transaction<'s> {
        Transaction { session, rendered }
    }

    /// Runs a statement and answers how many rows it matched.
    pub(crate) async fn run(&mut self, statement: &Statement, values: &[Value]) -> Result<u64, Failure> {
        self.session.run(self.rendered.text(statement), values).await
    }

    /// Runs a statement and answers its rows.
    pub(crate) async fn rows(
        &mut self,
        statement: &Statement,
        values: &[Value],
    ) -> Result<Vec<Row>, Failure> {
        self.session.rows(self.rendered.text(statement), values).await
    }

    /// Runs a statement that answers at most one row.
    pub(crate) async fn row(
        &mut self,
        statement: &Statement,
        values: &[Value],
    ) -> Result<Option<Row>, Failure> {
        let mut rows = self.rows(statement, values).await?;
        match rows.len() {
            0 | 1 => Ok(rows.pop()),
            count => Err(Failure::Broken(format!(
                "{} answered {count} rows",
                statement.name
            ))),
        }
    }

    /// Runs a text that is no statement of the store's, to break things on purpose.
    #[cfg(test)]
    pub(crate) async fn run_text(&mut self, sql: &str) -> Result<(), Failure> {
        self.session.run(sql, &[]).await.map(drop)
    }

    /// Runs a statement that must match exactly one row.
    pub(crate) async fn run_one(&mut self, statement: &Statement, values: &[Value]) -> Result<(), Failure> {
        match self.run(statement, values).await? {
            1 => Ok(()),
            count => Err(Failure::Broken(format!(
                "{} matched {count} rows instead of one",
                statement.name
            ))),
        }
    }
}

/// The database behind a store.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) sqlite: Sqlite,
    pub(crate) operation_ms_max: u64,
}

impl Backend {
    /// Runs a write until it is committed, refused, or out of time.
    pub(crate) async fn write<W: Work>(&self, work: W) -> Result<W::Output, Failure> {
        let work = Arc::new(work);
        let deadline = Instant::now() + Duration::from_millis(self.operation_ms_max);
        let mut attempt = 0;
        loop {
            let failure = match self.sqlite.write(Arc::clone(&work), deadline).await {
                Err(Failure::Transient(detail)) => detail,
                settled => return settled,
            };
            attempt += 1;
            metrics::counter!("treeline_transaction_retries_total", "transaction" => W::NAME).increment(1);
            tracing::debug!(
                transaction = W::NAME,
                attempt,
                failure,
                "running the transaction again"
            );
            let wait = backoff(attempt);
            if attempt > TRANSIENT_RETRIES_MAX || Instant::now() + wait >= deadline {
                metrics::counter!("treeline_transaction_retries_exhausted_total", "transaction" => W::NAME)
                    .increment(1);
                return Err(Failure::Transient(failure));
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Runs a read.
    pub(crate) async fn read<W: Work>(&self, reading: Reading, work: W) -> Result<W::Output, Failure> {
        match reading {
            Reading::Point => self.sqlite.read(&work).await,
            Reading::Scan => self.sqlite.scan(work).await,
        }
    }
}

/// Doubles from 2 to 64 ms, and takes a random part of it, so that those who met once do not meet again.
fn backoff(attempt: u32) -> Duration {
    let bound = BACKOFF_MS_MAX.min(BACKOFF_MS_MIN << attempt.min(16));
    Duration::from_millis(fastrand::u64(BACKOFF_MS_MIN..=bound))
}

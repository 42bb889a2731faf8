//! The one way to run a transaction: begin, run the work, commit; run it again on what is transient; bound it all.
//!
//! 1. A [`Work`] says what one transaction does. It may run several times, so it keeps nothing between runs.
//! 2. An error rolls everything back, whatever it is (INV-5).
//! 3. Deadlocks, lock timeouts and serialization failures are retried here, with jitter, out of a budget of their
//!    own; a lost version check is not transient and goes back to its protocol.
//! 4. One deadline covers all runs of an operation and the waits between them: none begins after it. What runs by then goes
//!    on, or a large cascade could never be dropped; each of its statements has a bound of its own, at the server and here
//!    (`network::queue`), and each bound is as long as an operation may take.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::hooks::mutant;
use crate::inside::in_transaction;
use crate::network::Network;
pub(crate) use crate::proof::{LookForProof, Proof};
use crate::session::Session;
use crate::sql::{Rendered, Statement};
use crate::sqlite::Sqlite;
use crate::value::{Row, Value};

/// How often a transaction is run again after transient failures. Where each of them is a wait for a lock, the deadline
/// comes first.
const TRANSIENT_RETRIES_MAX: u32 = 20;

/// How often a read is run again on a new connection.
const READ_RETRIES_MAX: u32 = 2;

/// The time to look for a proof, for a write that has no more of its own: until a server that does not answer is given up.
const PROOF_MAX: Duration = Duration::from_secs(3);

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

    /// The same in one statement, where that can be (`sql::fused`); the portable form is the reference.
    fn fuse(&self) -> Option<Fused<Self::Output>> {
        None
    }

    /// What would prove that a commit with this answer took effect. None for work that may simply run again.
    fn proof(&self, _output: &Self::Output) -> Option<Proof> {
        None
    }
}

/// A whole transaction as one statement.
pub(crate) struct Fused<T> {
    pub(crate) statement: &'static Statement,
    pub(crate) values: Vec<Value>,
    /// What the moment that the statement answers comes to.
    pub(crate) answer: Box<dyn FnOnce(i64) -> T + Send>,
    /// What it means that the statement wrote nothing; none: the portable form finds out.
    pub(crate) nothing: Option<Failure>,
}

/// How much a read may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// A few rows by key.
    Point,
    /// Any number of rows, with one statement.
    List,
    /// Any number of rows with several statements, as of one moment.
    Snapshot,
}

/// What is known of a write whose commit was asked for.
pub(crate) enum Written<T> {
    /// It is there.
    Committed(T),
    /// The connection was lost before the answer: it may be there.
    Unknown(T),
    /// An earlier run of the same work, whose commit was unknown, turned out to be there; this one was rolled back.
    Earlier,
}

/// An open transaction, as the protocols see it.
pub(crate) struct Transaction<'s> {
    session: &'s mut dyn Session,
    rendered: &'s Rendered,
    wrote: bool,
}

impl<'s> Transaction<'s> {
    pub(crate) fn new(session: &'s mut dyn Session, rendered: &'s Rendered) -> Transaction<'s> {
        Transaction {
            session,
            rendered,
            wrote: false,
        }
    }

    /// Whether a statement has changed anything so far.
    pub(crate) fn wrote(&self) -> bool {
        self.wrote
    }

    /// Runs a statement and answers how many rows it matched.
    pub(crate) async fn run(&mut self, statement: &Statement, values: &[Value]) -> Result<u64, Failure> {
        let count = self.session.run(self.rendered.text(statement), values).await?;
        self.wrote |= count > 0;
        Ok(count)
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

    /// Runs a statement outside this transaction, which breaks a rule on purpose.
    #[cfg(feature = "test-hooks")]
    pub(crate) async fn run_beside(
        &mut self,
        statement: &Statement,
        values: &[Value],
    ) -> Result<(), Failure> {
        crate::mutants::run_beside(self.rendered.text(statement), values).await
    }

    /// Runs a text that is no statement of the store's, to break things on purpose.
    #[cfg(test)]
    pub(crate) async fn run_text(&mut self, sql: &str) -> Result<(), Failure> {
        self.session.run(&Arc::from(sql), &[]).await.map(drop)
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
    database: Arc<Database>,
    operation_ms_max: u64,
    /// When the operation ends that this is used for, where it is several transactions.
    ends: Option<Instant>,
}

/// A transaction under way, behind a pointer: what is above it and what is below it nest too deep to be one future, of which
/// the compiler would have to know the layout as a whole.
type Running<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// Where the rows are.
#[derive(Debug)]
pub(crate) enum Database {
    /// A file of this machine.
    Sqlite(Sqlite),
    /// A server.
    Network(Network),
}

impl Backend {
    pub(crate) fn new(database: Database, operation_ms_max: u64) -> Backend {
        Backend {
            database: Arc::new(database),
            operation_ms_max,
            ends: None,
        }
    }

    /// The same for an operation that begins now: all its transactions share one deadline.
    pub(crate) fn operation(&self) -> Backend {
        Backend {
            database: Arc::clone(&self.database),
            operation_ms_max: self.operation_ms_max,
            ends: Some(self.deadline()),
        }
    }

    /// Whether there is no time left for another transaction.
    pub(crate) fn is_out_of_time(&self) -> bool {
        self.ends.is_some_and(|ends| Instant::now() >= ends)
    }

    #[cfg(feature = "test-hooks")]
    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// Runs a write until it is committed, refused, or out of time.
    pub(crate) async fn write<W: Work>(&self, work: W) -> Result<W::Output, Failure> {
        let work = Arc::new(work);
        let deadline = self.deadline();
        // An answer whose commit is unknown, and what would prove it. Until it is settled, no refusal is the truth:
        // it may be our own write that refuses us (INV-12).
        let mut unknown: Option<(W::Output, Proof)> = None;
        let mut may_be_there = false;
        let mut attempt = 0;
        loop {
            let earlier = unknown.as_ref().map(|(_, proof)| proof);
            let failure = match self.write_once(&work, deadline, earlier).await {
                Ok(Written::Committed(output)) => return Ok(output),
                Ok(Written::Earlier) => break,
                Ok(Written::Unknown(output)) => {
                    may_be_there = true;
                    if !mutant("m-blind-retry") {
                        unknown = work.proof(&output).map(|proof| (output, proof)).or(unknown);
                    }
                    Failure::Disconnected("the commit was not answered".to_owned())
                }
                Err(failure) => failure,
            };
            if let Some((_, proof)) = &unknown
                && self.is_proven(proof, deadline).await?
            {
                break;
            }
            let (Failure::Transient(_, detail) | Failure::Disconnected(detail)) = &failure else {
                return Err(failure);
            };
            attempt += 1;
            metrics::counter!("treeline_transaction_retries_total", "transaction" => W::NAME).increment(1);
            tracing::debug!(
                transaction = W::NAME,
                attempt,
                detail,
                "running the transaction again"
            );
            let wait = backoff(attempt);
            let retries_max = if mutant("m-deadlock-budget") {
                0
            } else {
                TRANSIENT_RETRIES_MAX
            };
            if attempt > retries_max || Instant::now() + wait >= deadline {
                metrics::counter!("treeline_transaction_retries_exhausted_total", "transaction" => W::NAME)
                    .increment(1);
                // "Others were in the way" would say that nothing was written, and the one in the way may be ourselves.
                return Err(if may_be_there {
                    Failure::Unavailable(format!("it is not known whether a commit took effect: {detail}"))
                } else {
                    failure
                });
            }
            tokio::time::sleep(wait).await;
        }
        match unknown {
            Some((output, _)) => Ok(output),
            None => Err(Failure::Broken(format!("{}: proven without a proof", W::NAME))),
        }
    }

    /// Runs a read. It may run again when its connection is lost, for as long as there is time.
    pub(crate) async fn read<W: Work>(&self, reading: Reading, work: W) -> Result<W::Output, Failure> {
        self.read_until(reading, work, self.deadline()).await
    }

    async fn read_until<W: Work>(
        &self,
        reading: Reading,
        work: W,
        deadline: Instant,
    ) -> Result<W::Output, Failure> {
        let read: Running<'_, W::Output> = match (&*self.database, reading) {
            (Database::Sqlite(sqlite), Reading::Point) => Box::pin(sqlite.read(&work)),
            (Database::Sqlite(sqlite), Reading::List | Reading::Snapshot) => {
                Box::pin(sqlite.scan(work, deadline))
            }
            (Database::Network(network), _) => Box::pin(read_again(network, reading, &work, deadline)),
        };
        // A read waits for nobody's rows, so nobody is to blame for them.
        in_transaction(read).await.map_err(|failure| match failure {
            Failure::Transient(_, detail) => Failure::Unavailable(format!("a read was given up: {detail}")),
            other => other,
        })
    }

    /// Whether it runs the fused forms.
    pub(crate) fn fuses(&self) -> bool {
        match &*self.database {
            Database::Sqlite(_) => false,
            Database::Network(network) => network.fuses(),
        }
    }

    async fn write_once<W: Work>(
        &self,
        work: &Arc<W>,
        deadline: Instant,
        earlier: Option<&Proof>,
    ) -> Result<Written<W::Output>, Failure> {
        let written: Running<'_, Written<W::Output>> = match &*self.database {
            Database::Sqlite(sqlite) => {
                let written = sqlite.write(Arc::clone(work), deadline);
                Box::pin(async { written.await.map(Written::Committed) })
            }
            Database::Network(network) => Box::pin(network.write(&**work, deadline, earlier)),
        };
        in_transaction(written).await
    }

    /// Looks for the proof of a write, also for one that has used up its time. Its transaction may still be on the way; then
    /// it holds the row locks that running the work again will wait for. So "no" means: run it again, and look again under
    /// its locks.
    async fn is_proven(&self, proof: &Proof, deadline: Instant) -> Result<bool, Failure> {
        let deadline = deadline.max(Instant::now() + PROOF_MAX);
        loop {
            let look = LookForProof(proof.clone());
            match self.read_until(Reading::Point, look, deadline).await {
                Err(Failure::Disconnected(_) | Failure::Unavailable(_)) if Instant::now() < deadline => {
                    tokio::time::sleep(backoff(4)).await;
                }
                settled => return settled,
            }
        }
    }

    fn deadline(&self) -> Instant {
        let ends = || Instant::now() + Duration::from_millis(self.operation_ms_max);
        self.ends.unwrap_or_else(ends)
    }
}

async fn read_again<W: Work>(
    network: &Network,
    reading: Reading,
    work: &W,
    deadline: Instant,
) -> Result<W::Output, Failure> {
    let mut attempt = 0;
    loop {
        match network.read(reading, work, deadline).await {
            Err(Failure::Disconnected(_) | Failure::Transient(..))
                if attempt < READ_RETRIES_MAX && Instant::now() < deadline =>
            {
                attempt += 1;
            }
            settled => return settled,
        }
    }
}

/// Doubles from 2 to 64 ms, and takes a random part of it, so that those who met once do not meet again.
pub(crate) fn backoff(attempt: u32) -> Duration {
    let bound = BACKOFF_MS_MAX.min(BACKOFF_MS_MIN << attempt.min(16));
    Duration::from_millis(fastrand::u64(BACKOFF_MS_MIN..=bound))
}

#[cfg(test)]
mod tests;

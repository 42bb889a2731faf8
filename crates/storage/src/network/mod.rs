//! A database server under the store: PostgreSQL, MySQL or MariaDB.
//!
//! A write takes one connection for one transaction; a read of one statement takes it without one. A connection goes
//! back to the queue only after a clean end: whatever was cancelled, panicked or broken in the middle is closed, and
//! the server rolls it back.

mod claim;
mod connection;
#[cfg(test)]
pub(crate) mod fake;
mod frame;
mod hosts;
mod options;
mod primary;
mod queue;
pub(crate) mod survey;

use tokio::time::Instant;

pub(crate) use connection::{Connection, Connector, Flavour};
pub(crate) use options::{NetworkOptions, parse};
pub(crate) use queue::Lease;
use queue::Queue;

use crate::dialect::Dialect;
use crate::failure::{Cause, Failure};
use crate::hooks::mutant;
use crate::session::Session as _;
use crate::sql::Rendered;
use crate::transaction::{Fused, LookForProof, Proof, Reading, Transaction, Work, Written};

/// One database behind a server.
#[derive(Debug)]
pub(crate) struct Network {
    dialect: &'static Dialect,
    rendered: Rendered,
    queue: Queue,
}

impl Network {
    pub(crate) fn new(options: NetworkOptions) -> Network {
        let dialect = options.connector.dialect();
        Network {
            dialect,
            rendered: Rendered::new(dialect),
            queue: Queue::new(options),
        }
    }

    /// Whether it runs the fused forms.
    pub(crate) fn fuses(&self) -> bool {
        self.dialect.fuses
    }

    /// Runs one write. A commit whose answer never came is [`Written::Unknown`], with what the work had answered.
    /// `earlier` proves a run of the same work whose commit was unknown; it is looked for once this run holds its
    /// row locks, so that the earlier one has ended either way.
    pub(crate) async fn write<W: Work>(
        &self,
        work: &W,
        deadline: Instant,
        earlier: Option<&Proof>,
    ) -> Result<Written<W::Output>, Failure> {
        let mut lease = self.queue.take(deadline).await?;
        if self.dialect.fuses
            && earlier.is_none()
            && let Some(fused) = work.fuse()
        {
            match self.write_fused::<W>(&mut lease, fused).await {
                Ok(None) => {}
                // The connection is gone; the lease closes it.
                Ok(Some(unknown @ Written::Unknown(_))) => return Ok(unknown),
                Ok(Some(written)) => {
                    lease.give_back();
                    return Ok(written);
                }
                Err(failure) => {
                    lease.give_back();
                    return Err(failure);
                }
            }
        }
        let frame = lease.frame();
        let begin = if mutant("m-snapshot") {
            "START TRANSACTION WITH CONSISTENT SNAPSHOT"
        } else {
            frame.begin
        };
        lease.control(begin).await.map_err(not_begun)?;
        let mut transaction = Transaction::new(&mut lease, &self.rendered);
        let ran = match work.run(&mut transaction).await {
            Ok(output) => {
                // Versions are given once: if this run gave the one that the earlier would have, the earlier is not there.
                let doubtful = earlier.filter(|earlier| work.proof(&output).as_ref() != Some(*earlier));
                match doubtful {
                    Some(proof) => {
                        let look = LookForProof(proof.clone());
                        look.run(&mut transaction).await.map(|proven| (output, proven))
                    }
                    None => Ok((output, false)),
                }
            }
            Err(failure) => Err(failure),
        };
        let wrote = transaction.wrote();
        let output = match ran {
            Ok((output, false)) => output,
            Ok((_, true)) => {
                lease.control(frame.roll_back).await?;
                lease.give_back();
                return Ok(Written::Earlier);
            }
            Err(failure) => return Err(roll_back(lease, failure).await),
        };
        commit::<W>(lease, output, wrote).await
    }

    /// Runs one statement that is a whole transaction. `None` where it wrote nothing, and the portable form must say why.
    async fn write_fused<W: Work>(
        &self,
        lease: &mut Lease<'_>,
        fused: Fused<W::Output>,
    ) -> Result<Option<Written<W::Output>>, Failure> {
        let sql = self.rendered.text(fused.statement);
        match lease.rows(sql, &fused.values).await {
            Ok(rows) => match (rows.first(), fused.nothing) {
                (Some(row), _) => Ok(Some(Written::Committed((fused.answer)(row.int(0)?)))),
                (None, Some(failure)) => Err(failure),
                (None, None) => Ok(None),
            },
            // The statement may have been committed. What it would have answered is known but for the moment, which was
            // lost with the answer; this machine's clock stands in for it, in this one answer.
            Err(Failure::Disconnected(detail)) => {
                say_unknown(W::NAME, &detail);
                Ok(Some(Written::Unknown((fused.answer)(crate::ids::now_ms()))))
            }
            // A clash, a dead parent, a deadlock: nothing was written, and the portable form has the words for it.
            Err(Failure::Unique(_) | Failure::Liveness) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Runs one read.
    pub(crate) async fn read<W: Work>(
        &self,
        reading: Reading,
        work: &W,
        deadline: Instant,
    ) -> Result<W::Output, Failure> {
        let mut lease = self.queue.take(deadline).await?;
        if reading == Reading::Snapshot {
            lease
                .control(self.dialect.begin_snapshot)
                .await
                .map_err(not_begun)?;
        }
        let outcome = work.run(&mut Transaction::new(&mut lease, &self.rendered)).await;
        match outcome {
            Ok(output) => {
                if reading == Reading::Snapshot {
                    lease.control("COMMIT").await?;
                }
                lease.give_back();
                Ok(output)
            }
            Err(failure) if reading == Reading::Snapshot => Err(roll_back(lease, failure).await),
            Err(failure @ Failure::Disconnected(_)) => Err(failure),
            Err(failure) => {
                lease.give_back();
                Err(failure)
            }
        }
    }

    pub(crate) fn options(&self) -> &NetworkOptions {
        self.queue.options()
    }

    /// A connection to look at the server with, and to make its tables, before anything rests on it.
    pub(crate) async fn look(&self) -> Result<Lease<'_>, Failure> {
        self.queue.take_beside().await
    }
}

/// Ends a transaction, and answers what is known of it then.
async fn commit<W: Work>(
    mut lease: Lease<'_>,
    output: W::Output,
    wrote: bool,
) -> Result<Written<W::Output>, Failure> {
    let frame = lease.frame();
    if let Some(require_intact) = frame.require_intact
        && let Err(failure) = lease.control(require_intact).await
    {
        return Err(roll_back(lease, failure).await);
    }
    match lease.control(frame.commit).await {
        Ok(()) => {}
        // What the database gave up may have been committed by then. The lease closes the connection either way. A deadlock
        // or a lost certification is another matter: then nothing was.
        Err(Failure::Disconnected(detail) | Failure::Transient(Cause::StatementTimeout, detail)) => {
            say_unknown(W::NAME, &detail);
            return Ok(Written::Unknown(output));
        }
        Err(failure) => return Err(roll_back(lease, failure).await),
    }
    if !wrote || frame.last_written.is_none() {
        lease.give_back();
        return Ok(Written::Committed(output));
    }
    match lease.has_written().await {
        Ok(true) => {
            lease.give_back();
            Ok(Written::Committed(output))
        }
        // It may have been taken in another way; its proof tells. What has none may simply run again.
        Ok(false) => {
            lease.give_back();
            say_unknown(W::NAME, "another node's transaction was in its way");
            Ok(Written::Unknown(output))
        }
        Err(failure) => {
            say_unknown(W::NAME, &format!("{failure:?}"));
            Ok(Written::Unknown(output))
        }
    }
}

/// A commit was asked for and never answered; what became of it is about to be found out.
fn say_unknown(transaction: &'static str, detail: &str) {
    metrics::counter!("treeline_commits_unknown_total", "transaction" => transaction).increment(1);
    tracing::warn!(
        transaction,
        detail,
        "it is not known whether a commit took effect"
    );
}

/// A begin waits for nobody's rows. A node of a cluster says "lock wait timeout" where it cannot catch up with the others.
fn not_begun(failure: Failure) -> Failure {
    match failure {
        Failure::Transient(_, detail) => {
            Failure::Unavailable(format!("it has not caught up with its cluster: {detail}"))
        }
        other => other,
    }
}

/// After any error the transaction is rolled back: MySQL leaves it open after a unique violation and after a lock
/// timeout, and a commit would keep its first half (INV-5).
async fn roll_back(mut lease: Lease<'_>, failure: Failure) -> Failure {
    if !matches!(failure, Failure::Disconnected(_)) && lease.control(lease.frame().roll_back).await.is_ok() {
        lease.give_back();
    }
    failure
}

//! What can go wrong inside the store, before it becomes an answer.

use treeline_core::Error;

/// The store's own error. It never leaves the crate: [`Failure::into_error`] is the one way out.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The protocol's answer. It rolls the transaction back like every other failure (INV-5).
    Answer(Error),
    /// The version check matched no row: somebody else wrote first (INV-4).
    Lost,
    /// A unique key refused an insert.
    Unique(Clash),
    /// A liveness key refused a child under a dropped parent, or a drop over a live child (INV-1).
    Liveness,
    /// Others were in the way: the same transaction may succeed when run again.
    Transient(Cause, String),
    /// The connection was lost, and a new one may do better. What was not committed is rolled back; what became of a commit
    /// that was on its way is not known (`Written::Unknown`).
    Disconnected(String),
    /// The server does not let us in: a wrong password, a database that is not there.
    Refused(String),
    /// The database cannot be used right now: gone, full, busy.
    Unavailable(String),
    /// The server, or this session of it, does not accept writes: a standby, or an account that may only read.
    ReadOnly(String),
    /// A defect of ours, or a damaged database.
    Broken(String),
}

/// What was in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// What one statement had found was no longer so in the next.
    Race,
    Deadlock,
    LockTimeout,
    Serialization,
    /// The database gave up a statement that had taken too long. Of a commit this says no more than a lost connection
    /// does.
    StatementTimeout,
}

impl Cause {
    /// What it is called in `treeline_database_errors_total`.
    const fn as_str(self) -> &'static str {
        match self {
            Cause::Race => "race",
            Cause::Deadlock => "deadlock",
            Cause::LockTimeout => "lock_timeout",
            Cause::Serialization => "serialization",
            Cause::StatementTimeout => "statement_timeout",
        }
    }
}

/// Which unique key was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clash {
    /// A live entity of that name under that parent (INV-2).
    Name,
    /// A row with that id; the id was made by us, so another one is made.
    Id,
    /// A live version with that alias (INV-7).
    Alias,
    /// A request that used that idempotency key (P11).
    Key,
    /// Any other key.
    Other,
}

impl Failure {
    /// What the database has given up, counted.
    pub(crate) fn counted(cause: Cause, detail: String) -> Failure {
        count(cause.as_str());
        Failure::Transient(cause, detail)
    }

    /// What changed between two looks of ours.
    pub(crate) fn raced(detail: impl Into<String>) -> Failure {
        Failure::Transient(Cause::Race, detail.into())
    }

    /// What the caller of the store is told. `operation` is the name of the transaction.
    pub(crate) fn into_error(self, operation: &str) -> Error {
        match self {
            Failure::Answer(error) => error,
            Failure::Transient(_, detail) => {
                tracing::info!(operation, detail, "gave up waiting for other writers");
                Error::Contended {
                    operation: operation.to_owned(),
                }
            }
            Failure::Unavailable(reason)
            | Failure::ReadOnly(reason)
            | Failure::Disconnected(reason)
            | Failure::Refused(reason) => {
                tracing::warn!(operation, reason, "the database is not available");
                Error::Unavailable {
                    reason: "the database does not answer".to_owned(),
                }
            }
            Failure::Lost | Failure::Unique(_) | Failure::Liveness => Error::internal(format!(
                "{operation}: {self:?} reached the end of its transaction unanswered"
            )),
            Failure::Broken(detail) => Error::internal(format!("{operation}: {detail}")),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Answer(error)
    }
}

/// One of the errors that operators look at.
pub(crate) fn count(error: &'static str) {
    metrics::counter!("treeline_database_errors_total", "error" => error).increment(1);
}

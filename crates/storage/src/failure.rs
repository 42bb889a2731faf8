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
    /// A deadlock, a lock timeout or a serialization failure: the same transaction may succeed when run again.
    Transient(String),
    /// The database gave up a statement that had taken too long. The same transaction may succeed when run again; of a
    /// commit this says no more than a lost connection does.
    Interrupted(String),
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
    /// What the database has given up and may do when it is asked again. Counted by what it is called here.
    pub(crate) fn transient(error: &'static str, detail: String) -> Failure {
        count(error);
        Failure::Transient(detail)
    }

    /// A statement that the database gave up, and that is counted.
    pub(crate) fn interrupted(detail: String) -> Failure {
        count("statement_timeout");
        Failure::Interrupted(detail)
    }

    /// The connection is lost, and that is counted.
    pub(crate) fn disconnected(detail: String) -> Failure {
        count("connection_lost");
        Failure::Disconnected(detail)
    }

    /// What the caller of the store is told. `operation` is the name of the transaction.
    pub(crate) fn into_error(self, operation: &str) -> Error {
        match self {
            Failure::Answer(error) => error,
            Failure::Transient(detail) | Failure::Interrupted(detail) => {
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

fn count(error: &'static str) {
    metrics::counter!("treeline_database_errors_total", "error" => error).increment(1);
}

//! What differs between databases, as data: a few fragments, and how to read an error.

pub(crate) mod mysql;
pub(crate) mod postgres;
pub(crate) mod sqlite;

use crate::failure::Failure;

/// How a dialect writes a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placeholder {
    /// `?`
    Question,
    /// `$1`, `$2`, …
    Numbered,
}

/// One database's way to say what the statements leave open (design §4.2).
#[derive(Debug)]
pub(crate) struct Dialect {
    /// For messages and snapshots.
    pub(crate) name: &'static str,
    /// How a parameter is written.
    pub(crate) placeholder: Placeholder,
    /// Milliseconds since 1970 on the database's clock.
    pub(crate) now_ms: &'static str,
    /// The time at which the statement began, in milliseconds: one value for the whole statement, with which an index
    /// can be searched.
    pub(crate) statement_ms: &'static str,
    /// Keeps a parent from being dropped or renamed; never holds up the parent's own alter where the database can.
    pub(crate) lock_shared: &'static str,
    /// Keeps other writers from the row; never holds up creates of children where the database can.
    pub(crate) lock_alter: &'static str,
    /// Keeps everybody from the row.
    pub(crate) lock_drop: &'static str,
    /// After a table's name: lock and update through the primary key only.
    pub(crate) by_id: &'static str,
    /// Whether it runs the fused forms of `sql::fused`.
    pub(crate) fuses: bool,
    /// Begins a transaction that writes.
    pub(crate) begin_write: &'static str,
    /// Begins a transaction that reads many rows as of one moment.
    pub(crate) begin_snapshot: &'static str,
    /// Counts the sessions of this database that wait for a row lock, for tests.
    pub(crate) count_blocked: &'static str,
}

/// What an error of the driver itself stands for, when no server has said anything.
fn classify_driver(error: &sqlx::Error) -> Failure {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::PoolClosed => Failure::Disconnected(error.to_string()),
        other => Failure::Broken(other.to_string()),
    }
}

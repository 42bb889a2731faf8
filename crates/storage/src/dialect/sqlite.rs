//! SQLite: one writer at a time, so the row locks are empty and the order of writers is the lock.

use rusqlite::ErrorCode;
use rusqlite::ffi;

use super::{Dialect, Placeholder};
use crate::failure::{Cause, Clash, Failure};

/// `unixepoch('subsec')` came with SQLite 3.42, which the linked copy is past.
pub(crate) static SQLITE: Dialect = Dialect {
    name: "sqlite",
    placeholder: Placeholder::Question,
    now_ms: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
    statement_ms: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
    lock_shared: "",
    lock_alter: "",
    lock_drop: "",
    by_id: "",
    fuses: false,
    // IMMEDIATE, because a transaction that read before another's commit could not write any more.
    begin_write: "BEGIN IMMEDIATE",
    begin_snapshot: "BEGIN",
    count_blocked: "SELECT 0",
};

/// Which rule an error of the driver stands for.
pub(crate) fn classify(error: &rusqlite::Error) -> Failure {
    let rusqlite::Error::SqliteFailure(code, text) = error else {
        return Failure::Broken(error.to_string());
    };
    let text = text.as_deref().unwrap_or_default();
    match code.extended_code {
        ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY => Failure::Unique(clash(text)),
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => Failure::Liveness,
        _ => match code.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
                Failure::Transient(Cause::LockTimeout, error.to_string())
            }
            ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied => Failure::Unavailable(error.to_string()),
            _ => Failure::Broken(error.to_string()),
        },
    }
}

/// The text lists the key's columns, which are ours, and never a value.
fn clash(text: &str) -> Clash {
    if text.contains("entities.name") {
        Clash::Name
    } else if text.contains("version_aliases.alias") {
        Clash::Alias
    } else if text.contains("idempotency.request_key") {
        Clash::Key
    } else if text.contains("entities.id") || text.contains("reconcile_tasks.id") {
        Clash::Id
    } else {
        Clash::Other
    }
}

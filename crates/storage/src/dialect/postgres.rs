//! PostgreSQL: READ COMMITTED, said explicitly, and the four row locks.
//!
//! `FOR KEY SHARE` conflicts with a drop and a rename, which change key columns, and not with a parent's own alter.
//! That is safe only because `tombstone` and `name` are in full, non-partial unique keys.

use sqlx::postgres::{PgDatabaseError, PgSeverity};

use super::{Dialect, Placeholder};
use crate::failure::{Cause, Clash, Failure};

pub(crate) static POSTGRES: Dialect = Dialect {
    name: "postgres",
    placeholder: Placeholder::Numbered,
    now_ms: "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
    statement_ms: "CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000 AS BIGINT)",
    lock_shared: "FOR KEY SHARE",
    // FOR UPDATE would hold up creates of children: 1.6 s against 0.03 s.
    lock_alter: "FOR NO KEY UPDATE",
    lock_drop: "FOR UPDATE",
    by_id: "",
    fuses: true,
    begin_write: "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
    begin_snapshot: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    count_blocked: "SELECT COUNT(*) FROM pg_stat_activity \
                    WHERE datname = current_database() AND wait_event_type = 'Lock'",
};

/// Which rule an error of the server stands for. A session that hears a fatal one is ended, whatever the reason: a bound for
/// transactions (25P04), a database that is dropped (57P04), and those that later versions may add.
pub(crate) fn classify(error: &sqlx::Error) -> Failure {
    let database = error.as_database_error();
    let server = database.and_then(|database| database.try_downcast_ref::<PgDatabaseError>());
    match server.map(PgDatabaseError::severity) {
        Some(PgSeverity::Fatal | PgSeverity::Panic) => Failure::Disconnected(error.to_string()),
        _ => classify_refusal(error),
    }
}

/// The same for one that may be the answer to a connection, which is always fatal: who has no right to it is told so.
pub(crate) fn classify_refusal(error: &sqlx::Error) -> Failure {
    let sqlx::Error::Database(database) = error else {
        return super::classify_driver(error);
    };
    let text = error.to_string();
    let Some(server) = database.try_downcast_ref::<PgDatabaseError>() else {
        return Failure::Broken(text);
    };
    match server.code() {
        "23505" => Failure::Unique(clash(server.constraint().unwrap_or_default())),
        "23503" => Failure::Liveness,
        "40001" => Failure::counted(Cause::Serialization, text),
        "40P01" => Failure::counted(Cause::Deadlock, text),
        "55P03" => Failure::counted(Cause::LockTimeout, text),
        "57014" => Failure::counted(Cause::StatementTimeout, text),
        // The server goes down, comes up, has ended this session, or has too many of them at this moment.
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "53300" => Failure::Disconnected(text),
        "25006" => Failure::ReadOnly(format!(
            "it is read-only ({text}); name its primary, or let this account write"
        )),
        "26000" | "42P05" => Failure::Unavailable(format!(
            "{text}; is there a pooler in transaction mode? it must pool sessions"
        )),
        code if code.starts_with("08") => Failure::Disconnected(text),
        // It cannot read or write its files.
        "58030" => Failure::Unavailable(text),
        code if code.starts_with("53") => Failure::Unavailable(text),
        _ => Failure::Broken(text),
    }
}

fn clash(constraint: &str) -> Clash {
    match constraint {
        "entities_name" => Clash::Name,
        "entities_id" | "entities_alive" | "reconcile_tasks_id" => Clash::Id,
        "version_aliases_alias" => Clash::Alias,
        "idempotency_key" => Clash::Key,
        _ => Clash::Other,
    }
}

//! Migrations: forward only, one transaction each, under a lock, and never on a schema newer than this binary knows.

use std::path::{Path, PathBuf};

use treeline_core::Error;

use crate::dialect::sqlite::SQLITE;
use crate::failure::Failure;
use crate::session::Session;
use crate::sql::{check, render};
use crate::sqlite::SqliteSession;

/// One step, which is never edited after a release.
struct Migration {
    version: i64,
    name: &'static str,
    sqlite: &'static str,
}

const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    name: "managed_tree",
    sqlite: include_str!("../migrations/sqlite/0001_managed_tree.sql"),
}];

const MIGRATIONS_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    version    INTEGER PRIMARY KEY NOT NULL,
    name       TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
)";

/// What a migration did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigrateReport {
    /// The schema's version before; 0 for an empty database.
    pub from: i64,
    /// The schema's version now.
    pub to: i64,
}

/// Brings a SQLite file to this binary's schema, making it first if it is not there. An older schema is copied beside
/// the file before it is touched. Two processes that do this at once queue on the file's exclusive lock.
pub(crate) fn migrate_sqlite(file: &Path) -> Result<MigrateReport, Failure> {
    let mut session = SqliteSession::open_or_create(file)?;
    session.begin_exclusive()?;
    let outcome = upgrade(&mut session, file);
    if outcome.is_err() {
        session.roll_back();
    }
    outcome
}

fn upgrade(session: &mut SqliteSession, file: &Path) -> Result<MigrateReport, Failure> {
    session.script(MIGRATIONS_TABLE)?;
    let from = applied(session)?;
    let known = MIGRATIONS.last().map_or(0, |migration| migration.version);
    if from > known {
        return Err(Failure::Answer(Error::invalid(
            "database",
            format!(
                "its schema is version {from}, newer than the {known} that this binary knows; use a newer binary"
            ),
        )));
    }
    if from > 0 && from < known {
        // The copy cannot be made inside a transaction. Nothing was written yet, so nothing is lost by ending it; who
        // migrates in between leaves us nothing to do.
        session.roll_back();
        session.copy_to(&backup_path(file, from))?;
        session.begin_exclusive()?;
    }
    let from = applied(session)?;
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > from) {
        session.script(migration.sqlite)?;
        let record = render(check::RECORD_MIGRATION.text, &SQLITE);
        futures_executor::block_on(session.run(&record, &[migration.version.into(), migration.name.into()]))?;
        tracing::info!(
            version = migration.version,
            name = migration.name,
            "migrated the schema"
        );
    }
    session.commit()?;
    Ok(MigrateReport { from, to: known })
}

fn applied(session: &mut SqliteSession) -> Result<i64, Failure> {
    let sql = render(check::SCHEMA_VERSION.text, &SQLITE);
    let rows = futures_executor::block_on(session.rows(&sql, &[]))?;
    Ok(rows
        .first()
        .map(|row| row.maybe_int(0))
        .transpose()?
        .flatten()
        .unwrap_or(0))
}

fn backup_path(file: &Path, version: i64) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".before-upgrade-from-{version}-{}", fastrand::u32(..)));
    file.with_file_name(name)
}

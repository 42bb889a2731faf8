//! Migrations: forward only, one transaction each, under a lock, and never on a schema newer than this binary knows.

mod turn;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::time::Instant;
use treeline_core::Error;

use crate::dialect::sqlite::SQLITE;
use crate::failure::Failure;
use crate::hooks::{mutant, sync_point};
use crate::network::{Connection, Connector, Network, NetworkOptions, survey};
use crate::session::Session;
use crate::sql::{check, render};
use crate::sqlite::SqliteSession;
use crate::transaction::backoff;

/// One step, which is never edited after a release.
struct Migration {
    version: i64,
    name: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
    mysql: &'static str,
}

const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    name: "managed_tree",
    sqlite: include_str!("../migrations/sqlite/0001_managed_tree.sql"),
    postgres: include_str!("../migrations/postgres/0001_managed_tree.sql"),
    mysql: include_str!("../migrations/mysql/0001_managed_tree.sql"),
}];

const MIGRATIONS_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    version    BIGINT       NOT NULL PRIMARY KEY,
    name       VARCHAR(256) NOT NULL,
    applied_at BIGINT       NOT NULL
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
/// the file before it is touched. Two processes that do this at once queue for the right to write; where nothing
/// is to be done, nobody asks for it, so that an audit never waits for a writer.
pub(crate) fn migrate_sqlite(file: &Path) -> Result<MigrateReport, Failure> {
    let mut session = SqliteSession::open_or_create(file)?;
    if session.has_table("schema_migrations")? {
        let from = applied(&mut session)?;
        refuse_newer(from)?;
        if from == known() {
            return Ok(MigrateReport { from, to: from });
        }
    }
    session.begin_exclusive()?;
    let outcome = upgrade(&mut session, file);
    if outcome.is_err() {
        session.roll_back();
    }
    outcome
}

fn upgrade(session: &mut SqliteSession, file: &Path) -> Result<MigrateReport, Failure> {
    session.script(MIGRATIONS_TABLE)?;
    let mut from = applied(session)?;
    let known = known();
    refuse_newer(from)?;
    if from > 0 && from < known {
        // The copy cannot be made inside a transaction. Nothing was written yet, so nothing is lost by ending it; who
        // migrates in between leaves us nothing to do, or is a newer binary.
        session.roll_back();
        session.copy_to(&backup_path(file, from))?;
        session.begin_exclusive()?;
        from = applied(session)?;
        refuse_newer(from)?;
    }
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > from) {
        session.script(migration.sqlite)?;
        let record = Arc::from(render(check::RECORD_MIGRATION.text, &SQLITE));
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
    let sql = Arc::from(render(check::SCHEMA_VERSION.text, &SQLITE));
    let rows = futures_executor::block_on(session.rows(&sql, &[]))?;
    Ok(rows
        .first()
        .map(|row| row.maybe_int(0))
        .transpose()?
        .flatten()
        .unwrap_or(0))
}

/// Brings a database behind a server to this binary's schema. Where an older one is found, only `upgrade` may touch it:
/// an operator decides when the servers of an estate are ready for it.
pub(crate) async fn migrate_network(network: &Network, upgrade: bool) -> Result<MigrateReport, Failure> {
    let options = network.options();
    let mut lease = network.look().await?;
    let connection: &mut dyn Connection = &mut lease;
    // Two servers that migrate at once queue here; the second finds nothing left to do. On a cluster they queue at each
    // node by itself, and who is first at its node has to be first in the cluster too.
    let lock = match options.connector {
        Connector::Postgres(_) => Lock {
            take: "SELECT 1 FROM pg_advisory_lock(8390462745)",
            give: "SELECT pg_advisory_unlock(8390462745)",
        },
        Connector::MySql(_) => Lock {
            // A digest, since the name of a lock may have 64 characters and that of a database as well.
            take: "SELECT GET_LOCK(CONCAT('treeline.migrate.', LEFT(SHA2(DATABASE(), 256), 40)), 60)",
            give: "DO RELEASE_LOCK(CONCAT('treeline.migrate.', LEFT(SHA2(DATABASE(), 256), 40)))",
        },
    };
    survey::refuse_pooler(network, connection).await?;
    survey::log(options, connection).await?;
    // The wait has the bounds of any other statement, so it may end as one that was too long.
    let taken = match connection.session().rows(&Arc::from(lock.take), &[]).await {
        Err(Failure::Transient(..)) => None,
        taken => taken?.first().map(|row| row.maybe_int(0)).transpose()?.flatten(),
    };
    if taken != Some(1) {
        let reason = "another process has been migrating it for longer than anybody waits; start this one again when \
                      that one is done";
        return Err(Failure::Unavailable(reason.to_owned()));
    }
    // After an error the connection is closed, and with it go the transaction that PostgreSQL has open and the lock.
    let report = upgrade_in_time(connection, options, upgrade).await?;
    // The second server finds them gone already.
    if mutant("m-liveness-key") {
        let _ = connection
            .control("ALTER TABLE entities DROP CONSTRAINT entities_parent")
            .await;
    }
    if mutant("m-tombstone-time") {
        let _ = connection
            .control("ALTER TABLE entities DROP CONSTRAINT entities_state")
            .await;
    }
    connection.control(lock.give).await?;
    survey::require_writable(options, connection).await?;
    lease.give_back();
    Ok(report)
}

/// Begins anew where a lock of somebody else's is in the way, or where another node of a cluster changed tables at the same
/// moment, which can end any statement.
async fn upgrade_in_time(
    connection: &mut dyn Connection,
    options: &NetworkOptions,
    upgrade: bool,
) -> Result<MigrateReport, Failure> {
    let begun = Instant::now();
    let mut attempt = 0;
    loop {
        match upgrade_network(connection, options, upgrade).await {
            Err(Failure::Transient(_, detail)) if begun.elapsed() < turn::WAIT_MAX => {
                attempt += 1;
                tracing::info!(attempt, detail, "the migration begins anew");
                connection.control(connection.frame().roll_back).await?;
                tokio::time::sleep(backoff(attempt)).await;
            }
            settled => return settled,
        }
    }
}

struct Lock {
    take: &'static str,
    give: &'static str,
}

async fn upgrade_network(
    connection: &mut dyn Connection,
    options: &NetworkOptions,
    upgrade: bool,
) -> Result<MigrateReport, Failure> {
    // Not made unasked, so that a server of a migrated database needs no right to make tables.
    let has_table = Arc::from(match options.connector {
        Connector::Postgres(_) => {
            "SELECT COUNT(*) FROM pg_tables WHERE tablename = 'schema_migrations' AND schemaname = current_schema()"
        }
        Connector::MySql(_) => {
            "SELECT COUNT(*) FROM information_schema.tables
             WHERE table_name = 'schema_migrations' AND table_schema = DATABASE()"
        }
    });
    let found = connection.session().rows(&has_table, &[]).await?;
    if found.first().map(|row| row.int(0)).transpose()? == Some(0) {
        connection.control(MIGRATIONS_TABLE).await?;
    }
    let from = version(connection, options).await?;
    if from > 0 && from < known() && !upgrade {
        let reason = format!(
            "its schema is version {from}, older than {}; run `treeline migrate` first",
            known()
        );
        return Err(Failure::Answer(Error::invalid("database", reason)));
    }
    if from == known() {
        return Ok(MigrateReport { from, to: from });
    }
    let Some(node) = survey::cluster_node(options, connection).await? else {
        return apply(connection, options, from).await;
    };
    turn::claim(connection, &node).await?;
    let applied = match version(connection, options).await {
        Ok(from) => apply(connection, options, from).await,
        Err(failure) => Err(failure),
    };
    turn::release(connection, &node).await;
    applied
}

/// The version of the schema, unless it is newer than this binary.
async fn version(connection: &mut dyn Connection, options: &NetworkOptions) -> Result<i64, Failure> {
    let version = Arc::from(render(check::SCHEMA_VERSION.text, options.connector.dialect()));
    let rows = connection.session().rows(&version, &[]).await?;
    let version = rows.first().map(|row| row.maybe_int(0)).transpose()?;
    let version = version.flatten().unwrap_or(0);
    refuse_newer(version)?;
    Ok(version)
}

/// Runs every migration after this version.
async fn apply(
    connection: &mut dyn Connection,
    options: &NetworkOptions,
    from: i64,
) -> Result<MigrateReport, Failure> {
    let dialect = options.connector.dialect();
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > from) {
        sync_point!("migrate.begun", migration.name);
        // MySQL commits each statement by itself; its scripts can be run again from the top.
        connection.control(dialect.begin_write).await?;
        connection
            .control(match options.connector {
                Connector::Postgres(_) => migration.postgres,
                Connector::MySql(_) => migration.mysql,
            })
            .await?;
        let record = Arc::from(render(check::RECORD_MIGRATION.text, dialect));
        connection
            .session()
            .run(&record, &[migration.version.into(), migration.name.into()])
            .await?;
        connection.control("COMMIT").await?;
        tracing::info!(
            version = migration.version,
            name = migration.name,
            "migrated the schema"
        );
    }
    Ok(MigrateReport { from, to: known() })
}

fn known() -> i64 {
    MIGRATIONS.last().map_or(0, |migration| migration.version)
}

fn refuse_newer(from: i64) -> Result<(), Failure> {
    if from <= known() {
        return Ok(());
    }
    let reason = format!(
        "its schema is version {from}, newer than the {} that this binary knows; use a newer binary",
        known()
    );
    Err(Failure::Answer(Error::invalid("database", reason)))
}

fn backup_path(file: &Path, version: i64) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".before-upgrade-from-{version}-{}", fastrand::u32(..)));
    file.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_current_is_opened_beside_a_held_write() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("catalog.db");
        assert_eq!(
            migrate_sqlite(&file).unwrap(),
            MigrateReport { from: 0, to: known() }
        );
        let mut writer = SqliteSession::open(&file).unwrap();
        writer.begin_write().unwrap();
        writer
            .script("UPDATE entities SET version = version + 1")
            .unwrap();
        let current = MigrateReport {
            from: known(),
            to: known(),
        };
        assert_eq!(migrate_sqlite(&file).unwrap(), current);
    }
}

//! One SQLite connection, and the session over it. The only file that talks to the driver.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql, params_from_iter};

use crate::dialect::sqlite::{SQLITE, classify};
use crate::failure::Failure;
use crate::hooks::mutant;
use crate::session::Session;
use crate::value::{Row, Value};

/// How long a reader or a migration waits for another process.
const BUSY_WAITS_MAX: i32 = 2_500;
const BUSY_WAIT: Duration = Duration::from_millis(2);

/// More than there are statements, so that each is prepared once a connection.
const STATEMENTS_CACHED_MAX: usize = 128;

/// A connection with the settings that the protocols rely on.
#[derive(Debug)]
pub(crate) struct SqliteSession {
    connection: Connection,
}

impl SqliteSession {
    /// Opens a file that is there.
    pub(crate) fn open(file: &Path) -> Result<SqliteSession, Failure> {
        SqliteSession::open_with(file, OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    /// Opens a file, or makes an empty one.
    pub(crate) fn open_or_create(file: &Path) -> Result<SqliteSession, Failure> {
        SqliteSession::open_with(
            file,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        )
    }

    fn open_with(file: &Path, flags: OpenFlags) -> Result<SqliteSession, Failure> {
        let connection = Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .map_err(|error| Failure::Unavailable(format!("{}: {error}", file.display())))?;
        let session = SqliteSession { connection };
        if session.is_read_only()? {
            let reason = "this account may only read it; let it write the file and its directory";
            return Err(Failure::Refused(format!("{}: {reason}", file.display())));
        }
        session.configure_patiently().map_err(|error| classify(&error))?;
        Ok(session)
    }

    /// SQLite opens a file that it may not write without a word.
    fn is_read_only(&self) -> Result<bool, Failure> {
        let answer = self.connection.is_readonly(rusqlite::MAIN_DB);
        answer.map_err(|error| classify(&error))
    }

    /// Of several processes that switch a new file to WAL at once, SQLite tells some that it is busy without asking the
    /// handler whether they would wait. Asked again for as long as the handler would have.
    fn configure_patiently(&self) -> rusqlite::Result<()> {
        let begun = Instant::now();
        loop {
            match self.configure() {
                Err(error)
                    if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                        && begun.elapsed() < BUSY_WAIT * BUSY_WAITS_MAX.unsigned_abs() =>
                {
                    std::thread::sleep(BUSY_WAIT);
                }
                settled => return settled,
            }
        }
    }

    /// The wait for other writers comes first, since switching to WAL may itself have to wait.
    fn configure(&self) -> rusqlite::Result<()> {
        let connection = &self.connection;
        connection.busy_handler(Some(wait_for_other_writer))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", !mutant("m-liveness-key"))?;
        if mutant("m-tombstone-time") {
            connection.pragma_update(None, "ignore_check_constraints", true)?;
        }
        connection.pragma_update(None, "trusted_schema", "OFF")?;
        connection.pragma_update(None, "cache_size", -8_192)?; // 8 MiB a connection
        connection.pragma_update(None, "mmap_size", 256 << 20)?; // reads without a copy: 0.81 → 0.89 of the limit
        connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED_MAX);
        Ok(())
    }

    /// The writer thread knows better how long it may wait for others, so SQLite answers it at once.
    pub(crate) fn never_wait(&mut self) -> Result<(), Failure> {
        self.connection
            .busy_handler(None)
            .map_err(|error| classify(&error))
    }

    /// Begins a write.
    pub(crate) fn begin_write(&mut self) -> Result<(), Failure> {
        self.control(if mutant("m-deferred") {
            "BEGIN"
        } else {
            SQLITE.begin_write
        })
    }

    /// Begins a write that is the only one (migrations). In WAL mode others go on reading what was there before.
    pub(crate) fn begin_exclusive(&mut self) -> Result<(), Failure> {
        self.control("BEGIN EXCLUSIVE")
    }

    pub(crate) fn begin_snapshot(&mut self) -> Result<(), Failure> {
        self.control(SQLITE.begin_snapshot)
    }

    pub(crate) fn end_snapshot(&mut self) -> Result<(), Failure> {
        self.control("COMMIT")
    }

    pub(crate) fn commit(&mut self) -> Result<(), Failure> {
        self.control("COMMIT")
    }

    /// Ends a transaction if one is open. An error of SQLite's may have ended it already.
    pub(crate) fn roll_back(&mut self) {
        if !self.connection.is_autocommit()
            && let Err(failure) = self.control("ROLLBACK")
        {
            tracing::error!(?failure, "a transaction could not be rolled back");
        }
    }

    pub(crate) fn in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }

    pub(crate) fn savepoint(&mut self) -> Result<(), Failure> {
        self.control("SAVEPOINT member")
    }

    pub(crate) fn keep_savepoint(&mut self) -> Result<(), Failure> {
        self.control("RELEASE member")
    }

    pub(crate) fn undo_savepoint(&mut self) -> Result<(), Failure> {
        self.control("ROLLBACK TO member")?;
        self.control("RELEASE member")
    }

    pub(crate) fn has_table(&self, name: &str) -> Result<bool, Failure> {
        let found = self.connection.table_exists(None, name);
        found.map_err(|error| classify(&error))
    }

    /// Runs a whole script (a migration).
    pub(crate) fn script(&mut self, sql: &str) -> Result<(), Failure> {
        self.connection
            .execute_batch(sql)
            .map_err(|error| classify(&error))
    }

    /// Writes a consistent copy of the database to a file that is not there.
    pub(crate) fn copy_to(&mut self, file: &Path) -> Result<(), Failure> {
        let target = file.to_string_lossy();
        self.connection
            .execute("VACUUM INTO ?", [target.as_ref()])
            .map(drop)
            .map_err(|error| Failure::Unavailable(format!("{target}: {error}")))
    }

    fn control(&mut self, sql: &'static str) -> Result<(), Failure> {
        let mut statement = self
            .connection
            .prepare_cached(sql)
            .map_err(|error| classify(&error))?;
        statement.execute([]).map(drop).map_err(|error| classify(&error))
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> rusqlite::Result<Vec<Row>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let columns = statement.column_count();
        let mut found = statement.query(params_from_iter(values))?;
        let mut rows = Vec::new();
        while let Some(row) = found.next()? {
            let value = |column| row.get_ref(column).map(owned);
            rows.push(Row((0..columns).map(value).collect::<rusqlite::Result<_>>()?));
        }
        Ok(rows)
    }

    /// The plan of a statement, a line a step.
    #[cfg(test)]
    pub(crate) fn explain(&mut self, sql: &str) -> Result<Vec<String>, Failure> {
        let explain = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self.connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            let unbound = vec![rusqlite::types::Null; statement.parameter_count()];
            statement
                .query_map(params_from_iter(unbound), |row| row.get("detail"))?
                .collect()
        };
        explain().map_err(|error| classify(&error))
    }
}

#[async_trait]
impl Session for SqliteSession {
    async fn run(&mut self, sql: &Arc<str>, values: &[Value]) -> Result<u64, Failure> {
        let run = || -> rusqlite::Result<usize> {
            self.connection
                .prepare_cached(sql)?
                .execute(params_from_iter(values))
        };
        run()
            .map(|matched| matched as u64)
            .map_err(|error| classify(&error))
    }

    async fn rows(&mut self, sql: &Arc<str>, values: &[Value]) -> Result<Vec<Row>, Failure> {
        self.query(sql, values).map_err(|error| classify(&error))
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        Ok(match self {
            Value::Int(number) => (*number).into(),
            Value::Text(text) => text.as_str().into(),
            Value::Null => rusqlite::types::Null.into(),
        })
    }
}

fn owned(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Real(number) => Value::Text(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Value::Text(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

/// SQLite's own handler sleeps up to 100 ms at a time, which starves one process while another keeps writing; this
/// one asks every 2 ms, up to 5 s.
fn wait_for_other_writer(waits: i32) -> bool {
    std::thread::sleep(BUSY_WAIT);
    waits < BUSY_WAITS_MAX
}

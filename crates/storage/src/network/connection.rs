//! The two drivers behind one session. The only file that talks to them.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use sqlx::mysql::{MySqlConnectOptions, MySqlRow};
use sqlx::postgres::{PgConnectOptions, PgRow};
use sqlx::{
    AssertSqlSafe, Column, ConnectOptions, Executor, MySqlConnection, PgConnection, Row as _, TypeInfo,
    ValueRef,
};

use super::NetworkOptions;
use super::claim::{Line, Said};
use super::frame::{Frame, GALERA_FRAME, MYSQL_FRAME, POSTGRES_FRAME};
use super::primary::Hosts;
use crate::dialect::{Dialect, mysql, postgres};
use crate::failure::Failure;
use crate::hooks::mutant;
use crate::session::Session;
use crate::value::{Row, Value};

/// A connection, by itself or with the bounds of the queue ([`Lease`](super::Lease)).
#[async_trait]
pub(crate) trait Connection: Session + fmt::Debug {
    /// Runs a text that is ours and answers nothing: begin, commit, settings, migrations.
    async fn control(&mut self, sql: &'static str) -> Result<(), Failure>;

    /// The connection as the protocols see it.
    fn session(&mut self) -> &mut dyn Session;

    /// How its transactions begin and end.
    fn frame(&self) -> &'static Frame;

    /// Whether the commit that was answered just now has written anything, where the server's word is not enough.
    async fn has_written(&mut self) -> Result<bool, Failure>;
}

/// Where to connect to, and as whom.
#[derive(Clone)]
pub(crate) enum Connector {
    /// PostgreSQL, at one or several hosts.
    Postgres(Arc<Hosts>),
    /// MySQL or MariaDB: the server says which when it is asked.
    MySql(Box<MySqlConnectOptions>),
}

impl fmt::Debug for Connector {
    /// Names the dialect only: the options hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.dialect().name)
    }
}

impl Connector {
    pub(crate) fn dialect(&self) -> &'static Dialect {
        match self {
            Connector::Postgres(_) => &postgres::POSTGRES,
            Connector::MySql(_) => &mysql::MYSQL,
        }
    }

    /// The hosts, where there is anything to choose from.
    pub(super) fn hosts(&self) -> Option<&Arc<Hosts>> {
        match self {
            Connector::Postgres(hosts) => Some(hosts).filter(|hosts| hosts.has_several()),
            Connector::MySql(_) => None,
        }
    }

    /// Connects and sets what the protocols rely on: isolation, and a bound for every wait. Answers the term in which the
    /// connection's server is the primary as well.
    pub(crate) async fn connect(
        &self,
        options: &NetworkOptions,
    ) -> Result<(Box<dyn Connection>, u64), Failure> {
        match self {
            Connector::Postgres(hosts) => hosts.connect(options).await,
            Connector::MySql(connect) => {
                let connection = connect
                    .connect()
                    .await
                    .map_err(|error| refused(&error, mysql::classify))?;
                let mut session = MySql {
                    connection,
                    frame: &MYSQL_FRAME,
                    last_written: String::new(),
                };
                let flavour = Flavour::of(&mut session).await?;
                if flavour == Flavour::Galera && !mutant("m-intact") {
                    session.frame = &GALERA_FRAME;
                }
                session.set(&mysql_settings(options, flavour)).await?;
                // What it has written so far is nothing, whatever that is called.
                session.has_written().await?;
                Ok((Box::new(session), 0))
            }
        }
    }
}

/// Connects to one host, and asks it in the round trip of the settings whether it is a standby; also which line it writes,
/// where there are others that may say the same.
pub(super) async fn connect_postgres(
    connect: &PgConnectOptions,
    of_several: bool,
    options: &NetworkOptions,
) -> Result<(Box<dyn Connection>, Said), Failure> {
    let connection = connect
        .connect()
        .await
        .map_err(|error| refused(&error, postgres::classify_refusal))?;
    let mut session = Postgres {
        connection,
        frame: &POSTGRES_FRAME,
        last_written: String::new(),
    };
    let question = if of_several { WHICH_LINE } else { IN_RECOVERY };
    let text = format!("{}; {question}", postgres_settings(options));
    let mut rows = session.set(&text).await?;
    let row = rows
        .first_mut()
        .ok_or_else(|| Failure::Broken("it does not say whether it is in recovery".to_owned()))?;
    let said = if row.int(0)? == 1 {
        Said::Standby
    } else if of_several {
        let timeline = row.text(1)?;
        let timeline = u32::from_str_radix(&timeline, 16)
            .map_err(|_| Failure::Broken(format!("it says that its timeline is `{timeline}`")))?;
        Said::Primary(Line {
            system: row.text(2)?,
            timeline,
        })
    } else {
        Said::Primary(Line::default())
    };
    Ok((Box::new(session), said))
}

/// Whether the server is a standby.
const IN_RECOVERY: &str = "SELECT CAST(pg_is_in_recovery() AS INT)";

/// The same, and the line that a primary writes. The control file has the timeline too, but only since the first checkpoint
/// after a promotion; a name of the log has it at once. Not every relative of PostgreSQL answers this, so it is asked only
/// where it matters.
const WHICH_LINE: &str = "SELECT CAST(pg_is_in_recovery() AS INT),
    CASE WHEN pg_is_in_recovery() THEN '' ELSE LEFT(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END,
    (SELECT CAST(system_identifier AS TEXT) FROM pg_control_system())";

/// A server that says no (wrong password, no such database) will go on saying so; one that says nothing may come back.
fn refused(error: &sqlx::Error, classify: fn(&sqlx::Error) -> Failure) -> Failure {
    const POOLER: &str = "unsupported startup parameter";
    match classify(error) {
        Failure::Broken(detail) => Failure::Refused(format!("{detail}{}", mend(error))),
        // PgBouncer gives all its troubles one code; this one alone is for good.
        Failure::Disconnected(detail) if detail.contains(POOLER) => Failure::Refused(format!(
            "{detail}; PgBouncer needs `ignore_startup_parameters = extra_float_digits`, and must pool sessions"
        )),
        other => other,
    }
}

/// What an operator may do about it.
fn mend(error: &sqlx::Error) -> &'static str {
    let code = error.as_database_error().and_then(|error| error.code());
    match code.as_deref() {
        Some("28000" | "28P01") => "; check the user and the password (`database`, `database_password_file`)",
        Some("3D000" | "42000") => {
            "; create the database first and let the user in, or name another (`database`)"
        }
        _ => "",
    }
}

fn postgres_settings(options: &NetworkOptions) -> String {
    format!(
        // The first for this round trip itself: SERIALIZABLE, which may be the default, is refused by a standby.
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
         SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
         SET lock_timeout = {lock};
         SET statement_timeout = {statement};
         SET idle_in_transaction_session_timeout = {silent};
         SET client_min_messages = warning",
        lock = if mutant("m-unbounded-wait") {
            0
        } else {
            options.wait_ms_max
        },
        statement = if mutant("m-unbounded-wait") {
            0
        } else {
            options.wait_ms_max + 1_000
        },
        silent = if mutant("m-silent-session") {
            0
        } else {
            options.silent_ms_max
        },
    )
}

/// Which of the servers that speak MySQL's protocol it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    MySql,
    MariaDb,
    /// MariaDB as a node of a Galera cluster.
    Galera,
}

impl Flavour {
    /// Asks in a way that a node without its cluster answers too.
    pub(crate) async fn of(session: &mut dyn Session) -> Result<Flavour, Failure> {
        let variables = Arc::from("SHOW VARIABLES WHERE Variable_name IN ('version', 'wsrep_on')");
        let mut flavour = Flavour::MySql;
        // In the order of their names.
        for mut row in session.rows(&variables, &[]).await? {
            match (row.text(0)?.as_str(), row.text(1)?.as_str()) {
                ("version", version) if version.contains("MariaDB") => flavour = Flavour::MariaDb,
                ("wsrep_on", "ON") if flavour == Flavour::MariaDb => flavour = Flavour::Galera,
                ("wsrep_on", "ON") => {
                    let refused =
                        "of several primaries, those of MariaDB with Galera are supported; these are others";
                    return Err(Failure::Refused(refused.to_owned()));
                }
                _ => {}
            }
        }
        Ok(flavour)
    }
}

/// The lock bound is in whole seconds there. The default isolation keeps the first read's snapshot, and would miss a
/// child that was committed while its parent's lock was waited for.
///
/// A node of a cluster applies what the others have committed a little later than they answer it. So each read outside
/// a transaction, and each begin of one, waits until everything is there that was committed anywhere before
/// (`wsrep_sync_wait = 1`); what a transaction then reads is never older. And a node that has lost its cluster refuses
/// to read, whatever its own default is.
fn mysql_settings(options: &NetworkOptions, flavour: Flavour) -> String {
    let lock = if mutant("m-unbounded-wait") {
        86_400
    } else {
        options.wait_ms_max.div_ceil(1_000).max(1)
    };
    let statement = options.wait_ms_max + 1_000;
    let silent = if mutant("m-silent-session") {
        86_400
    } else {
        options.silent_ms_max.div_ceil(1_000).max(1)
    };
    let isolation = if mutant("m-snapshot") {
        "REPEATABLE READ"
    } else {
        "READ COMMITTED"
    };
    let cluster = match flavour {
        Flavour::MySql | Flavour::MariaDb => "",
        Flavour::Galera if mutant("m-sync-wait") => ", wsrep_sync_wait = 0",
        Flavour::Galera => ", wsrep_sync_wait = 1, wsrep_dirty_reads = OFF",
    };
    let own = match flavour {
        Flavour::MariaDb | Flavour::Galera => format!(
            "max_statement_time = {}, idle_transaction_timeout = {silent}, \
             idle_write_transaction_timeout = {silent}{cluster}",
            statement.div_ceil(1_000)
        ),
        Flavour::MySql => format!(
            "max_execution_time = {statement}, wait_timeout = {}",
            options.idle_max.as_secs().max(silent) + 1
        ),
    };
    format!(
        "SET SESSION TRANSACTION ISOLATION LEVEL {isolation};
         SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', lc_messages = 'en_US',
             innodb_lock_wait_timeout = {lock}, autocommit = 1, {own}"
    )
}

/// A statement with its parameters. A macro, because each driver has argument types of its own.
macro_rules! bound {
    ($sql:expr, $values:expr) => {{
        let mut query = sqlx::query(AssertSqlSafe(Arc::clone($sql)));
        for value in $values {
            query = match value {
                Value::Int(number) => query.bind(*number),
                Value::Text(text) => query.bind(text.as_str()),
                Value::Null => query.bind(None::<&str>),
            };
        }
        query
    }};
}

/// Implements the session of one driver. A macro too, since the drivers share no trait that has an
/// affected-row count.
macro_rules! session {
    ($session:ident, $connection:ty, $row:ty, $classify:path) => {
        #[derive(Debug)]
        struct $session {
            connection: $connection,
            frame: &'static Frame,
            /// What the server has called the last transaction that it took from this session.
            last_written: String,
        }

        impl $session {
            /// Runs several statements in one round trip, and answers the rows of all.
            async fn set(&mut self, sql: &str) -> Result<Vec<Row>, Failure> {
                let text = sqlx::raw_sql(AssertSqlSafe(sql));
                let rows = self.connection.fetch_all(text).await;
                Self::decode(rows)
            }

            fn decode(rows: Result<Vec<$row>, sqlx::Error>) -> Result<Vec<Row>, Failure> {
                fn value(row: &$row, column: usize) -> Result<Value, sqlx::Error> {
                    let raw = row.try_get_raw(column)?;
                    if raw.is_null() {
                        return Ok(Value::Null);
                    }
                    match row.column(column).type_info().name() {
                        "INT8" | "BIGINT" => row.try_get::<i64, _>(column).map(Value::Int),
                        "INT4" | "INT" => row
                            .try_get::<i32, _>(column)
                            .map(|number| Value::Int(number.into())),
                        _ => row.try_get::<String, _>(column).map(Value::Text),
                    }
                }
                let decode = |row: &$row| -> Result<Row, sqlx::Error> {
                    let columns = 0..row.columns().len();
                    columns
                        .map(|column| value(row, column))
                        .collect::<Result<_, _>>()
                        .map(Row)
                };
                rows.and_then(|rows| rows.iter().map(decode).collect())
                    .map_err(|error| $classify(&error))
            }
        }

        #[async_trait]
        impl Connection for $session {
            async fn control(&mut self, sql: &'static str) -> Result<(), Failure> {
                let done = self.connection.execute(sqlx::raw_sql(sql)).await;
                done.map(drop).map_err(|error| $classify(&error))
            }

            fn session(&mut self) -> &mut dyn Session {
                self
            }

            fn frame(&self) -> &'static Frame {
                self.frame
            }

            async fn has_written(&mut self) -> Result<bool, Failure> {
                let Some(sql) = self.frame.last_written else {
                    return Ok(true);
                };
                let found = self.rows(&Arc::from(sql), &[]).await?.pop();
                let last = found
                    .map(|mut row| row.text(0))
                    .transpose()?
                    .unwrap_or_default();
                let is_new = last != self.last_written;
                self.last_written = last;
                Ok(is_new)
            }
        }

        #[async_trait]
        impl Session for $session {
            async fn run(&mut self, sql: &Arc<str>, values: &[Value]) -> Result<u64, Failure> {
                let query = bound!(sql, values);
                let done = self.connection.execute(query).await;
                done.map(|done| done.rows_affected())
                    .map_err(|error| $classify(&error))
            }

            async fn rows(&mut self, sql: &Arc<str>, values: &[Value]) -> Result<Vec<Row>, Failure> {
                let query = bound!(sql, values);
                Self::decode(self.connection.fetch_all(query).await)
            }
        }
    };
}

session!(Postgres, PgConnection, PgRow, postgres::classify);
session!(MySql, MySqlConnection, MySqlRow, mysql::classify);

//! From a database's URL to the settings of its connections.

use std::str::FromStr;
use std::time::Duration;

use log::LevelFilter;
use sqlx::ConnectOptions;
use sqlx::mysql::MySqlConnectOptions;
use treeline_core::{Error, Result};

use super::primary::Hosts;
use super::{Connector, hosts};
use crate::open::StoreOptions;

/// Everything that a connection is made with.
#[derive(Clone, Debug)]
pub(crate) struct NetworkOptions {
    pub(crate) connector: Connector,
    pub(crate) connections_max: usize,
    /// The bound of a wait for a connection.
    pub(crate) acquire_ms_max: u64,
    /// The bound of a wait for a row lock.
    pub(crate) wait_ms_max: u64,
    /// How long the server suffers a session that is silent inside a transaction.
    pub(crate) silent_ms_max: u64,
    /// A connection that was idle for longer is not used again.
    pub(crate) idle_max: Duration,
}

/// More prepared statements than there are, a connection.
pub(super) const STATEMENTS_CACHED_MAX: usize = 256;

/// Reads a URL of a database behind a server. `None` for other schemes; [`Error::Invalid`] for one that is damaged.
/// No message ever repeats the URL: it may hold a password.
pub(crate) fn parse(options: &StoreOptions) -> Result<Option<NetworkOptions>> {
    let (scheme, rest) = options.url.split_once(':').unwrap_or_default();
    let bad =
        |error: sqlx::Error| Error::invalid("database", format!("the {scheme} URL is damaged: {error}"));
    let connector = match scheme {
        "postgres" | "postgresql" => {
            let hosts = hosts::of_postgres(&options.url, options.password.as_deref())?;
            Connector::Postgres(Hosts::new(hosts))
        }
        "mysql" | "mariadb" => {
            hosts::refuse_several(scheme, &options.url)?;
            let mut connect = MySqlConnectOptions::from_str(&format!("mysql:{rest}")).map_err(bad)?;
            if let Some(password) = &options.password {
                connect = connect.password(password);
            }
            let connect = connect
                .statement_cache_capacity(STATEMENTS_CACHED_MAX)
                .charset("utf8mb4")
                .collation("utf8mb4_bin");
            Connector::MySql(Box::new(
                connect
                    .log_statements(LevelFilter::Off)
                    .log_slow_statements(LevelFilter::Off, Duration::ZERO),
            ))
        }
        _ => return Ok(None),
    };
    Ok(Some(NetworkOptions {
        connector,
        connections_max: options.connections_max,
        acquire_ms_max: options.acquire_ms_max,
        // Servers take 0 for no bound at all.
        wait_ms_max: options.operation_ms_max.max(1),
        silent_ms_max: (options.operation_ms_max / 2).max(1),
        idle_max: Duration::from_secs(20),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bound_is_so_short_that_there_is_none() {
        for operation_ms_max in [0, 1] {
            let options = StoreOptions {
                operation_ms_max,
                ..StoreOptions::new("postgres://nobody@localhost/none")
            };
            let parsed = parse(&options).unwrap().unwrap();
            assert_eq!((parsed.wait_ms_max, parsed.silent_ms_max), (1, 1));
        }
    }
}

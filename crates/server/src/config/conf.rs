//! A `gravitino.conf` file: `key = value` lines, of which those that mean something here are mapped.
//!
//! Three groups of keys have no effect and are named in one warning each: those of the retired lock tree, those of
//! the predecessor that have no counterpart, and unknown ones. A key that would have kept somebody out (another
//! authenticator, authorization) or moved the data elsewhere (another database) is refused: to pass over it would
//! start a server that does something else than its file says.

use std::collections::BTreeMap;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{ConfigError, Given, Options};

/// What is known and has no counterpart.
const WITHOUT_EFFECT: &[&str] = &[
    "gravitino.auxService.",
    "gravitino.audit.",
    "gravitino.authorization.",
    "gravitino.bypass.",
    "gravitino.cache.",
    "gravitino.catalog.",
    "gravitino.entity.",
    "gravitino.fetchFile.",
    "gravitino.iceberg-rest.",
    "gravitino.job.",
    "gravitino.jobExecutor.",
    "gravitino.lance-rest.",
    "gravitino.lineage.",
    "gravitino.metrics.",
    "gravitino.secret.",
    "gravitino.schema.",
    "gravitino.server.",
    "gravitino.stats.",
];

/// What the retired lock tree was configured with.
const LOCKS: &str = "gravitino.lock.";

const HOST: &str = "gravitino.server.webserver.host";
const PORT: &str = "gravitino.server.webserver.httpPort";
const HTTPS: &str = "gravitino.server.webserver.enableHttps";
const IDLE: &str = "gravitino.server.webserver.idleTimeout";
const SHUTDOWN: &str = "gravitino.server.shutdown.timeout";
const JDBC_URL: &str = "gravitino.entity.store.relational.jdbcUrl";
const JDBC_USER: &str = "gravitino.entity.store.relational.jdbcUser";
const JDBC_PASSWORD: &str = "gravitino.entity.store.relational.jdbcPassword";
const STORAGE_PATH: &str = "gravitino.entity.store.relational.storagePath";
const AUTHENTICATORS: [&str; 2] = ["gravitino.authenticators", "gravitino.authenticator"];
const AUTHORIZATION: &str = "gravitino.authorization.enable";

/// Reads such a file into options, with the warnings that it earns.
pub(super) fn read(text: &str) -> Result<Given, ConfigError> {
    let mut keys = parse(text)?;
    refuse_what_would_be_missed(&mut keys)?;
    let options = Options {
        listen: listen(&mut keys)?,
        data_dir: take(&mut keys, STORAGE_PATH).map(Into::into),
        database: database(&mut keys)?,
        head_read_ms_max: number(&mut keys, IDLE)?,
        shutdown_ms_max: number(&mut keys, SHUTDOWN)?,
        ..Options::default()
    };
    let password = take(&mut keys, JDBC_PASSWORD);
    Ok(Given {
        options,
        password,
        warnings: warnings(keys.into_keys()),
    })
}

/// `key = value` lines; of a key that stands twice the last counts; `#` and `!` begin comments.
fn parse(text: &str) -> Result<BTreeMap<String, String>, ConfigError> {
    let mut keys = BTreeMap::new();
    for (line, text) in text.lines().enumerate() {
        let text = text.trim();
        if text.is_empty() || text.starts_with(['#', '!']) {
            continue;
        }
        let Some((key, value)) = text.split_once('=') else {
            return Err(ConfigError(format!(
                "line {} of the configuration is no `key = value`",
                line + 1
            )));
        };
        keys.insert(key.trim().to_owned(), value.trim().to_owned());
    }
    Ok(keys)
}

fn refuse_what_would_be_missed(keys: &mut BTreeMap<String, String>) -> Result<(), ConfigError> {
    for key in AUTHENTICATORS {
        let Some(value) = take(keys, key) else { continue };
        if value.split(',').any(|name| name.trim() != "simple") {
            return Err(ConfigError(format!(
                "`{key}` is `{value}`; this server has `simple` only"
            )));
        }
    }
    for key in [AUTHORIZATION, HTTPS] {
        if take(keys, key).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Err(ConfigError(format!(
                "`{key}` is true; this server does not have it yet"
            )));
        }
    }
    Ok(())
}

fn listen(keys: &mut BTreeMap<String, String>) -> Result<Option<String>, ConfigError> {
    let host = take(keys, HOST);
    let port: Option<u16> = number(keys, PORT)?;
    if host.is_none() && port.is_none() {
        return Ok(None);
    }
    let host = host.unwrap_or_else(|| "0.0.0.0".to_owned());
    let host = if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]")
    } else {
        host
    };
    Ok(Some(format!("{host}:{}", port.unwrap_or(8090))))
}

/// The embedded database of the predecessor stands for ours. Of any other the address is taken; the parameters of
/// its URL are for another driver.
fn database(keys: &mut BTreeMap<String, String>) -> Result<Option<String>, ConfigError> {
    let Some(url) = take(keys, JDBC_URL) else {
        return Ok(None);
    };
    let user = take(keys, JDBC_USER);
    match url.strip_prefix("jdbc:") {
        Some(embedded) if embedded.starts_with("h2") => {
            take(keys, JDBC_PASSWORD);
            Ok(None)
        }
        Some(rest) => {
            let address = rest.split('?').next().unwrap_or(rest);
            Ok(Some(match (user, address.split_once("://")) {
                (Some(user), Some((scheme, host))) => {
                    let user = utf8_percent_encode(&user, NON_ALPHANUMERIC);
                    format!("{scheme}://{user}@{host}")
                }
                _ => address.to_owned(),
            }))
        }
        None => Err(ConfigError(format!("`{JDBC_URL}` is no JDBC URL"))),
    }
}

fn take(keys: &mut BTreeMap<String, String>, key: &str) -> Option<String> {
    keys.remove(key).filter(|value| !value.is_empty())
}

fn number<N: std::str::FromStr>(
    keys: &mut BTreeMap<String, String>,
    key: &str,
) -> Result<Option<N>, ConfigError> {
    let Some(value) = take(keys, key) else {
        return Ok(None);
    };
    let refused = || ConfigError(format!("`{key}` is `{value}`, which is no number that fits"));
    value.parse().map(Some).map_err(|_| refused())
}

/// One line for each group of keys that have no effect.
fn warnings(keys: impl Iterator<Item = String>) -> Vec<String> {
    let (mut locks, mut without, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for key in keys {
        if key.starts_with(LOCKS) {
            locks.push(key);
        } else if WITHOUT_EFFECT.iter().any(|prefix| key.starts_with(prefix)) {
            without.push(key);
        } else {
            unknown.push(key);
        }
    }
    let groups = [
        (
            locks,
            "the database decides races here, so these keys are ignored",
        ),
        (without, "these keys have no counterpart here and are ignored"),
        (unknown, "these keys are unknown and are ignored"),
    ];
    let told = groups.into_iter().filter(|(keys, _)| !keys.is_empty());
    told.map(|(keys, text)| format!("{text}: {}", keys.join(", ")))
        .collect()
}

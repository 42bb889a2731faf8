//! Which database, and with which password. Whatever shows a [`Database`] to people leaves the password out.

use std::fmt;
use std::path::{Path, PathBuf};

use treeline_storage::StoreOptions;

use super::{ConfigError, Options};

/// The schemes that the store knows.
const SCHEMES: [&str; 5] = ["sqlite", "postgres", "postgresql", "mysql", "mariadb"];

/// A database to open.
#[derive(Clone, PartialEq, Eq)]
pub struct Database {
    url: String,
    password: Option<String>,
    /// How many connections to a database server.
    pub connections_max: usize,
    /// How long a request waits for one, in milliseconds.
    pub acquire_ms_max: u64,
}

impl Database {
    /// What the options say, with the password that the file gave itself; by default a file in the data directory.
    pub(super) fn of(
        options: &Options,
        password: Option<String>,
        data_dir: &Path,
    ) -> Result<Database, ConfigError> {
        let url = match &options.database {
            Some(url) => checked_url(url)?,
            None => format!("sqlite:{}", data_dir.join("treeline.db").display()),
        };
        let password = match &options.database_password_file {
            Some(file) => Some(read_password(file)?),
            None => password,
        };
        let defaults = StoreOptions::new("");
        Ok(Database {
            url,
            password,
            connections_max: options
                .database_connections_max
                .unwrap_or(defaults.connections_max),
            acquire_ms_max: options.database_acquire_ms_max.unwrap_or(defaults.acquire_ms_max),
        })
    }

    /// The URL as it was given, for the store alone.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The password, if it does not stand in the URL.
    pub(crate) fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// Whether writers of one name are faster if they take turns within the server: `docs/benchmarks.md` has the figures.
    pub(super) fn gains_by_local_locks(&self) -> bool {
        match self.url.split_once(':') {
            Some(("postgres" | "postgresql" | "mysql", _)) => true,
            // MariaDB gains nothing, and SQLite has one writer that commits what waits in groups: it is better to wait
            // together.
            Some(_) | None => false,
        }
    }

    /// The file of an embedded database.
    pub fn file(&self) -> Option<PathBuf> {
        let path = self.url.strip_prefix("sqlite:")?;
        Some(path.strip_prefix("//").unwrap_or(path).into())
    }
}

impl fmt::Display for Database {
    /// The URL without user, password and parameters. A password may hold every one of `/?#@` unencoded, so it ends at the
    /// last `@` of all.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.file().is_some() {
            return f.write_str(&self.url);
        }
        let (scheme, rest) = self.url.split_once(':').unwrap_or_default();
        let (before, host) = rest.rsplit_once('@').unwrap_or(("", rest));
        // An `@` behind a parameter is perhaps its own, and what follows then the end of `?password=`.
        let in_parameter = before
            .split_once('?')
            .is_some_and(|(_, after)| after.contains('='));
        let host = if in_parameter { "…" } else { host };
        let host = host.split(['?', '#']).next().unwrap_or_default();
        write!(f, "{scheme}://{}", host.trim_start_matches('/'))
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn checked_url(url: &str) -> Result<String, ConfigError> {
    let told = match url.split_once(':') {
        Some(("sqlite", "" | "//")) => "the database URL `sqlite:` names no file".to_owned(),
        Some((scheme, _)) if SCHEMES.contains(&scheme) => return Ok(url.to_owned()),
        Some((scheme, _)) if scheme.len() > 1 && scheme.chars().all(|part| part.is_ascii_alphanumeric()) => {
            format!(
                "the database URL begins with `{scheme}:`; this server knows {}",
                SCHEMES.join(", ")
            )
        }
        _ => "the database is given by a URL, for example `sqlite:/var/lib/treeline/treeline.db`".to_owned(),
    };
    Err(ConfigError(told))
}

/// The whole file, but for a line break at its end.
fn read_password(file: &Path) -> Result<String, ConfigError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| ConfigError(format!("`database_password_file`, `{}`: {error}", file.display())))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

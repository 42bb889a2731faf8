//! The hosts of a URL that names several, in the form that PostgreSQL's own clients take:
//! `postgres://user@h1:5432,h2:5433/database`.
//!
//! The driver takes one host, so the URL is taken apart here, and it gets one URL a host. No message repeats more of it
//! than a host: the rest may hold a password.

use std::str::FromStr;
use std::time::Duration;

use log::LevelFilter;
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use treeline_core::{Error, Result};

use super::options::STATEMENTS_CACHED_MAX;

/// More than any cluster has; each is asked by every server, all the time.
pub(super) const HOSTS_MAX: usize = 8;

/// What a parameter of the URL would say for every host at once.
const OF_ONE_HOST: [&str; 3] = ["host", "hostaddr", "port"];

/// One server of a database, and how it is reached.
#[derive(Clone)]
pub(super) struct Host {
    /// Its name and port, for people.
    pub(super) name: String,
    pub(super) connect: PgConnectOptions,
}

/// The hosts of a PostgreSQL URL, in its order.
pub(super) fn of_postgres(url: &str, password: Option<&str>) -> Result<Vec<Host>> {
    let parts = Parts::of(url);
    let names: Vec<&str> = parts.hosts.split(',').collect();
    let named_elsewhere = parts.parameters().any(|(key, value)| {
        OF_ONE_HOST.contains(&key) && (names.len() > 1 || value.contains(',') || value.contains("%2C"))
    });
    if named_elsewhere {
        let reason = "several hosts stand before the database: postgres://user@h1:5432,h2:5432/database";
        return Err(Error::invalid("database", reason));
    }
    if names.len() > HOSTS_MAX {
        let reason = format!("the URL names {} hosts, and {HOSTS_MAX} are enough", names.len());
        return Err(Error::invalid("database", reason));
    }
    let mut hosts: Vec<Host> = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let host = if names.len() == 1 {
            Host::of(url, password)?
        } else if !name.starts_with('[') && name.matches(':').count() > 1 {
            let reason = format!(
                "host {} of the URL: an IPv6 address stands in brackets, [::1]:5432",
                number + 1
            );
            return Err(Error::invalid("database", reason));
        } else if name.is_empty() || name.starts_with(':') {
            let reason = format!("host {} of the URL has no name", number + 1);
            return Err(Error::invalid("database", reason));
        } else {
            Host::of(&format!("{}{name}{}", parts.before, parts.after), password)?
        };
        if hosts.iter().any(|other| other.name == host.name) {
            let reason = format!("the URL names {} twice", host.name);
            return Err(Error::invalid("database", reason));
        }
        hosts.push(host);
    }
    Ok(hosts)
}

/// Only PostgreSQL says of itself whether it is the primary.
pub(super) fn refuse_several(scheme: &str, url: &str) -> Result<()> {
    if Parts::of(url).hosts.contains(',') {
        let reason = format!("a {scheme} URL names one host; only one of PostgreSQL may name several");
        return Err(Error::invalid("database", reason));
    }
    Ok(())
}

impl Host {
    fn of(url: &str, password: Option<&str>) -> Result<Host> {
        let connect = PgConnectOptions::from_str(url)
            .map_err(|error| Error::invalid("database", format!("the postgres URL is damaged: {error}")))?;
        let (host, port) = (connect.get_host().to_ascii_lowercase(), connect.get_port());
        // Looked up by its name, an address in brackets is not found.
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let connect = match bare {
            Some(bare) => connect.host(bare),
            None => connect,
        };
        let name = match connect.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => format!("{host}:{port}"),
        };
        let connect = match password {
            Some(password) => connect.password(password),
            None => connect,
        };
        Ok(Host {
            name,
            connect: connect
                .application_name("treeline")
                .statement_cache_capacity(STATEMENTS_CACHED_MAX)
                .log_statements(LevelFilter::Off)
                .log_slow_statements(LevelFilter::Off, Duration::ZERO),
        })
    }
}

/// A URL around its hosts.
struct Parts<'u> {
    before: &'u str,
    hosts: &'u str,
    after: &'u str,
}

impl<'u> Parts<'u> {
    fn of(url: &'u str) -> Parts<'u> {
        let authority = url.find("://").map_or(url.len(), |start| start + 3);
        let rest = &url[authority..];
        let end = authority + rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let start = url[authority..end]
            .rfind('@')
            .map_or(authority, |at| authority + at + 1);
        Parts {
            before: &url[..start],
            hosts: &url[start..end],
            after: &url[end..],
        }
    }

    fn parameters(&self) -> impl Iterator<Item = (&'u str, &'u str)> {
        let query = self.after.split_once('?').map_or("", |(_, query)| query);
        let query = query.split('#').next().unwrap_or_default();
        query
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(url: &str) -> Vec<String> {
        let hosts = of_postgres(url, None).unwrap();
        hosts.into_iter().map(|host| host.name).collect()
    }

    fn refusal(url: &str) -> String {
        let told = of_postgres(url, None).map(drop).unwrap_err().to_string();
        assert!(told.contains("database") && !told.contains("s3cret"), "{told}");
        told
    }

    #[test]
    fn a_url_names_one_host_or_several_each_with_its_port() {
        assert_eq!(names("postgres://h/d"), ["h:5432"]);
        assert_eq!(
            names("postgres://u:s3cret@h1:1,h2/d?sslmode=disable"),
            ["h1:1", "h2:5432"]
        );
        assert_eq!(names("postgresql://u@H1,h2:2"), ["h1:5432", "h2:2"]);
        let hosts = of_postgres("postgres://u:a,b@h1:1,h2:2/tree", None).unwrap();
        for host in &hosts {
            assert_eq!(host.connect.get_username(), "u");
            assert_eq!(host.connect.get_database(), Some("tree"));
        }
        assert_eq!(
            (hosts[1].connect.get_host(), hosts[1].connect.get_port()),
            ("h2", 2)
        );
    }

    #[test]
    fn an_address_in_brackets_is_looked_up_without_them() {
        let hosts = of_postgres("postgres://u@[::1]:1,[fe80::2],127.0.0.1/d", None).unwrap();
        let named: Vec<(&str, &str)> = hosts
            .iter()
            .map(|host| (host.name.as_str(), host.connect.get_host()))
            .collect();
        let expected = [
            ("[::1]:1", "::1"),
            ("[fe80::2]:5432", "fe80::2"),
            ("127.0.0.1:5432", "127.0.0.1"),
        ];
        assert_eq!(named, expected);
    }

    #[test]
    fn a_list_that_cannot_be_meant_is_refused_with_what_is_wrong() {
        for url in [
            "postgres://u:s3cret@,h2/d",
            "postgres://h1,:5433/d",
            "postgres://h1,/d",
        ] {
            assert!(refusal(url).contains("has no name"), "{url}");
        }
        assert!(refusal("postgres://u:s3cret@h1,h2,H1:5432/d").contains("names h1:5432 twice"));
        assert!(refusal("postgres://u:s3cret@h1:x,h2/d").contains("damaged"));
        assert!(refusal("postgres://u:s3cret@h1,::1/d").contains("host 2 of the URL: an IPv6 address"));
        let many = |count: usize| {
            let hosts: Vec<String> = (0..count).map(|number| format!("h{number}")).collect();
            format!("postgres://u:s3cret@{}/d", hosts.join(","))
        };
        assert_eq!(names(&many(HOSTS_MAX)).len(), HOSTS_MAX);
        assert!(refusal(&many(HOSTS_MAX + 1)).contains("9 hosts"));
        for url in [
            "postgres://u:s3cret@h1,h2/d?port=5433",
            "postgres:///d?host=h1,h2&password=s3cret",
            "postgres:///d?password=s3cret&hostaddr=::1%2C::2",
        ] {
            assert!(refusal(url).contains("before the database"), "{url}");
        }
        assert!(of_postgres("postgres:///d?host=/run/postgresql", None).is_ok());
    }

    #[test]
    fn only_postgresql_may_have_several() {
        refuse_several("mysql", "mysql://u:a,b@h/d?x=1,2").unwrap();
        let told = refuse_several("mysql", "mysql://u:s3cret@h1,h2/d")
            .unwrap_err()
            .to_string();
        assert!(told.contains("one host") && !told.contains("s3cret"), "{told}");
    }
}

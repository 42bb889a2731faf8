//! Which of flag, file and default wins, and what is refused.

use super::*;

fn file(name: &str, text: &str) -> (tempfile::TempDir, Options) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, text).unwrap();
    (
        directory,
        Options {
            config: Some(path),
            ..Options::default()
        },
    )
}

fn load(name: &str, text: &str) -> Result<Config, ConfigError> {
    let (_directory, options) = file(name, text);
    Config::load(options)
}

fn refused(name: &str, text: &str) -> String {
    load(name, text).unwrap_err().to_string()
}

#[test]
fn without_anything_the_defaults_hold() {
    let config = Config::load(Options::default()).unwrap();
    assert_eq!(config.listen, "127.0.0.1:8090");
    assert!(config.data_dir.is_absolute() && config.data_dir.ends_with("treeline-data"));
    assert_eq!(
        config.database.to_string(),
        format!("sqlite:{}/treeline.db", config.data_dir.display())
    );
    assert_eq!(config.limits, Limits::default());
}

#[test]
fn the_defaults_in_the_help_are_those_that_hold() {
    use clap::Args as _;
    let command = Options::augment_args(clap::Command::new("treeline"));
    let by_default = Config::load(Options::default()).unwrap();
    let mut seen = 0;
    for option in command.get_arguments() {
        let help = option.get_help().map(ToString::to_string).unwrap_or_default();
        let Some((_, default)) = help.split_once("[default: ") else {
            continue;
        };
        let number = default.split([',', ']']).next().unwrap_or_default();
        if number.parse::<u64>().is_err() {
            continue;
        }
        let key = option.get_id();
        let given = load("t.toml", &format!("{key} = {number}")).unwrap();
        assert_eq!(given, by_default, "{key}");
        seen += 1;
    }
    assert!(seen > 10, "only {seen} defaults are numbers");
}

#[test]
fn what_is_given_wins_over_the_file_and_the_file_over_the_default() {
    let (_directory, options) = file(
        "t.toml",
        "listen = \"127.0.0.1:1\"\nrequests_max = 7\nlog_format = \"json\"",
    );
    let config = Config::load(Options {
        listen: Some("127.0.0.1:2".into()),
        ..options
    })
    .unwrap();
    assert_eq!(config.listen, "127.0.0.1:2");
    assert_eq!(config.limits.requests_max, 7);
    assert_eq!(config.log_format, LogFormat::Json);
    assert_eq!(config.occ_retries_max, 3);
}

#[test]
fn writes_take_turns_where_that_was_seen_to_gain_unless_told_otherwise() {
    let on = |given: Option<LocalLocks>, database: Option<&str>| {
        let options = Options {
            local_locks: given,
            database: database.map(str::to_owned),
            ..Options::default()
        };
        Config::load(options).unwrap().local_locks
    };
    for server in ["postgres://h/x", "postgresql://h/x", "mysql://h/x"] {
        assert!(on(None, Some(server)) && on(Some(LocalLocks::Auto), Some(server)));
        assert!(!on(Some(LocalLocks::Off), Some(server)));
    }
    for other in ["mariadb://h/x", "sqlite:/tmp/x.db"] {
        assert!(!on(None, Some(other)) && !on(Some(LocalLocks::Auto), Some(other)));
    }
    assert!(!on(None, None));
    assert!(on(Some(LocalLocks::On), None));
    assert!(load("t.toml", "local_locks = \"on\"").unwrap().local_locks);
    assert!(refused("t.toml", "local_locks = \"perhaps\"").contains("perhaps"));
}

#[test]
fn an_unknown_key_is_refused_by_name_and_line() {
    let told = refused("t.toml", "listen = \"a:1\"\n\nlisten_on = 3\n");
    assert!(
        told.contains("listen_on") && told.contains("line 3") && !told.contains('\n'),
        "{told}"
    );
    assert!(refused("t.toml", "listen = 3").contains("line 1"));
    assert!(refused("t.toml", "config = \"x\"").contains("config"));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let options = Options {
        config: Some("/nowhere/t.toml".into()),
        ..Options::default()
    };
    assert!(
        Config::load(options)
            .unwrap_err()
            .to_string()
            .contains("/nowhere/t.toml")
    );
}

#[test]
fn only_urls_of_known_databases_are_taken() {
    let of = |url: &str| {
        Config::load(Options {
            database: Some(url.into()),
            ..Options::default()
        })
    };
    assert_eq!(
        of("sqlite:/tmp/x.db").unwrap().database.file().unwrap(),
        Path::new("/tmp/x.db")
    );
    for url in [
        "postgres://h/x",
        "postgresql://h/x",
        "mysql://h/x",
        "mariadb://h/x",
    ] {
        assert_eq!(of(url).unwrap().database.url(), url);
    }
    assert!(of("oracle://h/x").unwrap_err().to_string().contains("`oracle:`"));
    assert!(of("sqlite:").unwrap_err().to_string().contains("names no file"));
    assert!(of("/tmp/x.db").unwrap_err().to_string().contains("by a URL"));
}

#[test]
fn a_password_is_never_shown() {
    let (_directory, options) = file("password", "s3cret\n");
    let url = "postgres://user:s3cret@db.example:5432/tree?sslkey=s3cret";
    let options = Options {
        database: Some(url.into()),
        database_password_file: options.config,
        ..Options::default()
    };
    let database = Config::load(options).unwrap().database;
    assert_eq!(database.password(), Some("s3cret"));
    assert_eq!(database.to_string(), "postgres://db.example:5432/tree");
    assert_eq!(format!("{database:?}"), database.to_string());
}

#[test]
fn no_piece_of_a_password_is_shown_whatever_it_is_written_with() {
    let shown = |url: &str| {
        let options = Options {
            database: Some(url.into()),
            ..Options::default()
        };
        Config::load(options).unwrap().database.to_string()
    };
    for password in [
        "pa#ss", "pa?ss", "pa/ss", "pa@ss", "p@a/s?s#", "#pass", "?pass@", "p=a#s",
    ] {
        let url = format!("postgres://u:{password}@h:5432/d?application_name=x");
        assert_eq!(shown(&url), "postgres://h:5432/d", "{password}");
    }
    for url in [
        "mysql://h/d?password=pa@ss",
        "mysql://u:pa?s=@ss@h/d?x=y",
        "mysql://u:pa@h/d?x=ss@y",
    ] {
        assert_eq!(shown(url), "mysql://…", "{url}");
    }
}

#[test]
fn values_that_cannot_work_are_refused_by_name() {
    for (key, value) in [
        ("requests_max", "0"),
        ("worker_threads", "0"),
        ("request_ms_max", "0"),
        ("answer_stall_ms_max", "0"),
        ("sweep_interval_ms", "0"),
        ("retention_ms", "9223372036854775807"),
        ("allowed_roots", "[\"here\"]"),
    ] {
        let loaded = load("t.toml", &format!("{key} = {value}"));
        match key {
            "retention_ms" => assert!(loaded.is_ok()),
            _ => assert!(loaded.unwrap_err().to_string().contains(key), "{key}"),
        }
    }
}

#[test]
fn there_must_be_room_for_the_longest_body() {
    let told = refused("t.toml", "bodies_bytes_max = 4194303");
    assert!(
        told.contains("`bodies_bytes_max`") && told.contains("`body_bytes_max`"),
        "{told}"
    );
    let config = load("t.toml", "bodies_bytes_max = 9\nbody_bytes_max = 9").unwrap();
    assert_eq!(config.limits.bodies_bytes_max, 9);
}

#[test]
fn a_gravitino_conf_is_understood() {
    let text = "
        # a comment
        gravitino.server.webserver.host = 127.0.0.1
        gravitino.server.webserver.httpPort=8091
        gravitino.server.webserver.httpPort = 8092
        gravitino.server.shutdown.timeout = 3000
        gravitino.entity.store.relational.jdbcUrl = jdbc:h2
        gravitino.authenticators = simple
        gravitino.authorization.enable = false
        gravitino.server.webserver.minThreads = 24
        gravitino.lock.maxNodes = 100000
        gravitino.lock.cleanIntervalInSecs = 60
        some.thing = else";
    let config = load("gravitino.conf", text).unwrap();
    assert_eq!(config.listen, "127.0.0.1:8092");
    assert_eq!(config.shutdown_max, Duration::from_secs(3));
    assert!(config.database.file().is_some());
    let [locks, without, unknown] = config.warnings.as_slice() else {
        panic!("{:?}", config.warnings)
    };
    assert!(
        locks.contains("gravitino.lock.cleanIntervalInSecs, gravitino.lock.maxNodes"),
        "{locks}"
    );
    assert!(without.contains("minThreads"), "{without}");
    assert!(unknown.contains("some.thing"), "{unknown}");
}

#[test]
fn a_gravitino_conf_may_name_another_database() {
    let text = "
        gravitino.entity.store.relational.jdbcUrl = jdbc:mysql://db:3306/tree?useSSL=false
        gravitino.entity.store.relational.jdbcUser = a b
        gravitino.entity.store.relational.jdbcPassword = s3cret";
    let config = load("gravitino.conf", text).unwrap();
    assert_eq!(config.database.url(), "mysql://a%20b@db:3306/tree");
    assert_eq!(config.database.password(), Some("s3cret"));
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
}

#[test]
fn what_would_keep_people_out_is_not_passed_over() {
    for (line, named) in [
        (
            "gravitino.authenticators = simple,oauth",
            "gravitino.authenticators",
        ),
        (
            "gravitino.authorization.enable = TRUE",
            "gravitino.authorization.enable",
        ),
        ("gravitino.server.webserver.enableHttps = true", "enableHttps"),
        (
            "gravitino.entity.store.relational.jdbcUrl = jdbc:oracle://db/x",
            "oracle",
        ),
        ("gravitino.server.webserver.httpPort = 99999", "httpPort"),
        ("nonsense", "line 1"),
    ] {
        assert!(refused("gravitino.conf", line).contains(named), "{line}");
    }
}

//! Databases that are not as a store would have them: each is made to fit, or refused with the key to mend, and
//! nothing is changed.

use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use treeline_core::kinds::Metalake;
use treeline_core::{Error, NewEntity};
use treeline_storage::{Store, StoreOptions};

use crate::harness::{Bed, context, name, refused, tests};
use crate::proxy::Cut;

tests! {
    a_schema_newer_than_the_binary_is_refused,
    a_migration_whose_process_died_is_completed_by_the_next,
    stores_that_migrate_at_once_all_open,
    a_migration_that_a_lock_refuses_begins_anew,
    who_waits_too_long_for_a_migration_is_told_so,
    a_database_that_may_only_be_read_is_refused,
    a_databases_own_settings_do_not_matter,
    a_start_does_not_wait_for_ever_for_a_server_that_says_nothing,
}

/// It lets connect, as one that is frozen does, or one behind a balancer that has none.
async fn a_start_does_not_wait_for_ever_for_a_server_that_says_nothing(bed: Bed) {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (scheme, _) = bed.options.url.split_once("://").unwrap();
    let options = StoreOptions {
        url: format!("{scheme}://nobody@{}/none", silent.local_addr().unwrap()),
        acquire_ms_max: 300,
        ..bed.options.clone()
    };
    let opened = tokio::time::timeout(Duration::from_secs(10), Store::open(options));
    let told = opened.await.unwrap().unwrap_err();
    assert!(matches!(told, Error::ConnectionFailed { .. }), "{told:?}");
}

async fn a_schema_newer_than_the_binary_is_refused(bed: Bed) {
    bed.execute("INSERT INTO schema_migrations (version, name, applied_at) VALUES (99, 'later', 0)")
        .await;
    let reason = refused(bed.options.clone()).await;
    assert!(reason.contains("version 99, newer than"), "{reason}");
    assert!(Store::migrate(bed.options.clone()).await.is_err());
}

/// InnoDB commits each statement of a migration by itself, so a process that dies leaves some of its tables; on
/// PostgreSQL it leaves nothing.
async fn a_migration_whose_process_died_is_completed_by_the_next(bed: Bed) {
    let empty = Bed {
        options: bed.another_database().await,
        ..bed.clone()
    };
    let (wire, url) = empty.through_proxy().await;
    // The name of what is recorded last: a cluster records before it who migrates.
    wire.arm(Cut::Before, "managed_tree");
    let died = Store::open(StoreOptions {
        url,
        ..empty.options.clone()
    });
    assert!(died.await.is_err() && wire.spent());
    if !bed.fuses() {
        empty.execute("DROP TABLE idempotency, feed").await;
    }
    let report = Store::migrate(empty.options.clone()).await.unwrap();
    assert_eq!(report.from, 0);
    let store = Store::open(empty.options).await.unwrap();
    let new = NewEntity {
        name: name("ml"),
        payload: Metalake::default(),
    };
    store.create(&context(), None, new).await.unwrap();
    assert!(store.check().await.unwrap().is_empty());
}

async fn stores_that_migrate_at_once_all_open(bed: Bed) {
    let empty = bed.another_database().await;
    let mut opening = JoinSet::new();
    for _ in 0..4 {
        opening.spawn(Store::open(empty.clone()));
        opening.spawn(Store::open(bed.elsewhere(&empty)));
    }
    for opened in opening.join_all().await {
        assert!(opened.unwrap().check().await.unwrap().is_empty());
    }
}

/// A stranger has written what the migration writes last, and does not commit it for longer than a lock is waited for.
async fn a_migration_that_a_lock_refuses_begins_anew(bed: Bed) {
    let mut empty = Bed {
        options: bed.another_database().await,
        ..bed.clone()
    };
    empty.options.operation_ms_max = 1_000;
    empty
        .execute(
            "CREATE TABLE schema_migrations (version BIGINT NOT NULL PRIMARY KEY, name VARCHAR(256) NOT NULL,
                                             applied_at BIGINT NOT NULL)",
        )
        .await;
    let stranger = empty
        .hold("BEGIN; INSERT INTO schema_migrations VALUES (1, 'stranger', 0)")
        .await;
    let mut opening = tokio::spawn(Store::open(empty.options.clone()));
    let early = tokio::time::timeout(Duration::from_secs(4), &mut opening).await;
    assert!(early.is_err(), "it did not go on: {early:?}");
    stranger.end().await;
    let store = opening.await.unwrap().unwrap();
    assert!(store.check().await.unwrap().is_empty());
}

/// Somebody else migrates for longer than a statement may take.
async fn who_waits_too_long_for_a_migration_is_told_so(bed: Bed) {
    let mut waits = bed.options.clone();
    waits.operation_ms_max = 1_000;
    let other = bed
        .hold(if bed.fuses() {
            "SELECT 1 FROM pg_advisory_lock(8390462745)"
        } else {
            "DO GET_LOCK(CONCAT('treeline.migrate.', LEFT(SHA2(DATABASE(), 256), 40)), 0)"
        })
        .await;
    let reason = refused(waits.clone()).await;
    assert!(
        reason.contains("another process has been migrating it") && reason.contains("start this one again"),
        "{reason}"
    );
    other.end().await;
    Store::open(waits).await.unwrap();
}

async fn a_database_that_may_only_be_read_is_refused(bed: Bed) {
    let empty = bed.another_database().await;
    for mut options in [empty, bed.options.clone()] {
        if bed.fuses() {
            let database = options.url.rsplit('/').next().unwrap();
            bed.execute(format!(
                "ALTER DATABASE {database} SET default_transaction_read_only = on"
            ))
            .await;
        } else {
            options.url = options.url.replacen("treeline:treeline@", "reader:reader@", 1);
        }
        let reason = refused(options).await;
        assert!(
            reason.contains("read-only") && reason.contains("let this account write"),
            "{reason}"
        );
    }
}

/// What an administrator has set for everybody is not what the protocols need: they set it themselves.
async fn a_databases_own_settings_do_not_matter(bed: Bed) {
    let other = bed.another_database().await;
    let database = other.url.rsplit('/').next().unwrap().to_owned();
    let settings: &[&str] = if bed.fuses() {
        &[
            "SET default_transaction_isolation = 'serializable'",
            "SET default_transaction_deferrable = on",
            "SET DateStyle = 'German'",
            "SET lock_timeout = 1",
        ]
    } else {
        &["CHARACTER SET latin1 COLLATE latin1_swedish_ci"]
    };
    for setting in settings {
        bed.execute(format!("ALTER DATABASE {database} {setting}")).await;
    }
    let store = Store::open(other).await.unwrap();
    // Names that a case-folding or an eight-bit collation would take for one, or could not keep.
    for text in ["m", "M", "\u{e4}", "a", "\u{1f332}"] {
        let new = NewEntity {
            name: name(text),
            payload: Metalake::default(),
        };
        assert_eq!(
            store.create(&context(), None, new).await.unwrap().name,
            name(text)
        );
    }
    assert!(store.check().await.unwrap().is_empty());
}

//! A PostgreSQL URL of several hosts, as far as one server can show it: a failover takes two (`cargo xtask itest --faults`).

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use treeline_core::kinds::Model;
use treeline_core::{Error, NewEntity, Path};
use treeline_storage::{Store, StoreOptions};

use crate::harness::{Bed, DATABASE, context, name, refused, tests};
use crate::proxy::{Cut, Proxy};

tests! {
    a_host_that_does_not_answer_is_passed_over_wherever_it_stands,
    two_hosts_that_both_say_they_are_the_primary_are_refused,
    a_second_primary_is_waited_out_for_as_long_as_it_is_there,
    a_host_that_was_promoted_is_moved_to_once_and_for_good,
    hosts_that_do_not_answer_are_named_with_the_mend,
    a_session_that_may_not_write_is_closed_with_all_that_are_idle,
    a_primary_that_is_slow_to_let_in_is_waited_for_while_it_answers,
}

/// Longer than a host is given that is asked what it is, and shorter than the wait for a connection.
const SLOW_LOGIN: Duration = Duration::from_millis(2_500);

/// The first of the ports that only the system may use, which nobody does.
const NOBODY: &str = "127.0.0.1:1";

/// The same URL with more hosts before or after the server's own.
fn with_hosts(bed: &Bed, before: &str, after: &str) -> StoreOptions {
    let (account, rest) = bed.options.url.split_once('@').unwrap();
    let (host, database) = rest.split_once('/').unwrap();
    StoreOptions {
        url: format!("{account}@{before}{host}{after}/{database}"),
        ..bed.options.clone()
    }
}

async fn create_model(store: &Store, schema: &Path, text: &str) -> Result<(), Error> {
    let parent = store.resolve(schema).await?;
    let new = NewEntity {
        name: name(text),
        payload: Model::default(),
    };
    store.create(&context(), Some(&parent), new).await.map(drop)
}

async fn a_host_that_does_not_answer_is_passed_over_wherever_it_stands(bed: Bed) {
    let schema = bed.schema().await;
    let after = format!(",{NOBODY}");
    let before = format!("{NOBODY},");
    for (text, options) in [
        ("a", with_hosts(&bed, &before, "")),
        ("b", with_hosts(&bed, "", &after)),
    ] {
        let store = Store::open(options).await.unwrap();
        create_model(&store, &schema, text).await.unwrap();
    }
}

/// One server under two names, which is as good as two of one timeline.
async fn two_hosts_that_both_say_they_are_the_primary_are_refused(bed: Bed) {
    let (_wire, url) = bed.through_proxy().await;
    let (_, other) = url.split_once('@').unwrap();
    let (other, _) = other.split_once('/').unwrap();
    let reason = refused(with_hosts(&bed, "", &format!(",{other}"))).await;
    assert!(
        reason.contains(other) && reason.contains("both say") && reason.contains("`database`"),
        "{reason}"
    );
}

/// A store that has its server twice among its hosts, and the ways there. The second does not answer.
async fn behind_two_wires(bed: &Bed) -> (Store, Proxy, Proxy) {
    let (first, url) = bed.through_proxy().await;
    let (second, _) = bed.through_proxy().await;
    go_away(&second).await;
    let host = format!("127.0.0.1:{}", first.port());
    let both = format!("{host},127.0.0.1:{}", second.port());
    let url = url.replacen(&host, &both, 1);
    (
        bed.another_store(|options| options.url = url).await,
        first,
        second,
    )
}

/// The host is gone until its wire is disarmed.
async fn go_away(wire: &Proxy) {
    wire.arm_for_good(Cut::Before, DATABASE);
    wire.cut_all().await;
}

/// As where two standbys were promoted at once: nobody can tell which of them has what was acknowledged.
async fn a_second_primary_is_waited_out_for_as_long_as_it_is_there(bed: Bed) {
    const NOTICED_WITHIN: Duration = Duration::from_secs(10);
    let schema = bed.schema().await;
    let (store, _first, second) = behind_two_wires(&bed).await;
    create_model(&store, &schema, "a").await.unwrap();
    second.disarm();
    let begun = Instant::now();
    let told = loop {
        match store.resolve(&schema).await {
            Ok(_) => assert!(begun.elapsed() < NOTICED_WITHIN, "nobody has noticed"),
            Err(error) => break error,
        }
    };
    assert!(matches!(told, Error::Unavailable { .. }), "{told}");
    let told = create_model(&store, &schema, "b").await.unwrap_err();
    assert!(matches!(told, Error::Unavailable { .. }), "{told}");
    go_away(&second).await;
    create_model(&store, &schema, "b").await.unwrap();
    assert_eq!(bed.counts.failovers(), 0);
}

/// The old primary comes back, of a timeline that is over.
async fn a_host_that_was_promoted_is_moved_to_once_and_for_good(bed: Bed) {
    let schema = bed.schema().await;
    let (store, first, second) = behind_two_wires(&bed).await;
    create_model(&store, &schema, "a").await.unwrap();
    assert_eq!(bed.counts.failovers(), 0);
    go_away(&first).await;
    second.promote();
    second.disarm();
    create_model(&store, &schema, "b").await.unwrap();
    assert_eq!(bed.counts.failovers(), 1);
    first.disarm();
    second.cut_all().await;
    create_model(&store, &schema, "c").await.unwrap();
    go_away(&second).await;
    let told = create_model(&store, &schema, "d").await.unwrap_err();
    assert!(matches!(told, Error::Unavailable { .. }), "{told}");
    assert_eq!(bed.counts.failovers(), 1);
}

async fn hosts_that_do_not_answer_are_named_with_the_mend(bed: Bed) {
    let (account, _) = bed.options.url.split_once('@').unwrap();
    let options = StoreOptions {
        url: format!("{account}@{NOBODY},127.0.0.1:2/{}", bed.database()),
        ..bed.options.clone()
    };
    let told = Store::open(options).await.unwrap_err();
    assert!(matches!(told, Error::ConnectionFailed { .. }), "{told:?}");
    let told = told.to_string();
    assert!(
        told.contains("127.0.0.1:1: ") && told.contains("127.0.0.1:2: ") && told.contains("`database`"),
        "{told}"
    );
}

/// One connection goes on answering; the readers that find it in use wait for logins of their own.
async fn a_primary_that_is_slow_to_let_in_is_waited_for_while_it_answers(bed: Bed) {
    let schema = bed.schema().await;
    let (wire, url) = bed.through_proxy().await;
    let (address, options) = url.rsplit_once('/').unwrap();
    let url = format!("{address},{NOBODY}/{options}");
    let store = bed.another_store(|options| options.url = url).await;
    wire.delay(SLOW_LOGIN);
    let mut readers = JoinSet::new();
    for _ in 0..4 {
        let (store, schema) = (store.clone(), schema.clone());
        readers.spawn(async move { store.resolve(&schema).await.map(drop) });
    }
    let keeper = async {
        loop {
            store.resolve(&schema).await.unwrap();
        }
    };
    tokio::select! {
        read = readers.join_all() => read.into_iter().for_each(|told| told.unwrap()),
        () = keeper => {}
    }
    wire.until_open(|open| open > 1).await;
}

/// What a server that has become a standby does to sessions that outlive it, if a pooler lets them.
async fn a_session_that_may_not_write_is_closed_with_all_that_are_idle(bed: Bed) {
    let schema = bed.schema().await;
    let store = bed.another_store(|_| {}).await;
    let database = bed.database();
    bed.execute(format!(
        "ALTER DATABASE {database} SET default_transaction_read_only = on"
    ))
    .await;
    bed.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    .await;
    let mut readers = JoinSet::new();
    for _ in 0..4 {
        let (store, schema) = (store.clone(), schema.clone());
        readers.spawn(async move { store.resolve(&schema).await.map(drop) });
    }
    for read in readers.join_all().await {
        read.unwrap();
    }
    let told = create_model(&store, &schema, "m").await.unwrap_err();
    assert!(matches!(told, Error::Unavailable { .. }), "{told}");
    // Said in full: the session that mends it may not write either, unless it asks for that.
    let mend = format!("ALTER DATABASE {database} RESET default_transaction_read_only");
    bed.execute(format!("BEGIN READ WRITE; {mend}; COMMIT")).await;
    create_model(&store, &schema, "m").await.unwrap();
}

//! What a store makes of what its server says on a bad day. The wire says it, since no server can be asked to.

use tokio::task::JoinSet;
use treeline_core::kinds::{Metalake, Model, ModelVersion};
use treeline_core::{Error, NewEntity, Path, Payload};
use treeline_storage::{DropRule, Store, StoreOptions};

use crate::harness::{Bed, DATABASE, context, name, tests};
use crate::network::behind_wire;
use crate::proxy::{Cut, Proxy, Said};

tests! {
    a_session_that_the_server_has_ended_is_replaced,
    a_server_that_cannot_use_its_disk_is_unavailable,

    a_write_whose_commit_stays_unknown_is_never_told_that_nothing_was_written,

    a_read_that_the_database_gives_up_is_never_told_of_other_writers,

    a_read_succeeds_at_once_after_every_idle_connection_was_cut,
    a_server_that_refuses_a_connection_is_asked_again,
    a_session_that_has_become_read_only_is_closed_with_all_that_are_idle,

    a_commit_that_was_interrupted_after_it_took_effect_has_one_effect,
    a_commit_that_was_refused_runs_again_and_has_one_effect,
}

/// What each of the databases says, in its own words.
fn said(bed: &Bed, postgres: (&'static str, &'static str), mysql: u16) -> Said {
    if bed.fuses() {
        Said::Postgres(postgres.0, postgres.1)
    } else {
        Said::MySql(mysql)
    }
}

fn error(bed: &Bed, postgres: &'static str, mysql: u16) -> Said {
    said(bed, ("ERROR", postgres), mysql)
}

/// More than a read runs again.
const IDLE: usize = 6;

/// A store with so many idle connections: as many drops wait for a row that a stranger has locked.
async fn with_idle_connections(bed: &Bed) -> (Store, Proxy, Path) {
    let path = bed.model().await;
    let (store, wire) = behind_wire(bed).await;
    let row = store.resolve(&path).await.unwrap();
    // Those of the opening are going.
    wire.until_open(|open| open == 1).await;
    let lock = format!(
        "START TRANSACTION; SELECT 1 FROM entities WHERE id = {} FOR UPDATE",
        row.id()
    );
    let stranger = bed.hold(lock).await;
    let mut dropping = JoinSet::new();
    for _ in 0..IDLE {
        let (store, row) = (store.clone(), row.clone());
        dropping.spawn(async move { store.drop(&context(), row, DropRule::default()).await });
    }
    wire.until_open(|open| open == IDLE).await;
    stranger.end().await;
    let dropped = dropping.join_all().await;
    assert_eq!(
        dropped
            .into_iter()
            .filter(|dropped| matches!(dropped, Ok(true)))
            .count(),
        1
    );
    (store, wire, path.parent().unwrap())
}

/// What a restart of the server does.
async fn a_read_succeeds_at_once_after_every_idle_connection_was_cut(bed: Bed) {
    let (store, wire, schema) = with_idle_connections(&bed).await;
    wire.cut_all().await;
    store.resolve(&schema).await.unwrap();
}

/// What a server does that is not up yet: the one session is gone, and a new one is not let in at first.
async fn a_server_that_refuses_a_connection_is_asked_again(bed: Bed) {
    let schema = bed.schema().await;
    let (store, wire) = behind_wire(&bed).await;
    store.resolve(&schema).await.unwrap();
    wire.arm(Cut::Before, DATABASE);
    wire.cut_all().await;
    store.resolve(&schema).await.unwrap();
    assert!(wire.spent());
    assert_eq!(bed.counts.errors("connection_lost"), 1);
    assert_eq!(bed.counts.errors("connection_refused"), 1);
}

/// What a primary does that was made a standby and keeps its sessions, if a proxy lets it: the write is refused, and
/// what comes next is asked of the server that the proxy leads to by then.
async fn a_session_that_has_become_read_only_is_closed_with_all_that_are_idle(bed: Bed) {
    for number in [1290, 1792, 1836] {
        let (store, wire) = behind_wire(&bed).await;
        let mut reading = JoinSet::new();
        for _ in 0..IDLE {
            let store = store.clone();
            reading.spawn(async move { store.ping().await });
        }
        assert!(reading.join_all().await.into_iter().all(|read| read.is_ok()));
        let create = async || {
            let new = NewEntity {
                name: name(&format!("ml{number}")),
                payload: Metalake::default(),
            };
            store.create(&context(), None, new).await
        };
        wire.arm(Cut::Refused(error(&bed, "25006", number)), "INSERT INTO entities");
        let told = create().await.unwrap_err();
        assert!(
            wire.spent() && matches!(told, Error::Unavailable { .. }),
            "{told}"
        );
        wire.until_open(|open| open == 0).await;
        create().await.unwrap();
    }
}

/// A statement that takes too long, a deadlock, a node that cannot catch up with its cluster.
async fn a_read_that_the_database_gives_up_is_never_told_of_other_writers(bed: Bed) {
    let schema = bed.schema().await;
    let (store, wire) = behind_wire(&bed).await;
    for (code, number) in [("57014", 1969), ("40P01", 1205), ("55P03", 1213)] {
        wire.arm_for_good(Cut::Refused(error(&bed, code, number)), "entities");
        let told = store.resolve(&schema).await.unwrap_err();
        assert!(matches!(told, Error::Unavailable { .. }), "{told}");
        wire.disarm();
    }
    // Once only, it does not even notice.
    let given_up = bed.counts.errors("statement_timeout");
    wire.arm(Cut::Refused(error(&bed, "57014", 1969)), "entities");
    store.resolve(&schema).await.unwrap();
    assert!(wire.spent());
    assert_eq!(bed.counts.errors("statement_timeout"), given_up + 1);
}

/// The commit is lost, and running it again waits in vain for the locks that it may still hold.
async fn a_write_whose_commit_stays_unknown_is_never_told_that_nothing_was_written(bed: Bed) {
    let schema = bed.schema().await;
    let (wire, url) = bed.through_proxy().await;
    let lost = |options: &mut StoreOptions| (options.url, options.operation_ms_max) = (url, 1_000);
    let store = bed.another_store(lost).await;
    let row = store.resolve(&schema).await.unwrap();
    wire.arm(Cut::Before, "COMMIT");
    wire.arm_for_good(Cut::Refused(error(&bed, "55P03", 1205)), "FOR UPDATE");
    let told = store
        .drop(&context(), row, DropRule::default())
        .await
        .unwrap_err();
    assert!(
        wire.spent() && matches!(told, Error::Unavailable { .. }),
        "{told}"
    );
    wire.disarm();
    assert!(store.resolve(&schema).await.is_ok());
}

/// Whatever the reason is that it gives: bounds for a transaction or an account, a database that goes.
async fn a_session_that_the_server_has_ended_is_replaced(bed: Bed) {
    let model = bed.model().await;
    let (store, wire) = behind_wire(&bed).await;
    for (code, number) in [("25P04", 1226), ("57P04", 1203), ("XX000", 1053)] {
        let said = said(&bed, ("FATAL", code), number);
        wire.arm(Cut::Refused(said), "entities");
        store.resolve(&model).await.unwrap();
        assert!(wire.spent());
        link(&bed, &store, &wire, &model, Cut::Refused(said)).await;
        link(&bed, &store, &wire, &model, Cut::Belied(said)).await;
        // A session that knows a statement does not name its tables again.
        wire.cut_all().await;
    }
}

async fn a_server_that_cannot_use_its_disk_is_unavailable(bed: Bed) {
    let schema = bed.schema().await;
    let (store, wire) = behind_wire(&bed).await;
    wire.arm_for_good(Cut::Refused(error(&bed, "58030", 1021)), "entities");
    let told = store.resolve(&schema).await.unwrap_err();
    assert!(matches!(told, Error::Unavailable { .. }), "{told}");
    wire.disarm();
}

/// Links a version to the model, while this happens to its commit. What the database gave it is one version more.
async fn link(bed: &Bed, store: &Store, wire: &Proxy, model: &Path, cut: Cut) {
    let latest = async || {
        let model = bed.resolve(model).await.entity::<Model>().unwrap();
        model.payload.latest_version
    };
    let before = latest().await;
    let resolved = store.resolve(model).await.unwrap();
    let version = ModelVersion {
        aliases: Default::default(),
        ..ModelVersion::sample()
    };
    wire.arm(cut, "COMMIT");
    let linked = store.link(&context(), resolved, &version).await.unwrap();
    assert!(wire.spent());
    assert_eq!(linked.name, name(&before.to_string()), "{cut:?}");
    assert_eq!(latest().await, before + 1, "{cut:?}");
}

/// A server may give a commit up, as one that takes too long or that somebody has ended, when others see it already.
async fn a_commit_that_was_interrupted_after_it_took_effect_has_one_effect(bed: Bed) {
    let model = bed.model().await;
    let (store, wire) = behind_wire(&bed).await;
    for number in [1969, 3024, 1317] {
        let said = error(&bed, "57014", number);
        link(&bed, &store, &wire, &model, Cut::Belied(said)).await;
        link(&bed, &store, &wire, &model, Cut::Refused(said)).await;
    }
}

/// A row that has changed, a deadlock, a lost certification: nothing was committed.
async fn a_commit_that_was_refused_runs_again_and_has_one_effect(bed: Bed) {
    let model = bed.model().await;
    let (store, wire) = behind_wire(&bed).await;
    for (code, number, counted) in [("40001", 1020, "serialization"), ("40P01", 1213, "deadlock")] {
        let said = error(&bed, code, number);
        link(&bed, &store, &wire, &model, Cut::Refused(said)).await;
        assert_eq!(bed.counts.errors(counted), 1, "{counted}");
    }
}

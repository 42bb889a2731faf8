//! What only a cluster of database nodes that all accept writes can get wrong.

use std::time::Duration;

use treeline_core::kinds::Metalake;
use treeline_core::{NewEntity, Path};
use treeline_storage::{Store, StoreOptions};

use crate::harness::{Bed, context, name, tests};

tests! {
    what_one_node_has_committed_every_other_reads,
    a_migration_claimed_at_another_node_is_waited_for,
    a_claim_of_a_process_that_died_at_this_node_is_taken_over,
}

const CLAIM: &str = "INSERT INTO schema_migrations (version, name, applied_at) VALUES (0, ";
const FORGET_VERSION: &str = "DELETE FROM schema_migrations WHERE version = 1";

/// Each read follows the commit at once, and so often that luck does not help.
async fn what_one_node_has_committed_every_other_reads(bed: Bed) {
    let other = bed.another_store(|_| {}).await;
    for number in 0..200 {
        let new = NewEntity {
            name: name(&format!("m{number}")),
            payload: Metalake::default(),
        };
        let path = Path::metalake(new.name.clone());
        let created = bed.store.create(&context(), None, new).await.unwrap();
        assert_eq!(other.resolve(&path).await.unwrap().id(), created.id);
    }
}

/// The database is as if it had just been begun on at another node.
async fn a_migration_claimed_at_another_node_is_waited_for(bed: Bed) {
    bed.execute(FORGET_VERSION).await;
    bed.execute(format!("{CLAIM}'elsewhere', 0)")).await;
    let mut opening = tokio::spawn(Store::open(bed.options.clone()));
    let early = tokio::time::timeout(Duration::from_secs(1), &mut opening).await;
    assert!(early.is_err(), "it did not wait");
    bed.execute("DELETE FROM schema_migrations WHERE version = 0")
        .await;
    let store = opening.await.unwrap().unwrap();
    assert!(store.check().await.unwrap().is_empty());
}

async fn a_claim_of_a_process_that_died_at_this_node_is_taken_over(bed: Bed) {
    bed.execute(FORGET_VERSION).await;
    let node = "LEFT(CONCAT(@@wsrep_node_name, ' (', @@hostname, ':', @@port, ')'), 256)";
    bed.execute(format!("{CLAIM}{node}, 0)")).await;
    let options: StoreOptions = bed.options.clone();
    assert_eq!(Store::migrate(options.clone()).await.unwrap().from, 0);
    // Nothing of the claim is left, so that the other node may go on as well.
    bed.execute(FORGET_VERSION).await;
    let elsewhere = bed.elsewhere(&options);
    assert_eq!(Store::migrate(elsewhere).await.unwrap().from, 0);
}

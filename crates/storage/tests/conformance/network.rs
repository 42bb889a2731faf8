//! What only a database behind a wire can show: a connection that is lost in the worst moment.

use treeline_core::kinds::{Metalake, Model, ModelVersion, Schema};
use treeline_core::{Draft, Error, Kind, NewEntity, Path, Payload};
use treeline_storage::{DropRule, Store};

use crate::harness::{Bed, context, name, tests};
use crate::proxy::{Cut, Proxy};

tests! {
    a_commit_whose_answer_is_lost_is_settled_by_its_feed_row,
    a_starved_queue_says_so_within_its_bound,
    a_wrong_password_or_database_is_refused_and_never_shown,
}

async fn behind_wire(bed: &Bed) -> (Store, Proxy) {
    let (proxy, url) = bed.through_proxy().await;
    (bed.another_store(|options| options.url = url).await, proxy)
}

/// Both ways for each protocol: the commit took effect, or it did not. Either way the client gets its success, and
/// there is exactly one effect (INV-12).
async fn a_commit_whose_answer_is_lost_is_settled_by_its_feed_row(bed: Bed) {
    let model = bed.model().await;
    let schema = model.parent().unwrap();
    let (store, wire) = behind_wire(&bed).await;
    // What is one statement on PostgreSQL has no commit of its own; it is known by a value that it carries.
    let fused = |value: &'static str| if bed.fuses() { value } else { "COMMIT" };
    for (cut, text) in [(Cut::Before, "before"), (Cut::After, "after")] {
        let feed_before = bed.rows("feed").await.len();

        wire.arm(cut, "COMMIT");
        let new = NewEntity {
            name: name(text),
            payload: Metalake::default(),
        };
        let created = store.create(&context(), None, new).await.unwrap();
        assert!(wire.spent());
        let path = Path::metalake(name(text));
        assert_eq!(bed.resolve(&path).await.tag(), created.tag(), "{text}");
        assert_eq!(bed.count("entities", "name", text).await, 1, "{text}");

        wire.arm(cut, fused("cut model"));
        let parent = store.resolve(&schema).await.unwrap();
        let payload = Model {
            comment: Some("cut model".to_owned()),
            ..Model::default()
        };
        let new = NewEntity {
            name: name(text),
            payload,
        };
        let child = store.create(&context(), Some(&parent), new).await.unwrap();
        assert!(wire.spent());
        let child_path = schema.child(Kind::Model, name(text));
        assert_eq!(bed.resolve(&child_path).await.id(), child.id, "{text}");

        wire.arm(cut, fused("cut property"));
        let resolved = store.resolve(&schema).await.unwrap();
        let before = resolved.tag().version;
        let change = move |draft: &mut Draft<Schema>| {
            draft
                .payload
                .properties
                .insert("cut property".to_owned(), text.to_owned());
            Ok(())
        };
        let altered = store.alter(&context(), resolved, change).await.unwrap();
        assert!(wire.spent());
        assert_eq!(altered.version, before.next(), "{text}");
        assert_eq!(bed.resolve(&schema).await.tag(), altered.tag(), "{text}");

        wire.arm(cut, "COMMIT");
        let versions = bed
            .resolve(&model)
            .await
            .entity::<Model>()
            .unwrap()
            .payload
            .latest_version;
        let resolved = store.resolve(&model).await.unwrap();
        let version = ModelVersion {
            aliases: Default::default(),
            ..ModelVersion::sample()
        };
        let linked = store.link(&context(), resolved, &version).await.unwrap();
        assert!(wire.spent());
        assert_eq!(linked.name, name(&versions.to_string()), "{text}");
        let after = bed
            .resolve(&model)
            .await
            .entity::<Model>()
            .unwrap()
            .payload
            .latest_version;
        assert_eq!(after, versions + 1, "{text}");

        wire.arm(cut, "COMMIT");
        let resolved = store.resolve(&path).await.unwrap();
        assert!(
            store
                .drop(&context(), resolved, DropRule::default())
                .await
                .unwrap(),
            "{text}"
        );
        assert!(wire.spent());
        assert!(bed.store.resolve(&path).await.is_err(), "{text}");

        // Two creates, the update, the link's two, and the drop.
        assert_eq!(bed.rows("feed").await.len(), feed_before + 6, "{text}");
    }
}

/// Two hundred readers and one connection: none hangs.
async fn a_starved_queue_says_so_within_its_bound(bed: Bed) {
    let narrow = bed
        .another_store(|options| {
            options.connections_max = 1;
            options.acquire_ms_max = 200;
        })
        .await;
    let path = bed.schema().await;
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let (store, path) = (narrow.clone(), path.clone());
        readers.spawn(async move { store.resolve(&path).await.map(drop) });
    }
    // However many got through in time, each has an answer, and every refusal is the one that says "later".
    for outcome in readers.join_all().await {
        assert!(
            matches!(outcome, Ok(()) | Err(Error::Unavailable { .. })),
            "{outcome:?}"
        );
    }
}

async fn a_wrong_password_or_database_is_refused_and_never_shown(bed: Bed) {
    let mut wrong = bed.options.clone();
    wrong.password = Some("sesame-open".to_owned());
    let refused = Store::open(wrong).await.unwrap_err();
    assert!(
        matches!(&refused, Error::Invalid { field, .. } if field == "database"),
        "{refused}"
    );
    assert!(!format!("{refused} {refused:?}").contains("sesame-open"));
    let mut missing = bed.options.clone();
    missing.url.push_str("_is_not_there");
    let refused = Store::open(missing).await.unwrap_err();
    assert!(
        matches!(&refused, Error::Invalid { field, .. } if field == "database"),
        "{refused}"
    );
}

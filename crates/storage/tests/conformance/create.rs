//! P1: strict creates.

use treeline_core::kinds::{Catalog, CommonChange, Metalake, Model, Schema, SwitchableChange};
use treeline_core::{Draft, Error, Kind, Missing, NewEntity, Path, Payload, Version};

use crate::harness::{Bed, context, name, tests};

tests! {
    what_was_created_reads_back_as_it_was_written,
    a_taken_name_is_refused_and_leaves_no_trace,
    one_of_many_creators_of_a_name_wins,
    names_compare_byte_by_byte,
    a_create_under_a_dropped_parent_is_not_found_of_the_parent,
    a_create_under_a_renamed_parent_is_not_found_of_the_parent,
    a_create_under_a_parent_disabled_meanwhile_is_refused,
    a_missing_level_is_named,
    names_are_listed_in_byte_order_without_the_dropped,
}

async fn what_was_created_reads_back_as_it_was_written(bed: Bed) {
    let schema = bed.schema().await;
    let created = bed.create(Some(&schema), "m", Model::sample()).await;
    let read = bed
        .resolve(&schema.child(Kind::Model, name("m")))
        .await
        .entity::<Model>()
        .unwrap();
    assert_eq!(created, read);
    assert_eq!(read.version, Version::FIRST);
    assert_eq!(read.audit.creator, "tester");
    assert_eq!(read.audit.last_modifier, None);
    assert!(read.audit.created_at_ms > 1_700_000_000_000, "{:?}", read.audit);
}

async fn a_taken_name_is_refused_and_leaves_no_trace(bed: Bed) {
    bed.create(None, "ml", Metalake::sample()).await;
    let error = bed.try_create(None, "ml", Metalake::default()).await.unwrap_err();
    assert_eq!(error, Error::already_exists(Kind::Metalake, "ml"));
    assert_eq!(bed.count("entities", "name", "ml").await, 1);
    assert_eq!(bed.rows("feed").await.len(), 1);
}

/// 32 creators on two stores; the database picks one (INV-2).
async fn one_of_many_creators_of_a_name_wins(bed: Bed) {
    let other = bed.another_store(|_| {}).await;
    let mut creators = tokio::task::JoinSet::new();
    for creator in 0..32 {
        let store = if creator % 2 == 0 {
            bed.store.clone()
        } else {
            other.clone()
        };
        creators.spawn(async move {
            let new = NewEntity {
                name: name("ml"),
                payload: Metalake::default(),
            };
            store.create(&context(), None, new).await
        });
    }
    let outcomes = creators.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    for error in outcomes.into_iter().filter_map(Result::err) {
        assert_eq!(error, Error::already_exists(Kind::Metalake, "ml"));
    }
    assert_eq!(bed.count("entities", "name", "ml").await, 1);
    assert_eq!(bed.rows("feed").await.len(), 1);
}

async fn names_compare_byte_by_byte(bed: Bed) {
    for text in ["a", "A", "ab", "aB", "ä", "a_"] {
        bed.create(None, text, Metalake::default()).await;
    }
    assert_eq!(bed.store.list_names(None, Kind::Metalake).await.unwrap().len(), 6);
}

async fn a_create_under_a_dropped_parent_is_not_found_of_the_parent(bed: Bed) {
    bed.create(None, "ml", Metalake::default()).await;
    let parent = bed.resolve(&Path::metalake(name("ml"))).await;
    assert!(
        bed.store
            .drop(&context(), parent.clone(), Default::default())
            .await
            .unwrap()
    );
    bed.create(None, "ml", Metalake::default()).await;
    let new = NewEntity {
        name: name("c"),
        payload: Catalog::sample(),
    };
    let error = bed
        .store
        .create(&context(), Some(&parent), new)
        .await
        .unwrap_err();
    assert_eq!(error, Error::not_found(Kind::Metalake, "ml"));
    assert_eq!(bed.count("entities", "name", "c").await, 0);
}

async fn a_create_under_a_renamed_parent_is_not_found_of_the_parent(bed: Bed) {
    bed.create(None, "ml", Metalake::default()).await;
    let parent = bed.resolve(&Path::metalake(name("ml"))).await;
    let rename = |draft: &mut Draft<Metalake>| draft.apply_all(&[CommonChange::Rename(name("other")).into()]);
    bed.store.alter(&context(), parent.clone(), rename).await.unwrap();
    let new = NewEntity {
        name: name("c"),
        payload: Catalog::sample(),
    };
    let error = bed
        .store
        .create(&context(), Some(&parent), new)
        .await
        .unwrap_err();
    assert_eq!(error, Error::not_found(Kind::Metalake, "ml"));
}

async fn a_create_under_a_parent_disabled_meanwhile_is_refused(bed: Bed) {
    bed.create(None, "ml", Metalake::default()).await;
    let parent = bed.resolve(&Path::metalake(name("ml"))).await;
    let disable = |draft: &mut Draft<Metalake>| draft.apply_all(&[SwitchableChange::SetInUse(false)]);
    bed.store
        .alter(&context(), parent.clone(), disable)
        .await
        .unwrap();
    let new = NewEntity {
        name: name("c"),
        payload: Catalog::sample(),
    };
    let error = bed
        .store
        .create(&context(), Some(&parent), new)
        .await
        .unwrap_err();
    assert_eq!(
        error,
        Error::NotInUse {
            kind: Kind::Metalake,
            path: "ml".to_owned()
        }
    );
}

async fn a_missing_level_is_named(bed: Bed) {
    let schema = bed.schema().await;
    let model = schema.child(Kind::Model, name("none"));
    for (path, missing) in [
        (
            Path::of(Kind::Model, &["none", "c", "s", "m"]).unwrap(),
            Kind::Metalake,
        ),
        (
            Path::of(Kind::Model, &["ml", "none", "s", "m"]).unwrap(),
            Kind::Catalog,
        ),
        (
            Path::of(Kind::Model, &["ml", "c", "none", "m"]).unwrap(),
            Kind::Schema,
        ),
        (model.clone(), Kind::Model),
        (model.child(Kind::ModelVersion, name("0")), Kind::Model),
        (
            Path::of(Kind::Fileset, &["ml", "c", "s", "m"]).unwrap(),
            Kind::Fileset,
        ),
    ] {
        for answer in [
            bed.store.resolve(&path).await,
            bed.store.resolve_with_payloads(&path).await,
        ] {
            let error = answer.unwrap_err();
            assert!(
                matches!(&error, Error::NotFound { what: Missing::Entity(kind), .. } if *kind == missing),
                "{path}: {error}"
            );
        }
    }
}

async fn names_are_listed_in_byte_order_without_the_dropped(bed: Bed) {
    let schema = bed.schema().await;
    let catalog = schema.parent().unwrap();
    for text in ["b", "Z", "a-1", "a"] {
        bed.create(Some(&catalog), text, Schema::default()).await;
    }
    let dropped = bed.resolve(&catalog.child(Kind::Schema, name("a"))).await;
    bed.store
        .drop(&context(), dropped, Default::default())
        .await
        .unwrap();
    let parent = bed.resolve(&catalog).await;
    let names = bed.store.list_names(Some(&parent), Kind::Schema).await.unwrap();
    assert_eq!(names, ["Z", "a-1", "b", "s"].map(name));
    let listed = bed.store.list::<Schema>(Some(&parent)).await.unwrap();
    assert_eq!(
        listed.into_iter().map(|entity| entity.name).collect::<Vec<_>>(),
        names
    );
    assert_eq!(Schema::KIND, Kind::Schema);
}

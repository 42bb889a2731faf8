//! P1 in one step, which goes the whole way down by name and writes at once.

use treeline_core::kinds::{Catalog, Metalake, Model, Schema, SwitchableChange};
use treeline_core::{Draft, Error, Kind, Missing, Path, Payload, Provider, Version};
use treeline_storage::DropRule;

use crate::harness::{Bed, context, tests};

tests! {
    in_one_step_is_written_what_two_would_write,
    in_one_step_a_taken_name_is_refused_and_leaves_no_trace,
    in_one_step_a_missing_level_is_named,
    in_one_step_nothing_is_written_below_what_is_disabled_or_of_another_provider,
    in_one_step_the_successor_of_a_dropped_schema_is_meant,
}

fn model(text: &str) -> Path {
    Path::of(Kind::Model, &["ml", "c", "s", text]).unwrap()
}

fn provider() -> Provider {
    Catalog::sample().provider().unwrap()
}

async fn in_one_step_is_written_what_two_would_write(bed: Bed) {
    let schema = bed.schema().await;
    let created = bed
        .store
        .create_at(&context(), &model("one"), provider(), &Model::sample())
        .await
        .unwrap()
        .unwrap();
    let read = bed.resolve(&model("one")).await.entity::<Model>().unwrap();
    assert_eq!(created, read);
    assert_eq!(created.version, Version::FIRST);
    bed.create(Some(&schema), "two", Model::sample()).await;
    // All that may differ between the two is what tells entities apart.
    let shape = |table: &'static str, key: &'static str, apart: &'static [&'static str]| {
        let rows = bed.rows(table);
        async move {
            let mut rows = rows.await;
            rows.retain(|row| row[key] == "model");
            for row in &mut rows {
                row.retain(|column, _| !apart.contains(&column.as_str()));
            }
            rows
        }
    };
    for (table, apart) in [
        ("entities", &["id", "name", "created_at"][..]),
        ("feed", &["seq", "entity_id", "path", "request_id", "at"][..]),
    ] {
        let rows = shape(table, "kind", apart).await;
        assert_eq!(rows.len(), 2, "{table}");
        assert_eq!(rows[0], rows[1], "{table}");
    }
}

async fn in_one_step_a_taken_name_is_refused_and_leaves_no_trace(bed: Bed) {
    bed.model().await;
    let before = bed.store.dump().await.unwrap();
    let refused = bed
        .store
        .create_at(&context(), &model("m"), provider(), &Model::sample())
        .await
        .unwrap_err();
    assert_eq!(refused, Error::already_exists(Kind::Model, "ml.c.s.m"));
    assert_eq!(bed.store.dump().await.unwrap(), before);
}

async fn in_one_step_a_missing_level_is_named(bed: Bed) {
    bed.schema().await;
    for (names, missing) in [
        (["none", "c", "s", "m"], Kind::Metalake),
        (["ml", "none", "s", "m"], Kind::Catalog),
        (["ml", "c", "none", "m"], Kind::Schema),
    ] {
        let path = Path::of(Kind::Model, &names).unwrap();
        let refused = bed
            .store
            .create_at(&context(), &path, provider(), &Model::default())
            .await
            .unwrap_err();
        assert!(
            matches!(&refused, Error::NotFound { what: Missing::Entity(kind), .. } if *kind == missing),
            "{path}: {refused}"
        );
    }
}

async fn in_one_step_nothing_is_written_below_what_is_disabled_or_of_another_provider(bed: Bed) {
    let schema = bed.schema().await;
    let catalog = schema.parent().unwrap();
    let metalake = catalog.parent().unwrap();
    let other = match provider() {
        Provider::Fileset => Provider::Model,
        Provider::Model => Provider::Fileset,
    };
    let attempt = async |provider| {
        let created = bed
            .store
            .create_at(&context(), &model("m"), provider, &Model::default())
            .await
            .unwrap();
        assert_eq!(
            bed.count("entities", "name", "m").await,
            usize::from(created.is_some())
        );
        created
    };
    let enable_catalog = async |flag| {
        let change = move |draft: &mut Draft<Catalog>| draft.apply_all(&[SwitchableChange::SetInUse(flag)]);
        bed.store
            .alter(&context(), bed.resolve(&catalog).await, change)
            .await
            .unwrap();
    };
    let enable_metalake = async |flag| {
        let change = move |draft: &mut Draft<Metalake>| draft.apply_all(&[SwitchableChange::SetInUse(flag)]);
        bed.store
            .alter(&context(), bed.resolve(&metalake).await, change)
            .await
            .unwrap();
    };
    assert_eq!(attempt(other).await, None);
    enable_catalog(false).await;
    assert_eq!(attempt(provider()).await, None);
    enable_catalog(true).await;
    enable_metalake(false).await;
    assert_eq!(attempt(provider()).await, None);
    enable_metalake(true).await;
    assert!(attempt(provider()).await.is_some());
}

async fn in_one_step_the_successor_of_a_dropped_schema_is_meant(bed: Bed) {
    let schema = bed.schema().await;
    let dropped = bed.resolve(&schema).await;
    let rule = DropRule::default();
    assert!(bed.store.drop(&context(), dropped, rule).await.unwrap());
    let successor = bed
        .create(Some(&schema.parent().unwrap()), "s", Schema::default())
        .await;
    let created = bed
        .store
        .create_at(&context(), &model("m"), provider(), &Model::default())
        .await
        .unwrap();
    assert!(created.is_some());
    assert_eq!(bed.count("entities", "parent_id", successor.id.get()).await, 1);
}

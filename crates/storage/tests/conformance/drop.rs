//! P3: drops, cascades, and what is left of them.

use treeline_core::kinds::{Catalog, Metalake, Model, Schema};
use treeline_core::{Error, Kind, Path, Payload};
use treeline_storage::{DropRule, Precondition, WriteContext};

use crate::harness::{Bed, context, name, tests};

tests! {
    a_dropped_name_is_free_and_its_id_is_never_used_again,
    a_container_with_a_child_is_not_dropped,
    a_cascade_drops_every_level_with_one_feed_row_each,
    a_wide_cascade_goes_in_batches,
    a_drop_acts_on_what_it_resolved_and_never_on_a_successor,
    a_second_drop_drops_nothing,
    an_enabled_row_is_dropped_only_by_force,
    a_pinned_version_that_moved_refuses_the_drop,
    only_rows_past_retention_are_purged,
}

fn cascade() -> DropRule {
    DropRule {
        cascade: true,
        ..DropRule::default()
    }
}

async fn a_dropped_name_is_free_and_its_id_is_never_used_again(bed: Bed) {
    let path = Path::metalake(name("ml"));
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(bed.create(None, "ml", Metalake::default()).await.id);
        assert!(
            bed.store
                .drop(&context(), bed.resolve(&path).await, DropRule::default())
                .await
                .unwrap()
        );
    }
    ids.dedup();
    assert_eq!(ids.len(), 3);
    let rows = bed.rows("entities").await;
    let dropped: Vec<_> = rows.iter().filter(|row| row["name"] == "ml").collect();
    assert_eq!(dropped.len(), 3);
    for row in dropped {
        assert_eq!(
            (row["tombstone"].as_i64(), row["version"].as_i64()),
            (row["id"].as_i64(), Some(2))
        );
        assert!(row["parent_tombstone"].is_null() && row["dropped_at"].is_i64());
    }
}

async fn a_container_with_a_child_is_not_dropped(bed: Bed) {
    let schema = bed.schema().await;
    for kind in [Kind::Metalake, Kind::Catalog] {
        let path = schema.up_to(kind);
        let error = bed
            .store
            .drop(&context(), bed.resolve(&path).await, DropRule::default())
            .await
            .unwrap_err();
        assert_eq!(
            error,
            Error::NotEmpty {
                kind,
                path: path.to_string()
            }
        );
    }
    assert!(
        bed.store
            .drop(&context(), bed.resolve(&schema).await, DropRule::default())
            .await
            .unwrap()
    );
}

async fn a_cascade_drops_every_level_with_one_feed_row_each(bed: Bed) {
    let schema = bed.schema().await;
    bed.create(Some(&schema), "m1", Model::default()).await;
    bed.create(Some(&schema), "m2", Model::default()).await;
    let metalake = schema.up_to(Kind::Metalake);
    assert!(
        bed.store
            .drop(&context(), bed.resolve(&metalake).await, cascade())
            .await
            .unwrap()
    );
    let drops: Vec<String> = bed
        .rows("feed")
        .await
        .iter()
        .filter(|row| row["operation"] == "drop")
        .map(|row| row["path"].as_str().unwrap().to_owned())
        .collect();
    let expected = [
        r#"["ml","c","s","m1"]"#,
        r#"["ml","c","s","m2"]"#,
        r#"["ml","c","s"]"#,
        r#"["ml","c"]"#,
        r#"["ml"]"#,
    ];
    assert_eq!(drops, expected);
    assert_eq!(
        bed.count("entities", "tombstone", 0).await,
        1,
        "only the root lives"
    );
}

async fn a_wide_cascade_goes_in_batches(bed: Bed) {
    let schema = bed.schema().await;
    for number in 0..150 {
        bed.create(Some(&schema), &format!("m{number}"), Model::default())
            .await;
    }
    assert!(
        bed.store
            .drop(&context(), bed.resolve(&schema).await, cascade())
            .await
            .unwrap()
    );
    assert_eq!(bed.count("feed", "operation", "drop").await, 151);
}

async fn a_drop_acts_on_what_it_resolved_and_never_on_a_successor(bed: Bed) {
    let path = bed.schema().await;
    let resolved = bed.resolve(&path).await;
    assert!(
        bed.store
            .drop(&context(), resolved.clone(), DropRule::default())
            .await
            .unwrap()
    );
    let successor = bed.create(path.parent().as_ref(), "s", Schema::default()).await;
    assert!(
        !bed.store
            .drop(&context(), resolved.clone(), DropRule::default())
            .await
            .unwrap()
    );
    let pinned = WriteContext {
        precondition: Precondition::Tags(vec![resolved.tag()]),
        ..context()
    };
    let error = bed
        .store
        .drop(&pinned, resolved, DropRule::default())
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::PreconditionFailed { actual: None, .. }),
        "{error}"
    );
    assert_eq!(bed.resolve(&path).await.id(), successor.id);
}

async fn a_second_drop_drops_nothing(bed: Bed) {
    let path = bed.schema().await;
    let resolved = bed.resolve(&path).await;
    assert!(
        bed.store
            .drop(&context(), resolved.clone(), DropRule::default())
            .await
            .unwrap()
    );
    assert!(
        !bed.store
            .drop(&context(), resolved, DropRule::default())
            .await
            .unwrap()
    );
    assert_eq!(bed.count("feed", "operation", "drop").await, 1);
}

async fn an_enabled_row_is_dropped_only_by_force(bed: Bed) {
    bed.create(None, "ml", Metalake::default()).await;
    let path = Path::metalake(name("ml"));
    bed.create(Some(&path), "c", Catalog::sample()).await;
    let careful = DropRule {
        require_disabled: true,
        ..DropRule::default()
    };
    let error = bed
        .store
        .drop(&context(), bed.resolve(&path).await, careful)
        .await
        .unwrap_err();
    assert_eq!(
        error,
        Error::InUse {
            kind: Kind::Metalake,
            path: "ml".to_owned()
        }
    );
    assert!(
        bed.store
            .drop(&context(), bed.resolve(&path).await, cascade())
            .await
            .unwrap()
    );
}

async fn a_pinned_version_that_moved_refuses_the_drop(bed: Bed) {
    let path = bed.schema().await;
    let resolved = bed.resolve(&path).await;
    let touch = |draft: &mut treeline_core::Draft<Schema>| {
        draft.payload.properties.insert("p".to_owned(), "1".to_owned());
        Ok(())
    };
    let altered = bed
        .store
        .alter(&context(), resolved.clone(), touch)
        .await
        .unwrap();
    let pinned = WriteContext {
        precondition: Precondition::Tags(vec![resolved.tag()]),
        ..context()
    };
    let error = bed
        .store
        .drop(&pinned, resolved.clone(), DropRule::default())
        .await
        .unwrap_err();
    let expected = Error::PreconditionFailed {
        kind: Schema::KIND,
        path: path.to_string(),
        expected: Some(resolved.tag()),
        actual: Some(altered.tag()),
    };
    assert_eq!(error, expected);
    assert_eq!(bed.resolve(&path).await.tag(), altered.tag());
}

async fn only_rows_past_retention_are_purged(bed: Bed) {
    let schema = bed.schema().await;
    bed.store
        .drop(&context(), bed.resolve(&schema).await, DropRule::default())
        .await
        .unwrap();
    assert_eq!(bed.store.purge(60_000).await.unwrap(), 0);
    // A retention that lies in the future is past for every row.
    assert_eq!(bed.store.purge(-60_000).await.unwrap(), 1);
    assert_eq!(
        bed.count("entities", "tombstone", 0).await,
        3,
        "root, metalake and catalog live on"
    );
}

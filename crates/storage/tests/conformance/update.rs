//! P2 and P4: updates and renames.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use treeline_core::kinds::{CommonChange, Metalake, Schema};
use treeline_core::{Draft, EntityTag, Error, Kind, Path, PropertyChange, Result};
use treeline_storage::{DropRule, Precondition, WriteContext};

use crate::harness::{Bed, context, name, tests};

tests! {
    an_update_raises_the_version_by_one_and_is_audited,
    a_change_that_changes_nothing_writes_nothing,
    a_lost_check_applies_the_change_again_on_the_newer_row,
    a_lost_check_without_retries_is_a_conflict,
    a_pinned_version_that_moved_is_refused_and_nothing_is_written,
    any_of_several_pinned_versions_is_enough,
    a_lost_race_refuses_only_what_the_client_did_not_pin,
    every_one_of_many_writers_of_a_row_succeeds,
    an_update_of_a_dropped_row_never_reaches_its_successor,
    an_update_of_a_renamed_row_is_not_found_of_the_old_name,
    a_rename_moves_everything_below_in_one_write,
    a_rename_onto_a_live_name_is_refused_and_changes_nothing,
    a_refused_change_writes_nothing,
}

fn set(
    key: &'static str,
    value: &'static str,
) -> impl Fn(&mut Draft<Schema>) -> Result<()> + Clone + Send + Sync {
    move |draft| {
        draft.apply_all(&[PropertyChange::Set {
            key: key.to_owned(),
            value: value.to_owned(),
        }])
    }
}

fn rename(to: &'static str) -> impl Fn(&mut Draft<Metalake>) -> Result<()> + Clone + Send + Sync {
    move |draft| draft.apply_all(&[CommonChange::Rename(name(to)).into()])
}

async fn an_update_raises_the_version_by_one_and_is_audited(bed: Bed) {
    let path = bed.schema().await;
    let before = bed.resolve(&path).await;
    let mut writer = context();
    writer.principal = "editor".to_owned();
    let altered = bed
        .store
        .alter(&writer, before.clone(), set("p", "1"))
        .await
        .unwrap();
    assert_eq!(altered.version, before.tag().version.next());
    assert_eq!(altered.audit.creator, "tester");
    assert_eq!(altered.audit.last_modifier.as_deref(), Some("editor"));
    assert!(altered.audit.last_modified_at_ms >= Some(altered.audit.created_at_ms));
    assert_eq!(bed.resolve(&path).await.entity::<Schema>().unwrap(), altered);
    let feed = bed.rows("feed").await;
    let last = feed.last().unwrap();
    assert_eq!(
        (last["operation"].as_str(), last["version"].as_i64()),
        (Some("alter"), Some(2))
    );
    assert_eq!(
        (last["actor"].as_str(), last["path"].as_str()),
        (Some("editor"), Some(r#"["ml","c","s"]"#))
    );
}

async fn a_change_that_changes_nothing_writes_nothing(bed: Bed) {
    let path = bed.schema().await;
    let first = bed
        .store
        .alter(&context(), bed.resolve(&path).await, set("p", "1"))
        .await
        .unwrap();
    let feed_before = bed.rows("feed").await.len();
    let again = bed
        .store
        .alter(&context(), bed.resolve(&path).await, set("p", "1"))
        .await
        .unwrap();
    assert_eq!(again, first);
    assert_eq!(bed.rows("feed").await.len(), feed_before);
}

/// A reads, then B commits, then A writes: A's change runs again on B's row, and neither is lost (INV-3).
async fn a_lost_check_applies_the_change_again_on_the_newer_row(bed: Bed) {
    let path = bed.schema().await;
    let read_by_a = bed.resolve(&path).await;
    bed.store
        .alter(&context(), bed.resolve(&path).await, set("q", "2"))
        .await
        .unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = {
        let (runs, change) = (Arc::clone(&runs), set("p", "1"));
        move |draft: &mut Draft<Schema>| {
            runs.fetch_add(1, Ordering::Relaxed);
            change(draft)
        }
    };
    let altered = bed
        .store
        .alter(&context(), read_by_a.clone(), counted)
        .await
        .unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    assert_eq!(altered.version, read_by_a.tag().version.next().next());
    assert_eq!(
        (
            altered.payload.properties["p"].as_str(),
            altered.payload.properties["q"].as_str()
        ),
        ("1", "2")
    );
}

async fn a_lost_check_without_retries_is_a_conflict(bed: Bed) {
    let path = bed.schema().await;
    let once = bed.another_store(|options| options.occ_retries_max = 0).await;
    let read = bed.resolve(&path).await;
    let other = bed
        .store
        .alter(&context(), read.clone(), set("q", "2"))
        .await
        .unwrap();
    let error = once
        .alter(&context(), read.clone(), set("p", "1"))
        .await
        .unwrap_err();
    let expected = Error::Conflict {
        kind: Kind::Schema,
        path: path.to_string(),
        expected: Some(read.tag()),
        actual: Some(other.tag()),
    };
    assert_eq!(error, expected);
}

async fn a_pinned_version_that_moved_is_refused_and_nothing_is_written(bed: Bed) {
    let path = bed.schema().await;
    let read = bed.resolve(&path).await;
    let other = bed
        .store
        .alter(&context(), read.clone(), set("q", "2"))
        .await
        .unwrap();
    let feed_before = bed.rows("feed").await.len();
    let pinned = WriteContext {
        precondition: Precondition::Tags(vec![read.tag()]),
        ..context()
    };
    // Once refused by what was just read, once by the compare-and-set.
    for resolved in [bed.resolve(&path).await, read.clone()] {
        let error = bed
            .store
            .alter(&pinned, resolved, set("p", "1"))
            .await
            .unwrap_err();
        let expected = Error::PreconditionFailed {
            kind: Kind::Schema,
            path: path.to_string(),
            expected: Some(read.tag()),
            actual: Some(other.tag()),
        };
        assert_eq!(error, expected);
    }
    assert_eq!(bed.resolve(&path).await.entity::<Schema>().unwrap(), other);
    assert_eq!(bed.rows("feed").await.len(), feed_before);
}

async fn any_of_several_pinned_versions_is_enough(bed: Bed) {
    let path = bed.schema().await;
    let read = bed.resolve(&path).await;
    let stale = EntityTag {
        id: read.id(),
        version: read.tag().version.next(),
    };
    let tags = WriteContext {
        precondition: Precondition::Tags(vec![stale, read.tag()]),
        ..context()
    };
    assert!(bed.store.alter(&tags, read.clone(), set("p", "1")).await.is_ok());
    let exists = WriteContext {
        precondition: Precondition::Exists,
        ..context()
    };
    assert!(
        bed.store
            .alter(&exists, bed.resolve(&path).await, set("p", "2"))
            .await
            .is_ok()
    );
}

/// The row is as the client wants it, though not as it was read: `If-Match: *` names every state.
async fn a_lost_race_refuses_only_what_the_client_did_not_pin(bed: Bed) {
    let path = bed.schema().await;
    let read = bed.resolve(&path).await;
    let pinned = |precondition| WriteContext {
        precondition,
        ..context()
    };
    let alter = async |precondition, key, value| {
        let context = pinned(precondition);
        bed.store.alter(&context, read.clone(), set(key, value)).await
    };
    let second = alter(Precondition::None, "q", "2").await.unwrap();
    let third = alter(Precondition::Exists, "p", "1").await.unwrap();
    assert_eq!(third.version, second.version.next());
    let either = Precondition::Tags(vec![read.tag(), third.tag()]);
    let fourth = alter(either.clone(), "r", "3").await.unwrap();
    assert_eq!(fourth.version, third.version.next());
    assert_eq!(bed.resolve(&path).await.entity::<Schema>().unwrap(), fourth);
    for (key, value) in [("q", "2"), ("p", "1"), ("r", "3")] {
        assert_eq!(fourth.payload.properties[key], value);
    }
    let refused = alter(either, "s", "4").await.unwrap_err();
    let expected = Error::PreconditionFailed {
        kind: Kind::Schema,
        path: path.to_string(),
        expected: None,
        actual: Some(fourth.tag()),
    };
    assert_eq!(refused, expected);
    assert!(
        bed.store
            .drop(&context(), bed.resolve(&path).await, DropRule::default())
            .await
            .unwrap()
    );
    let gone = alter(Precondition::Exists, "t", "5").await.unwrap_err();
    assert!(matches!(gone, Error::NotFound { .. }), "{gone}");
}

/// 64 writers on two stores, each with a property of its own.
async fn every_one_of_many_writers_of_a_row_succeeds(bed: Bed) {
    let path = bed.schema().await;
    let other = bed.another_store(|_| {}).await;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..64 {
        let (store, path) = (
            if writer % 2 == 0 {
                bed.store.clone()
            } else {
                other.clone()
            },
            path.clone(),
        );
        writers.spawn(async move {
            let change = PropertyChange::Set {
                key: format!("p{writer}"),
                value: "set".to_owned(),
            };
            let resolved = store.resolve(&path).await?;
            store
                .alter(&context(), resolved, move |draft: &mut Draft<Schema>| {
                    draft.apply_all(std::slice::from_ref(&change))
                })
                .await
        });
    }
    for outcome in writers.join_all().await {
        outcome.unwrap();
    }
    let after = bed.resolve(&path).await.entity::<Schema>().unwrap();
    assert_eq!(after.version.get(), 1 + 64);
    assert_eq!(
        after
            .payload
            .properties
            .values()
            .filter(|value| *value == "set")
            .count(),
        64
    );
}

async fn an_update_of_a_dropped_row_never_reaches_its_successor(bed: Bed) {
    let path = bed.schema().await;
    let read = bed.resolve(&path).await;
    bed.store
        .drop(&context(), read.clone(), Default::default())
        .await
        .unwrap();
    let error = bed
        .store
        .alter(&context(), read.clone(), set("p", "1"))
        .await
        .unwrap_err();
    assert_eq!(error, Error::not_found(Kind::Schema, path.to_string()));
    let successor = bed.create(path.parent().as_ref(), "s", Schema::default()).await;
    let error = bed
        .store
        .alter(&context(), read, set("p", "1"))
        .await
        .unwrap_err();
    assert_eq!(error, Error::not_found(Kind::Schema, path.to_string()));
    assert_eq!(bed.resolve(&path).await.entity::<Schema>().unwrap(), successor);
}

async fn an_update_of_a_renamed_row_is_not_found_of_the_old_name(bed: Bed) {
    bed.create(None, "x", Metalake::default()).await;
    let path = Path::metalake(name("x"));
    let read = bed.resolve(&path).await;
    bed.store
        .alter(&context(), read.clone(), rename("y"))
        .await
        .unwrap();
    let comment = |draft: &mut Draft<Metalake>| {
        draft.apply_all(&[CommonChange::UpdateComment(Some("late".to_owned())).into()])
    };
    let error = bed.store.alter(&context(), read, comment).await.unwrap_err();
    assert_eq!(error, Error::not_found(Kind::Metalake, "x"));
}

async fn a_rename_moves_everything_below_in_one_write(bed: Bed) {
    let schema = bed.schema().await;
    let before = bed.resolve(&schema).await.entity::<Schema>().unwrap();
    let metalake = bed.resolve(&schema.up_to(Kind::Metalake)).await;
    let renamed = bed
        .store
        .alter(&context(), metalake, rename("other"))
        .await
        .unwrap();
    assert_eq!(renamed.name, name("other"));
    let error = bed.store.resolve(&schema).await.unwrap_err();
    assert_eq!(error, Error::not_found(Kind::Metalake, "ml"));
    let moved = Path::of(Kind::Schema, &["other", "c", "s"]).unwrap();
    assert_eq!(bed.resolve(&moved).await.entity::<Schema>().unwrap(), before);
    assert_eq!(bed.rows("feed").await.last().unwrap()["operation"], "rename");
}

async fn a_rename_onto_a_live_name_is_refused_and_changes_nothing(bed: Bed) {
    let x = bed.create(None, "x", Metalake::default()).await;
    bed.create(None, "y", Metalake::default()).await;
    let resolved = bed.resolve(&Path::metalake(name("x"))).await;
    let error = bed
        .store
        .alter(&context(), resolved, rename("y"))
        .await
        .unwrap_err();
    assert_eq!(error, Error::already_exists(Kind::Metalake, "y"));
    assert_eq!(
        bed.resolve(&Path::metalake(name("x")))
            .await
            .entity::<Metalake>()
            .unwrap(),
        x
    );
    assert_eq!(bed.rows("feed").await.len(), 2);
}

async fn a_refused_change_writes_nothing(bed: Bed) {
    let path = bed.schema().await;
    let refuse = |_: &mut Draft<Schema>| Err(Error::invalid("updates", "refused"));
    let error = bed
        .store
        .alter(&context(), bed.resolve(&path).await, refuse)
        .await
        .unwrap_err();
    assert_eq!(error, Error::invalid("updates", "refused"));
    assert_eq!(bed.resolve(&path).await.tag().version.get(), 1);
}

//! P11 of creates that keep files: between the commit and the last directory.

use treeline_core::kinds::{Fileset, FilesetType};
use treeline_core::{Draft, Entity, EntityId, Kind, NewEntity, Path};
use treeline_storage::{
    CreatedWithLocations, DropRule, KeptCreate, NewLocation, Store, Task, TaskFilter, TaskKind, Undone,
    WriteContext,
};

use crate::harness::{Bed, context, name, tests};
use crate::idempotency::keyed;

tests! {
    an_undo_drops_the_row_and_forgets_its_key,
    what_its_caller_held_holds_up_no_removal,
    a_create_whose_directories_are_made_is_not_undone,
    of_an_undo_and_the_end_of_the_last_task_one_wins,
    a_create_that_others_have_dropped_keeps_its_key,
    a_create_that_others_have_renamed_keeps_its_key_and_its_row,
    a_create_without_a_key_is_undone_in_any_case,
    a_key_tells_how_far_the_directories_are,
    a_repeat_is_given_no_tasks,
}

/// What was created, and the tasks that it left.
struct Made {
    path: Path,
    id: EntityId,
    tasks: Vec<Task>,
}

fn places(text: &str) -> Vec<NewLocation> {
    let place = |location: String| NewLocation {
        name: location.clone(),
        location: format!("file:/t/{location}"),
        remove_on_drop: true,
        make: true,
    };
    ["one", "two"]
        .map(|suffix| place(format!("{text}_{suffix}")))
        .into()
}

async fn ask(
    store: &Store,
    context: &WriteContext,
    schema: &Path,
    text: &str,
) -> CreatedWithLocations<Fileset> {
    let places = places(text);
    let locations = places
        .iter()
        .map(|place| (place.name.clone(), place.location.clone()));
    let payload = Fileset {
        comment: None,
        fileset_type: FilesetType::Managed,
        locations: locations.collect(),
        properties: [("default-location-name".to_owned(), places[0].name.clone())].into(),
    };
    let parent = store.resolve(schema).await.unwrap();
    let new = NewEntity {
        name: name(text),
        payload,
    };
    store
        .create_with_locations(context, Some(&parent), new, places)
        .await
        .unwrap()
}

/// A fileset with two directories that are still to be made.
async fn make(store: &Store, context: &WriteContext, schema: &Path, text: &str) -> Made {
    match ask(store, context, schema, text).await {
        CreatedWithLocations::Done(entity, tasks) => Made {
            path: schema.child(Kind::Fileset, name(text)),
            id: entity.id,
            tasks,
        },
        other => panic!("{other:?}"),
    }
}

impl Made {
    async fn undo(&self, store: &Store, context: &WriteContext) -> Undone {
        store
            .undo_create(context, &self.path, self.id, self.tasks.clone())
            .await
            .unwrap()
    }

    async fn settle(&self, bed: &Bed) {
        for task in &self.tasks {
            assert!(bed.store.settle_task(task).await.unwrap());
        }
    }

    async fn kept(&self, bed: &Bed, context: &WriteContext) -> KeptCreate {
        bed.store.kept_create(context, self.id).await.unwrap()
    }

    async fn is_live(&self, bed: &Bed) -> bool {
        let rows = bed.rows("entities").await;
        let mut own = rows.iter().filter(|row| row["id"] == self.id.get());
        own.any(|row| row["tombstone"] == 0)
    }
}

async fn recalled(bed: &Bed, context: &WriteContext) -> Option<EntityId> {
    let entity: Option<Entity<Fileset>> = bed.store.recall_entity(context).await.unwrap();
    entity.map(|entity| entity.id)
}

async fn an_undo_drops_the_row_and_forgets_its_key(bed: Bed) {
    let schema = bed.schema().await;
    let key = keyed("k", "create f");
    let made = make(&bed.store, &key, &schema, "f").await;
    let other = keyed("other", "create g");
    let neighbour = make(&bed.store, &other, &schema, "g").await;
    // The first directory is there, and the second cannot be made.
    assert!(bed.store.settle_task(&made.tasks[0]).await.unwrap());
    assert!(
        bed.store
            .release_task(&made.tasks[1], 60_000, "read-only")
            .await
            .unwrap()
    );
    assert_eq!(made.undo(&bed.store, &key).await, Undone::Done);
    assert!(!made.is_live(&bed).await);
    assert_eq!(recalled(&bed, &key).await, None);
    assert_eq!(made.kept(&bed, &key).await, KeptCreate::Undone);
    let drops = bed.rows("feed").await;
    let drops = drops.iter().filter(|row| row["operation"] == "drop");
    let drops: Vec<_> = drops.map(|row| row["actor"].clone()).collect();
    assert_eq!(drops, ["treeline"]);
    assert_eq!(neighbour.kept(&bed, &other).await, KeptCreate::Making);
    // The same request does it anew, and what it does is kept under the same key.
    remove_trees(&bed, made.id).await;
    let anew = make(&bed.store, &key, &schema, "f").await;
    assert_ne!(anew.id, made.id);
    assert_eq!(recalled(&bed, &key).await, Some(anew.id));
    assert_eq!(made.kept(&bed, &key).await, KeptCreate::Undone);
}

/// Removes what a fileset has left behind; it is all there to be removed.
async fn remove_trees(bed: &Bed, dropped: EntityId) {
    let removals = bed.store.claim_tasks(TaskFilter::CausedBy(dropped), 64);
    let removals = removals.await.unwrap();
    let kinds: Vec<TaskKind> = removals.iter().map(|task| task.kind).collect();
    assert_eq!(kinds, [TaskKind::RemoveTree, TaskKind::RemoveTree]);
    for task in removals {
        assert!(bed.store.settle_task(&task).await.unwrap());
    }
}

async fn what_its_caller_held_holds_up_no_removal(bed: Bed) {
    let schema = bed.schema().await;
    let key = keyed("k", "create f");
    let made = make(&bed.store, &key, &schema, "f").await;
    assert_eq!(made.undo(&bed.store, &key).await, Undone::Done);
    remove_trees(&bed, made.id).await;
}

/// The claims of the creator had run out, and others were faster.
async fn a_create_whose_directories_are_made_is_not_undone(bed: Bed) {
    let schema = bed.schema().await;
    let key = keyed("k", "create f");
    let made = make(&bed.store, &key, &schema, "f").await;
    made.settle(&bed).await;
    assert_eq!(made.undo(&bed.store, &key).await, Undone::Settled);
    assert!(made.is_live(&bed).await);
    assert_eq!(recalled(&bed, &key).await, Some(made.id));
    assert_eq!(made.kept(&bed, &key).await, KeptCreate::Stands);
}

async fn of_an_undo_and_the_end_of_the_last_task_one_wins(bed: Bed) {
    let schema = bed.schema().await;
    let other = bed.another_store(|_| {}).await;
    for round in 0..8 {
        let text = format!("f{round}");
        let key = keyed(&text, "create");
        let made = make(&bed.store, &key, &schema, &text).await;
        assert!(bed.store.settle_task(&made.tasks[0]).await.unwrap());
        let (undone, settled) = tokio::join!(made.undo(&bed.store, &key), other.settle_task(&made.tasks[1]),);
        let settled = settled.unwrap();
        let expected = if settled { Undone::Settled } else { Undone::Done };
        assert_eq!(undone, expected);
        assert_eq!(made.is_live(&bed).await, settled);
        assert_eq!(recalled(&bed, &key).await, settled.then_some(made.id));
    }
}

async fn a_create_that_others_have_dropped_keeps_its_key(bed: Bed) {
    let schema = bed.schema().await;
    let key = keyed("k", "create f");
    let made = make(&bed.store, &key, &schema, "f").await;
    let resolved = bed.resolve(&made.path).await;
    assert!(
        bed.store
            .drop(&context(), resolved, DropRule::default())
            .await
            .unwrap()
    );
    // The creator is still at it.
    assert_eq!(made.kept(&bed, &key).await, KeptCreate::Making);
    assert_eq!(made.undo(&bed.store, &key).await, Undone::Dropped);
    assert_eq!(recalled(&bed, &key).await, Some(made.id));
    assert_eq!(made.kept(&bed, &key).await, KeptCreate::Stands);
    remove_trees(&bed, made.id).await;
    // A successor of the name is not touched.
    let successor = make(&bed.store, &context(), &schema, "f").await;
    assert_eq!(made.undo(&bed.store, &key).await, Undone::Dropped);
    assert_eq!(bed.resolve(&made.path).await.id(), successor.id);
}

async fn a_create_that_others_have_renamed_keeps_its_key_and_its_row(bed: Bed) {
    let schema = bed.schema().await;
    let key = keyed("k", "create f");
    let made = make(&bed.store, &key, &schema, "f").await;
    let resolved = bed.resolve(&made.path).await;
    let rename = |draft: &mut Draft<Fileset>| {
        draft.name = name("theirs");
        Ok(())
    };
    bed.store.alter(&context(), resolved, rename).await.unwrap();
    assert_eq!(made.undo(&bed.store, &key).await, Undone::Renamed);
    assert!(made.is_live(&bed).await);
    assert_eq!(recalled(&bed, &key).await, Some(made.id));
    assert_eq!(made.kept(&bed, &key).await, KeptCreate::Making);
    made.settle(&bed).await;
    assert_eq!(made.kept(&bed, &key).await, KeptCreate::Stands);
}

async fn a_create_without_a_key_is_undone_in_any_case(bed: Bed) {
    let schema = bed.schema().await;
    let made = make(&bed.store, &context(), &schema, "f").await;
    made.settle(&bed).await;
    assert_eq!(made.undo(&bed.store, &context()).await, Undone::Done);
    assert!(!made.is_live(&bed).await);
}

async fn a_key_tells_how_far_the_directories_are(bed: Bed) {
    let schema = bed.schema().await;
    let key = keyed("k", "create f");
    // The claims of this one run out at once.
    let dying = bed.another_store(|options| options.task_lease_ms = -1).await;
    let made = make(&dying, &key, &schema, "f").await;
    assert_eq!(made.kept(&bed, &key).await, KeptCreate::Left);
    let left = bed.store.claim_tasks(TaskFilter::CausedBy(made.id), 64);
    let left = left.await.unwrap();
    assert_eq!(left.len(), 2);
    assert_eq!(made.kept(&bed, &key).await, KeptCreate::Making);
    assert!(bed.store.settle_task(&left[0]).await.unwrap());
    assert_eq!(made.kept(&bed, &key).await, KeptCreate::Making);
    assert!(
        bed.store
            .release_task(&left[1], 60_000, "read-only")
            .await
            .unwrap()
    );
    // It is free, but only due in a minute.
    assert_eq!(made.kept(&bed, &key).await, KeptCreate::Making);
    let again = bed.store.claim_tasks(TaskFilter::CausedBy(made.id), 64);
    let again = again.await.unwrap();
    assert!(bed.store.settle_task(&again[0]).await.unwrap());
    assert_eq!(made.kept(&bed, &key).await, KeptCreate::Stands);
    // Neither another key nor no key keeps it.
    for other in [keyed("other", "create f"), context()] {
        assert_eq!(made.kept(&bed, &other).await, KeptCreate::Undone);
    }
}

async fn a_repeat_is_given_no_tasks(bed: Bed) {
    let schema = bed.schema().await;
    let key = keyed("k", "create f");
    let made = make(&bed.store, &key, &schema, "f").await;
    let other = bed.another_store(|_| {}).await;
    match ask(&other, &key, &schema, "f").await {
        CreatedWithLocations::Kept(entity) => assert_eq!(entity.id, made.id),
        other => panic!("{other:?}"),
    }
    assert_eq!(bed.rows("reconcile_tasks").await.len(), 2);
}

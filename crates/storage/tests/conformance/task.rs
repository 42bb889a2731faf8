//! Tasks: directories that are made and removed outside the transactions that ask for them.

use treeline_core::kinds::{Fileset, Schema};
use treeline_core::{Kind, NewEntity, Path, Payload};
use treeline_storage::{CreatedWithLocations, DropRule, NewLocation, Removal, Task, TaskFilter, TaskKind};

use crate::harness::{Bed, context, name, tests};

tests! {
    a_directory_to_make_is_claimed_by_its_creator,
    a_dropped_fileset_leaves_its_trees_to_remove,
    an_adopted_directory_is_never_removed,
    a_create_around_a_tree_still_to_be_removed_writes_nothing,
    a_tree_with_a_live_filesets_files_is_left_alone,
    a_claim_that_ran_out_is_free_again_and_its_holder_knows,
    a_released_task_waits,
    nothing_is_made_for_a_fileset_that_is_gone,
    a_tree_is_not_removed_while_its_directory_is_being_made,
    an_empty_schema_directory_goes_after_the_trees_in_it,
    an_empty_schema_directory_that_a_live_fileset_keeps_is_left_alone,
    a_create_waits_for_a_schema_directory_only_where_somebody_removes_it,
    what_has_to_wait_never_hides_what_is_due,
}

fn place(location: &str) -> NewLocation {
    NewLocation {
        name: "unknown".to_owned(),
        location: location.to_owned(),
        remove_on_drop: true,
        make: true,
    }
}

fn at(location: &str) -> Fileset {
    Fileset {
        comment: None,
        fileset_type: treeline_core::kinds::FilesetType::Managed,
        locations: [("unknown".to_owned(), location.to_owned())].into(),
        properties: [("default-location-name".to_owned(), "unknown".to_owned())].into(),
    }
}

async fn create(bed: &Bed, schema: &Path, text: &str, place: NewLocation) -> CreatedWithLocations<Fileset> {
    let parent = bed.resolve(schema).await;
    let new = NewEntity {
        name: name(text),
        payload: at(&place.location),
    };
    bed.store
        .create_with_locations(&context(), Some(&parent), new, vec![place])
        .await
        .unwrap()
}

async fn created(bed: &Bed, schema: &Path, text: &str, place: NewLocation) -> Vec<Task> {
    match create(bed, schema, text, place).await {
        CreatedWithLocations::Done(_, tasks) => tasks,
        other => panic!("{other:?}"),
    }
}

/// Creates a fileset and settles the making of its directory.
async fn settled(bed: &Bed, schema: &Path, text: &str, location: &str) {
    for task in created(bed, schema, text, place(location)).await {
        assert!(bed.store.settle_task(&task).await.unwrap());
    }
}

async fn drop_fileset(bed: &Bed, schema: &Path, text: &str) {
    let resolved = bed.resolve(&schema.child(Kind::Fileset, name(text))).await;
    assert!(
        bed.store
            .drop(&context(), resolved, DropRule::default())
            .await
            .unwrap()
    );
}

async fn due(bed: &Bed) -> Vec<Task> {
    bed.store.claim_tasks(TaskFilter::Due, 64).await.unwrap()
}

async fn around(bed: &Bed, location: &str) -> Removal {
    bed.store.removal_around(location).await.unwrap()
}

/// Another schema of the same catalog.
async fn other_schema(bed: &Bed, schema: &Path) -> Path {
    let catalog = schema.parent().unwrap();
    bed.create(Some(&catalog), "other", Schema::sample()).await;
    catalog.child(Kind::Schema, name("other"))
}

/// Drops a schema with all that is in it, and its own directory.
async fn prune(bed: &Bed, schema: &Path, location: &str) {
    let rule = DropRule {
        cascade: true,
        prune: vec![location.to_owned()],
        ..DropRule::default()
    };
    assert!(
        bed.store
            .drop(&context(), bed.resolve(schema).await, rule)
            .await
            .unwrap()
    );
}

async fn a_directory_to_make_is_claimed_by_its_creator(bed: Bed) {
    let schema = bed.schema().await;
    let tasks = created(&bed, &schema, "f", place("file:/t/f")).await;
    assert_eq!(tasks.len(), 1);
    assert_eq!(
        (tasks[0].kind, tasks[0].location.as_str()),
        (TaskKind::MakeDirectory, "file:/t/f")
    );
    assert!(due(&bed).await.is_empty(), "it is claimed");
    assert!(bed.store.settle_task(&tasks[0]).await.unwrap());
    assert!(bed.rows("reconcile_tasks").await.is_empty());
}

async fn a_dropped_fileset_leaves_its_trees_to_remove(bed: Bed) {
    let schema = bed.schema().await;
    settled(&bed, &schema, "f", "file:/t/f").await;
    let id = bed.resolve(&schema.child(Kind::Fileset, name("f"))).await.id();
    drop_fileset(&bed, &schema, "f").await;
    assert!(bed.rows("locations").await.is_empty());
    assert_eq!(around(&bed, "file:/t/f").await, Removal::Free);
    let tasks = bed.store.claim_tasks(TaskFilter::CausedBy(id), 64).await.unwrap();
    assert_eq!(tasks.len(), 1);
    assert_eq!(
        (tasks[0].kind, tasks[0].location.as_str()),
        (TaskKind::RemoveTree, "file:/t/f")
    );
    assert_eq!(around(&bed, "file:/t/f").await, Removal::Claimed);
    assert!(bed.store.settle_task(&tasks[0]).await.unwrap());
    assert_eq!(around(&bed, "file:/t/f").await, Removal::None);
}

async fn an_adopted_directory_is_never_removed(bed: Bed) {
    let schema = bed.schema().await;
    let adopted = NewLocation {
        remove_on_drop: false,
        make: false,
        ..place("file:/t/f")
    };
    assert!(created(&bed, &schema, "f", adopted).await.is_empty());
    drop_fileset(&bed, &schema, "f").await;
    assert!(bed.rows("reconcile_tasks").await.is_empty());
}

async fn a_create_around_a_tree_still_to_be_removed_writes_nothing(bed: Bed) {
    let schema = bed.schema().await;
    settled(&bed, &schema, "f", "file:/t/a/b").await;
    drop_fileset(&bed, &schema, "f").await;
    for location in ["file:/t/a/b", "file:/t/a", "file:/t/a/b/c/d"] {
        let outcome = create(&bed, &schema, "g", place(location)).await;
        assert!(matches!(outcome, CreatedWithLocations::Blocked), "{location}");
        assert_eq!(around(&bed, location).await, Removal::Free);
    }
    assert_eq!(bed.count("entities", "name", "g").await, 0);
    for location in ["file:/t/a/bc", "file:/t/ab", "file:/u"] {
        assert_eq!(around(&bed, location).await, Removal::None, "{location}");
    }
    let removals = TaskFilter::RemovalsAround("file:/t/a/b/c".to_owned());
    for task in bed.store.claim_tasks(removals, 64).await.unwrap() {
        assert!(bed.store.settle_task(&task).await.unwrap());
    }
    created(&bed, &schema, "g", place("file:/t/a/b")).await;
}

/// Whoever looks for what is due finds nothing, and settles what was needless.
async fn nothing_is_left(bed: &Bed) {
    assert!(due(bed).await.is_empty());
    assert!(
        bed.rows("reconcile_tasks").await.is_empty(),
        "there is nothing left to do"
    );
}

async fn a_tree_with_a_live_filesets_files_is_left_alone(bed: Bed) {
    let schema = bed.schema().await;
    settled(&bed, &schema, "f", "file:/t/a").await;
    settled(&bed, &schema, "g", "file:/t/a/inside").await;
    drop_fileset(&bed, &schema, "f").await;
    nothing_is_left(&bed).await;
}

async fn a_claim_that_ran_out_is_free_again_and_its_holder_knows(bed: Bed) {
    let schema = bed.schema().await;
    settled(&bed, &schema, "f", "file:/t/f").await;
    drop_fileset(&bed, &schema, "f").await;
    let hasty = bed.another_store(|options| options.task_lease_ms = -1).await;
    let lost = hasty.claim_tasks(TaskFilter::Due, 64).await.unwrap();
    let taken = due(&bed).await;
    assert_eq!((lost.len(), taken.len(), taken[0].attempts), (1, 1, 2));
    assert!(!bed.store.settle_task(&lost[0]).await.unwrap());
    assert!(!bed.store.extend_task(&lost[0]).await.unwrap());
    assert!(bed.store.extend_task(&taken[0]).await.unwrap());
    assert!(bed.store.settle_task(&taken[0]).await.unwrap());
}

async fn a_released_task_waits(bed: Bed) {
    let schema = bed.schema().await;
    settled(&bed, &schema, "f", "file:/t/f").await;
    drop_fileset(&bed, &schema, "f").await;
    let task = due(&bed).await.remove(0);
    assert!(
        bed.store
            .release_task(&task, 60_000, "the disk said no")
            .await
            .unwrap()
    );
    assert!(due(&bed).await.is_empty());
    assert_eq!(
        bed.count("reconcile_tasks", "last_error", "the disk said no")
            .await,
        1
    );
    assert_eq!(around(&bed, "file:/t/f").await, Removal::Free);
}

async fn nothing_is_made_for_a_fileset_that_is_gone(bed: Bed) {
    let schema = bed.schema().await;
    let hasty = bed.another_store(|options| options.task_lease_ms = -1).await;
    let parent = hasty.resolve(&schema).await.unwrap();
    let new = NewEntity {
        name: name("f"),
        payload: at("file:/t/f"),
    };
    hasty
        .create_with_locations(&context(), Some(&parent), new, vec![place("file:/t/f")])
        .await
        .unwrap();
    drop_fileset(&bed, &schema, "f").await;
    let kinds: Vec<TaskKind> = due(&bed).await.iter().map(|task| task.kind).collect();
    assert_eq!(kinds, [TaskKind::RemoveTree]);
}

async fn a_tree_is_not_removed_while_its_directory_is_being_made(bed: Bed) {
    let schema = bed.schema().await;
    let making = created(&bed, &schema, "f", place("file:/t/f")).await;
    drop_fileset(&bed, &schema, "f").await;
    assert!(due(&bed).await.is_empty(), "the maker still holds its claim");
    assert!(bed.store.settle_task(&making[0]).await.unwrap());
    assert_eq!(due(&bed).await.len(), 1);
}

async fn an_empty_schema_directory_goes_after_the_trees_in_it(bed: Bed) {
    let schema = bed.schema().await;
    settled(&bed, &schema, "f", "file:/t/s/f").await;
    prune(&bed, &schema, "file:/t/s").await;
    let first = due(&bed).await;
    assert_eq!(
        first.iter().map(|task| task.kind).collect::<Vec<_>>(),
        [TaskKind::RemoveTree]
    );
    assert!(bed.store.settle_task(&first[0]).await.unwrap());
    let second = due(&bed).await;
    assert_eq!(
        second.iter().map(|task| task.kind).collect::<Vec<_>>(),
        [TaskKind::RemoveEmptyDirectory]
    );
}

/// The schema's place is what its client said, and so may be that of a fileset of another schema.
async fn an_empty_schema_directory_that_a_live_fileset_keeps_is_left_alone(bed: Bed) {
    let schema = bed.schema().await;
    let other = other_schema(&bed, &schema).await;
    settled(&bed, &other, "g", "file:/t/s").await;
    prune(&bed, &schema, "file:/t/s").await;
    nothing_is_left(&bed).await;
}

/// A removal that was claimed before the fileset was to be seen may take the directory that it has found and adopted.
async fn a_create_waits_for_a_schema_directory_only_where_somebody_removes_it(bed: Bed) {
    let schema = bed.schema().await;
    let other = other_schema(&bed, &schema).await;
    prune(&bed, &schema, "file:/t/s").await;
    assert_eq!(around(&bed, "file:/t/s").await, Removal::None);
    let hasty = bed.another_store(|options| options.task_lease_ms = -1).await;
    let begun = hasty.claim_tasks(TaskFilter::Due, 64).await.unwrap();
    assert_eq!(begun[0].kind, TaskKind::RemoveEmptyDirectory);
    assert_eq!(around(&bed, "file:/t/s").await, Removal::Claimed);
    for elsewhere in ["file:/t", "file:/t/s/below", "file:/t/other"] {
        assert_eq!(around(&bed, elsewhere).await, Removal::None, "{elsewhere}");
    }
    let outcome = create(&bed, &other, "g", place("file:/t/s")).await;
    assert!(matches!(outcome, CreatedWithLocations::Blocked));
    // The claim has run out, so whoever waits takes it over, and the first holder does not begin after all.
    let taken = TaskFilter::RemovalsAround("file:/t/s".to_owned());
    let taken = bed.store.claim_tasks(taken, 64).await.unwrap();
    assert!(!bed.store.extend_task(&begun[0]).await.unwrap());
    assert!(
        bed.store
            .release_task(&taken[0], 60_000, "the disk said no")
            .await
            .unwrap()
    );
    assert_eq!(around(&bed, "file:/t/s").await, Removal::None);
    settled(&bed, &other, "g", "file:/t/s").await;
}

/// The directory of a schema waits for a removal in it that fails, and comes first by its age; there is more of such work
/// than is looked at at once.
async fn what_has_to_wait_never_hides_what_is_due(bed: Bed) {
    let schema = bed.schema().await;
    settled(&bed, &schema, "f", "file:/t/s/f").await;
    let other = other_schema(&bed, &schema).await;
    settled(&bed, &other, "g", "file:/t/g").await;
    prune(&bed, &schema, "file:/t/s").await;
    let failed = due(&bed).await.remove(0);
    assert!(
        bed.store
            .release_task(&failed, 60_000, "read-only")
            .await
            .unwrap()
    );
    drop_fileset(&bed, &other, "g").await;
    let one = async || bed.store.claim_tasks(TaskFilter::Due, 1).await.unwrap();
    assert!(one().await.is_empty(), "the directory of the schema has to wait");
    assert_eq!(one().await[0].location, "file:/t/g");
}

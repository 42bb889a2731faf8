//! Claims that run out while their work is done.

use treeline_core::kinds::{Catalog, Fileset, FilesetType, Metalake, Schema};
use treeline_core::{Kind, NewEntity, Path, Payload};
use treeline_storage::{CreatedWithLocations, NewLocation, StoreOptions, WriteContext};

use super::*;
use crate::{Dispatcher, DropMode, NewFileset, Settings};

fn context() -> WriteContext {
    WriteContext::new("tester", "request")
}

/// The path of a fileset whose schema is there.
async fn fileset_to_be(dispatcher: &Dispatcher) -> Path {
    let lake = Path::of(Kind::Metalake, &["m"]).unwrap();
    let catalog = Path::of(Kind::Catalog, &["m", "c"]).unwrap();
    let schema = Path::of(Kind::Schema, &["m", "c", "s"]).unwrap();
    dispatcher
        .create(&context(), &lake, Metalake::default())
        .await
        .unwrap();
    dispatcher
        .create(&context(), &catalog, Catalog::sample())
        .await
        .unwrap();
    dispatcher
        .create(&context(), &schema, Schema::default())
        .await
        .unwrap();
    Path::of(Kind::Fileset, &["m", "c", "s", "f"]).unwrap()
}

/// The second of two removals waits behind the first for longer than its claim lasts. Meanwhile another server has done
/// it, and the fileset is there again.
#[tokio::test]
async fn a_removal_that_others_have_done_meanwhile_leaves_a_successor_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("treeline.db");
    let url = format!("sqlite:{}", file.display());
    let hasty = StoreOptions {
        task_lease_ms: -1,
        ..StoreOptions::new(url.clone())
    };
    let (hasty, patient) = (
        Store::open(hasty).await.unwrap(),
        Store::open(StoreOptions::new(url)).await.unwrap(),
    );
    let settings = || Settings::new(directory.path().join("data"));
    let slow = Dispatcher::new(hasty, settings());
    let other = Dispatcher::new(patient, settings());
    let fileset = fileset_to_be(&slow).await;
    let place = directory.path().join("files");
    let new = || NewFileset {
        storage_location: Some(place.display().to_string()),
        ..NewFileset::default()
    };
    other.create_fileset(&context(), &fileset, new()).await.unwrap();
    let resolved = other.store.resolve(&fileset).await.unwrap();
    let rule = crate::guard::drop_rule(Kind::Fileset, DropMode::Plain);
    assert!(other.store.drop(&context(), resolved, rule).await.unwrap());
    let claimed = slow.store.claim_tasks(TaskFilter::Due, BATCH).await.unwrap();
    assert_eq!(claimed.len(), 1);
    other.create_fileset(&context(), &fileset, new()).await.unwrap();
    std::fs::write(place.join("file"), "the successor's").unwrap();
    slow.directories.run(&claimed[0]).await.unwrap();
    assert!(place.join("file").is_file());
}

/// A sweep settles the task of a create that is slow, and then the create makes the directory: it must not be taken
/// away again, since the fileset lives.
#[tokio::test]
async fn a_slow_create_keeps_the_directory_whose_task_a_sweep_has_settled() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("treeline.db");
    let store = Store::open(StoreOptions {
        // Every claim has run out as soon as it is made.
        task_lease_ms: -1,
        ..StoreOptions::new(format!("sqlite:{}", file.display()))
    });
    let store = store.await.unwrap();
    let settings = Settings::new(directory.path().join("data"));
    let dispatcher = Dispatcher::new(store.clone(), settings);
    let schema = fileset_to_be(&dispatcher).await.parent().unwrap();
    let place = directory.path().join("files");
    let location = format!("file:{}", place.display());
    let new = NewEntity {
        name: treeline_core::Name::new("f").unwrap(),
        payload: Fileset {
            comment: None,
            fileset_type: FilesetType::Managed,
            locations: [("unknown".to_owned(), location.clone())].into(),
            properties: [("default-location-name".to_owned(), "unknown".to_owned())].into(),
        },
    };
    let wanted = NewLocation {
        name: "unknown".to_owned(),
        location,
        remove_on_drop: true,
        make: true,
    };
    let parent = store.resolve(&schema).await.unwrap();
    let created = store
        .create_with_locations(&context(), Some(&parent), new, vec![wanted])
        .await;
    let CreatedWithLocations::Done(_, tasks) = created.unwrap() else {
        panic!("blocked");
    };
    dispatcher.directories.sweep().await;
    // As if the sweep had come to the directory a moment later than the create, and found it there.
    std::fs::remove_dir(&place).unwrap();
    dispatcher.directories.make(tasks).await.unwrap();
    assert!(place.is_dir());
}

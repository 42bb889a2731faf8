//! Claims that run out while their work is done.

use treeline_core::kinds::{Catalog, Fileset, FilesetType, Metalake, Schema};
use treeline_core::{Kind, NewEntity, Path, Payload};
use treeline_storage::{CreatedWithLocations, NewLocation, StoreOptions, WriteContext};

use super::*;
use crate::{Dispatcher, Settings};

fn context() -> WriteContext {
    WriteContext::new("tester", "request")
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
    let lake = Path::of(Kind::Metalake, &["m"]).unwrap();
    let catalog = Path::of(Kind::Catalog, &["m", "c"]).unwrap();
    let schema = Path::of(Kind::Schema, &["m", "c", "s"]).unwrap();
    let settings = Settings::new(directory.path().join("data"));
    let dispatcher = Dispatcher::new(store.clone(), settings);
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

//! Claims that run out while their work is done, and places that never answer.

use async_trait::async_trait;
use treeline_connectors::{AllowedRoots, DirectoryId, LocalFiles, LocationStore};
use treeline_core::kinds::{Catalog, Fileset, FilesetType, Metalake, Schema};
use treeline_core::{Kind, Name, NewEntity, Path, Payload};
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

/// A fileset whose directory is still to be made.
async fn created_at(store: &Store, schema: &Path, name: &str, location: &str) -> Vec<Task> {
    let new = NewEntity {
        name: Name::new(name).unwrap(),
        payload: Fileset {
            comment: None,
            fileset_type: FilesetType::Managed,
            locations: [("unknown".to_owned(), location.to_owned())].into(),
            properties: [("default-location-name".to_owned(), "unknown".to_owned())].into(),
        },
    };
    let wanted = NewLocation {
        name: "unknown".to_owned(),
        location: location.to_owned(),
        remove_on_drop: true,
        make: true,
    };
    let parent = store.resolve(schema).await.unwrap();
    let created = store
        .create_with_locations(&context(), Some(&parent), new, vec![wanted])
        .await;
    match created.unwrap() {
        CreatedWithLocations::Done(_, tasks) => tasks,
        other => panic!("{other:?}"),
    }
}

/// A fileset that is dropped, and whose tree is still to be removed.
async fn dropped_at(store: &Store, schema: &Path, name: &str, location: &str) {
    for task in created_at(store, schema, name, location).await {
        assert!(store.settle_task(&task).await.unwrap());
    }
    let path = schema.child(Kind::Fileset, Name::new(name).unwrap());
    let resolved = store.resolve(&path).await.unwrap();
    let rule = crate::guard::drop_rule(Kind::Fileset, DropMode::Plain);
    assert!(store.drop(&context(), resolved, rule).await.unwrap());
}

/// A mount whose server is gone, or one that refuses.
#[derive(Debug)]
struct Dead {
    hangs: bool,
}

impl Dead {
    async fn answer<T>(&self, location: &str) -> Result<T> {
        if self.hangs {
            std::future::pending::<()>().await;
        }
        let reason = format!("`{location}` is read-only");
        Err(Error::invalid("storageLocations", reason))
    }
}

#[async_trait]
impl LocationStore for Dead {
    async fn stat(&self, location: &str) -> Result<Stat> {
        self.answer(location).await
    }

    async fn make_dir(&self, location: &str) -> Result<Made> {
        self.answer(location).await
    }

    async fn remove_tree(&self, location: &str, _begun: Option<DirectoryId>) -> Result<Removed> {
        self.answer(location).await
    }

    async fn remove_empty_dir(&self, location: &str) -> Result<bool> {
        self.answer(location).await
    }

    async fn list(&self, location: &str, _entries_max: usize) -> Result<Vec<FileStat>> {
        self.answer(location).await
    }
}

/// Two mounts that are dead, and the files of this machine.
struct Mounts {
    store: Store,
    directories: Directories,
    schema: Path,
    files: tempfile::TempDir,
}

impl Mounts {
    async fn with(call_max: Duration) -> Mounts {
        let files = tempfile::tempdir().unwrap();
        let file = files.path().join("treeline.db");
        let store = Store::open(StoreOptions::new(format!("sqlite:{}", file.display())));
        let store = store.await.unwrap();
        let data = files.path().join("data");
        let dispatcher = Dispatcher::new(store.clone(), Settings::new(data.clone()));
        let schema = fileset_to_be(&dispatcher).await.parent().unwrap();
        let local = LocalFiles::new(AllowedRoots::new(None, &data));
        let places = Locations::new()
            .with("file", Arc::new(local))
            .with("hangs", Arc::new(Dead { hangs: true }))
            .with("refuses", Arc::new(Dead { hangs: false }));
        Mounts {
            directories: Directories::new(store.clone(), places, Duration::from_secs(2), call_max),
            store,
            schema,
            files,
        }
    }

    async fn dropped_at(&self, name: &str, location: &str) {
        dropped_at(&self.store, &self.schema, name, location).await;
    }

    /// What a create is told that waits for a tenth of a second.
    async fn refusal_at(&self, location: &str) -> Error {
        let deadline = Instant::now() + Duration::from_millis(100);
        let waited = self.directories.finish_removals_around(location, deadline);
        waited.await.unwrap_err()
    }
}

#[tokio::test]
async fn removals_that_hang_hold_up_neither_the_sweep_nor_other_removals() {
    let mounts = Mounts::with(Duration::from_secs(60)).await;
    for number in 1..HANDS {
        let (name, location) = (format!("f{number}"), format!("hangs:/mnt/{number}"));
        mounts.dropped_at(&name, &location).await;
    }
    let trees = ["a", "b", "c"].map(|name| mounts.files.path().join(name));
    for (tree, name) in trees.iter().zip(["a", "b", "c"]) {
        std::fs::create_dir_all(tree.join("below")).unwrap();
        let location = format!("file:{}", tree.display());
        mounts.dropped_at(name, &location).await;
    }
    mounts.directories.sweep().await;
    let removed = async {
        while trees.iter().any(|tree| tree.exists()) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), removed)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_call_that_hangs_is_unavailable_at_its_deadline() {
    let mounts = Mounts::with(Duration::from_millis(50)).await;
    let answers = [
        mounts.directories.stat("hangs:/mnt/a").await.map(drop),
        mounts.directories.list("hangs:/mnt/a", 10).await.map(drop),
        mounts.directories.require("hangs:/mnt/a").await,
    ];
    for answer in answers {
        assert!(matches!(answer, Err(Error::Unavailable { .. })), "{answer:?}");
    }
    // The task of a removal is released, so that it is tried again.
    mounts.dropped_at("f", "hangs:/mnt/a").await;
    mounts.directories.sweep().await;
    mounts.directories.settle().await;
    let around = mounts.store.removal_around("hangs:/mnt/a").await;
    assert_eq!(around, Ok(Removal::Free));
}

#[tokio::test]
async fn a_create_is_told_why_what_was_there_cannot_be_removed() {
    let mounts = Mounts::with(Duration::from_secs(60)).await;
    mounts.dropped_at("f", "refuses:/mnt/a").await;
    mounts.dropped_at("g", "hangs:/mnt/a").await;
    let reason = |error| match error {
        Error::Unavailable { reason } => reason,
        other => panic!("{other:?}"),
    };
    let own = reason(mounts.refusal_at("refuses:/mnt/a/b").await);
    assert!(own.contains("`refuses:/mnt/a` is read-only"), "{own}");
    // What lies below is not the client's to know.
    let others = reason(mounts.refusal_at("refuses:/mnt").await);
    assert!(!others.contains("/mnt/a"), "{others}");
    let hanging = reason(mounts.refusal_at("hangs:/mnt/a").await);
    assert!(hanging.ends_with("is still being removed"), "{hanging}");
    // It goes on under its claim, so whoever comes next waits for others.
    let next = mounts.refusal_at("hangs:/mnt/a").await;
    assert!(matches!(next, Error::Contended { .. }), "{next:?}");
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
    let tasks = created_at(&store, &schema, "f", &location).await;
    dispatcher.directories.sweep().await;
    dispatcher.directories.settle().await;
    // As if the sweep had come to the directory a moment later than the create, and found it there.
    std::fs::remove_dir(&place).unwrap();
    dispatcher.directories.make(tasks).await.unwrap();
    assert!(place.is_dir());
}

//! Creates under a key, repeated while their directories are made.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use treeline_connectors::{
    AllowedRoots, DirectoryId, FileStat, LocalFiles, LocationStore, Locations, Made, Removed, Stat,
};
use treeline_core::kinds::Metalake;
use treeline_core::{Name, Payload};
use treeline_storage::{Idempotency, Store, StoreOptions};

use super::*;
use crate::directories::Directories;
use crate::{DropMode, Settings};

/// The files of this machine, where directories can be made or not.
#[derive(Debug)]
struct Disk {
    files: LocalFiles,
    is_full: AtomicBool,
    /// What somebody else drops, seen once its directory is to be made.
    doomed: Option<(Store, Path)>,
}

#[async_trait]
impl LocationStore for Disk {
    async fn stat(&self, location: &str) -> Result<Stat> {
        self.files.stat(location).await
    }

    async fn make_dir(&self, location: &str) -> Result<Made> {
        if let Some((store, path)) = &self.doomed {
            let resolved = store.resolve(path).await?;
            let rule = guard::drop_rule(Kind::Fileset, DropMode::Plain);
            store
                .drop(&WriteContext::new("another", "drop"), resolved, rule)
                .await?;
        }
        if self.is_full.load(Ordering::SeqCst) {
            return Err(Error::Unavailable {
                reason: "the disk is full".to_owned(),
            });
        }
        self.files.make_dir(location).await
    }

    async fn remove_tree(&self, location: &str, begun: Option<DirectoryId>) -> Result<Removed> {
        self.files.remove_tree(location, begun).await
    }

    async fn remove_empty_dir(&self, location: &str) -> Result<bool> {
        self.files.remove_empty_dir(location).await
    }

    async fn list(&self, location: &str, entries_max: usize) -> Result<Vec<FileStat>> {
        self.files.list(location, entries_max).await
    }
}

/// A schema, and a request for a fileset in it under a key.
struct Bed {
    store: Store,
    disk: Arc<Disk>,
    dispatcher: Dispatcher,
    path: Path,
    request: WriteContext,
    directory: tempfile::TempDir,
}

impl Bed {
    /// Claims last for so long, and a repeat waits for `wait_ms`.
    async fn with(task_lease_ms: i64, wait_ms: u64, is_dropped_on_the_way: bool) -> Bed {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("treeline.db");
        let store = Store::open(StoreOptions {
            task_lease_ms,
            ..StoreOptions::new(format!("sqlite:{}", file.display()))
        });
        let store = store.await.unwrap();
        let path = Path::of(Kind::Fileset, &["m", "c", "s", "f"]).unwrap();
        let data = directory.path().join("data");
        let disk = Arc::new(Disk {
            files: LocalFiles::new(AllowedRoots::new(None, &data)),
            is_full: AtomicBool::new(false),
            doomed: is_dropped_on_the_way.then(|| (store.clone(), path.clone())),
        });
        let settings = Settings {
            directory_wait_ms: wait_ms,
            ..Settings::new(data)
        };
        let wait = Duration::from_millis(wait_ms);
        let places = Locations::new().with("file", Arc::clone(&disk) as Arc<dyn LocationStore>);
        let dispatcher = Dispatcher {
            directories: Directories::new(store.clone(), places, wait, Duration::from_secs(60)),
            ..Dispatcher::new(store.clone(), settings)
        };
        let context = WriteContext::new("tester", "request");
        let [metalake, catalog, schema] =
            [Kind::Metalake, Kind::Catalog, Kind::Schema].map(|kind| path.up_to(kind));
        let create = dispatcher.create(&context, &metalake, Metalake::default());
        create.await.unwrap();
        let create = dispatcher.create(&context, &catalog, Catalog::sample());
        create.await.unwrap();
        let create = dispatcher.create(&context, &schema, Schema::default());
        create.await.unwrap();
        let request = WriteContext {
            idempotency: Some(Idempotency {
                key: "k".to_owned(),
                fingerprint: "create f".to_owned(),
            }),
            ..context
        };
        Bed {
            store,
            disk,
            dispatcher,
            path,
            request,
            directory,
        }
    }

    fn place(&self) -> std::path::PathBuf {
        self.directory.path().join("files")
    }

    fn location(&self) -> String {
        format!("file:{}", self.place().display())
    }

    async fn asked(&self) -> Result<Entity<Fileset>> {
        let new = NewFileset {
            storage_location: Some(self.place().display().to_string()),
            ..NewFileset::default()
        };
        self.dispatcher
            .create_fileset(&self.request, &self.path, new)
            .await
    }

    /// As another server that has committed, and has yet to make the directory.
    async fn committed(&self) -> (Entity<Fileset>, Vec<Task>) {
        let payload = Fileset {
            comment: None,
            fileset_type: FilesetType::Managed,
            locations: [("unknown".to_owned(), self.location())].into(),
            properties: [("default-location-name".to_owned(), "unknown".to_owned())].into(),
        };
        let place = NewLocation {
            name: "unknown".to_owned(),
            location: self.location(),
            remove_on_drop: true,
            make: true,
        };
        let parent = self.store.resolve(&self.path.up_to(Kind::Schema)).await.unwrap();
        let new = NewEntity {
            name: Name::new("f").unwrap(),
            payload,
        };
        let created = self
            .store
            .create_with_locations(&self.request, Some(&parent), new, vec![place])
            .await;
        match created.unwrap() {
            CreatedWithLocations::Done(entity, tasks) => (entity, tasks),
            other => panic!("{other:?}"),
        }
    }

    fn fills(&self, is_full: bool) {
        self.disk.is_full.store(is_full, Ordering::SeqCst);
    }

    async fn kept(&self) -> Option<Entity<Fileset>> {
        self.store.recall_entity(&self.request).await.unwrap()
    }
}

#[tokio::test]
async fn a_repeat_is_not_told_of_a_create_whose_directory_is_being_made() {
    let bed = Bed::with(60_000, 60, false).await;
    let (first, tasks) = bed.committed().await;
    let early = bed.asked().await;
    assert!(matches!(early, Err(Error::Contended { .. })), "{early:?}");
    assert!(!bed.place().exists(), "it is not the repeat's to make");
    bed.dispatcher.directories.make(tasks).await.unwrap();
    assert_eq!(bed.asked().await.unwrap(), first);
}

#[tokio::test]
async fn a_repeat_makes_the_directory_that_a_dead_server_has_left() {
    // Every claim has run out as soon as it is made.
    let bed = Bed::with(-1, 10_000, false).await;
    let (first, _tasks) = bed.committed().await;
    assert_eq!(bed.asked().await.unwrap(), first);
    assert!(bed.place().is_dir());
}

#[tokio::test]
async fn a_repeat_says_why_a_directory_that_was_left_cannot_be_made() {
    let bed = Bed::with(-1, 60, false).await;
    let (first, _tasks) = bed.committed().await;
    bed.fills(true);
    let repeated = bed.asked().await;
    let full = Error::Unavailable {
        reason: "the disk is full".to_owned(),
    };
    assert_eq!(repeated, Err(full));
    assert_eq!(bed.kept().await, Some(first), "only its creator undoes it");
}

#[tokio::test]
async fn a_create_that_is_undone_leaves_its_key_free() {
    let bed = Bed::with(60_000, 10_000, false).await;
    bed.fills(true);
    let failed = bed.asked().await;
    assert!(matches!(failed, Err(Error::Unavailable { .. })), "{failed:?}");
    assert_eq!(bed.kept().await, None);
    assert!(bed.store.resolve(&bed.path).await.is_err(), "its row is dropped");
    bed.fills(false);
    let anew = bed.asked().await.unwrap();
    assert!(bed.place().is_dir());
    assert_eq!(bed.kept().await, Some(anew));
}

/// The directory was there before the commit, and then was not, nor could it be made again.
#[tokio::test]
async fn a_directory_that_is_adopted_under_a_key_is_a_task_too() {
    let bed = Bed::with(60_000, 10_000, false).await;
    std::fs::create_dir(bed.place()).unwrap();
    bed.fills(true);
    let failed = bed.asked().await;
    assert!(matches!(failed, Err(Error::Unavailable { .. })), "{failed:?}");
    assert_eq!(bed.kept().await, None);
    bed.fills(false);
    let adopted = bed.asked().await.unwrap();
    assert!(
        bed.dispatcher
            .drop(&WriteContext::new("another", "drop"), &bed.path, DropMode::Plain)
            .await
            .unwrap()
    );
    assert!(bed.place().is_dir(), "it was there before");
    // What was created and then dropped is no reason to do it again.
    assert_eq!(bed.asked().await.unwrap(), adopted);
}

#[tokio::test]
async fn a_create_that_others_drop_before_its_directory_fails_has_been_done() {
    let bed = Bed::with(60_000, 10_000, true).await;
    bed.fills(true);
    let created = bed.asked().await.unwrap();
    assert!(bed.store.resolve(&bed.path).await.is_err(), "it is dropped");
    assert_eq!(bed.asked().await.unwrap(), created);
}

//! Who waits for whom, and that nobody waits for long or leaves anything behind.

use std::future::Future;

use tempfile::TempDir;
use tokio::task::JoinHandle;
use treeline_core::kinds::{CommonChange, Metalake, SwitchableChange};
use treeline_core::{Draft, Entity, Error, Name, NewEntity, PropertyChange, Result};
use treeline_storage::{DropRule, Idempotency, Precondition, Store, StoreOptions};

use super::*;
use crate::{Dispatcher, DropMode};

/// Far more than anything here takes, and far less than [`PATIENT_MS`].
const WITHIN: Duration = Duration::from_secs(20);

/// A wait that no test sees the end of.
const PATIENT_MS: u64 = 600_000;

/// Metalakes `x` and `y`, and everybody as patient as said.
struct Bed {
    dispatcher: Dispatcher,
    _directory: TempDir,
}

impl Bed {
    async fn new(local_lock_ms_max: u64) -> Bed {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("treeline.db");
        let store = Store::open(StoreOptions {
            // A compare-and-set that is lost is a conflict at once.
            occ_retries_max: 0,
            ..StoreOptions::new(format!("sqlite:{}", file.display()))
        });
        let settings = Settings {
            local_locks: true,
            local_lock_ms_max,
            ..Settings::new(directory.path().to_owned())
        };
        let bed = Bed {
            dispatcher: Dispatcher::new(store.await.unwrap(), settings),
            _directory: directory,
        };
        for name in ["x", "y"] {
            bed.create(name).await.unwrap().unwrap();
        }
        bed
    }

    /// Keeps a name from everybody else, as a write does that takes long.
    async fn hold(&self, name: &str) -> Turn<'_> {
        let (holder, path) = (context("hold"), path(name));
        self.dispatcher.turns.take(&holder, "hold", &path, None).await
    }

    fn create(&self, name: &str) -> JoinHandle<Result<Entity<Metalake>>> {
        let (dispatcher, path) = (self.dispatcher.clone(), path(name));
        tokio::spawn(async move {
            dispatcher
                .create(&context("create"), &path, Metalake::default())
                .await
        })
    }

    fn set(&self, name: &str, key: &'static str) -> JoinHandle<Result<Entity<Metalake>>> {
        self.alter(name, key, set(key))
    }

    fn rename(&self, name: &str, to: &str) -> JoinHandle<Result<Entity<Metalake>>> {
        self.alter(
            name,
            "rename",
            CommonChange::Rename(Name::new(to).unwrap()).into(),
        )
    }

    fn alter(
        &self,
        name: &str,
        request: &'static str,
        change: SwitchableChange,
    ) -> JoinHandle<Result<Entity<Metalake>>> {
        let (dispatcher, path) = (self.dispatcher.clone(), path(name));
        tokio::spawn(async move {
            dispatcher
                .alter::<Metalake>(&context(request), &path, vec![change])
                .await
        })
    }

    /// Who holds and who waits for a name.
    fn queue(&self, name: &str) -> (Vec<String>, Vec<String>) {
        let path = path(name);
        let found = self.dispatcher.local_locks().unwrap();
        let names = |claimants: Vec<treeline_locks::Claimant>| -> Vec<String> {
            let names = claimants
                .into_iter()
                .map(|claimant| claimant.who.unwrap().to_string());
            names.collect()
        };
        found
            .names
            .into_iter()
            .find(|report| report.key == path)
            .map(|report| (names(report.holders), names(report.waiters)))
            .unwrap_or_default()
    }

    async fn until_waiting(&self, name: &str, expected: &[&str]) {
        within(async {
            while self.queue(name).1 != expected {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    fn nothing_is_left(&self) {
        assert!(self.dispatcher.local_locks().unwrap().names.is_empty());
    }
}

fn path(name: &str) -> Path {
    Path::metalake(Name::new(name).unwrap())
}

fn context(request: &str) -> WriteContext {
    WriteContext::new("tester", request)
}

fn set(key: &str) -> SwitchableChange {
    let (key, value) = (key.to_owned(), "1".to_owned());
    SwitchableChange::Common(PropertyChange::Set { key, value }.into())
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(WITHIN, work)
        .await
        .expect("it takes as long as nothing here does")
}

async fn answer<T>(request: JoinHandle<T>) -> T {
    within(request).await.unwrap()
}

#[tokio::test]
async fn two_updates_of_one_name_are_served_in_turn() {
    let bed = Bed::new(PATIENT_MS).await;
    let held = bed.hold("x").await;
    let first = bed.set("x", "p");
    bed.until_waiting("x", &["alter, request p"]).await;
    let second = bed.set("x", "q");
    bed.until_waiting("x", &["alter, request p", "alter, request q"])
        .await;
    assert_eq!(bed.queue("x").0, ["hold, request hold"]);
    drop(held);
    let (first, second) = (answer(first).await.unwrap(), answer(second).await.unwrap());
    assert_eq!((first.version.get(), second.version.get()), (2, 3));
    assert!(second.payload.properties.contains_key("p") && second.payload.properties.contains_key("q"));
    bed.nothing_is_left();
}

/// However many names are being written, as many are listed as somebody can read, the busiest first.
#[tokio::test]
async fn a_report_is_bounded_and_begins_with_the_longest_queue() {
    let bed = Bed::new(PATIENT_MS).await;
    let mut held = Vec::new();
    for number in 0..150 {
        held.push(bed.hold(&format!("m{number}")).await);
    }
    held.push(bed.hold("y").await);
    let waits = bed.set("y", "p");
    bed.until_waiting("y", &["alter, request p"]).await;
    let found = bed.dispatcher.local_locks().unwrap();
    assert_eq!((found.name_count, found.names.len()), (151, LISTED_MAX));
    assert_eq!(found.names[0].key, path("y"));
    assert_eq!(found.names[1].key, path("m0"));
    drop(held);
    answer(waits).await.unwrap();
    bed.nothing_is_left();
}

/// With no attempt to spare, only an update of what is there now can succeed.
#[tokio::test]
async fn an_update_that_has_waited_reads_its_row_again() {
    let bed = Bed::new(PATIENT_MS).await;
    let held = bed.hold("x").await;
    let update = bed.set("x", "p");
    bed.until_waiting("x", &["alter, request p"]).await;
    // Another server, which knows nothing of this queue.
    let store = &bed.dispatcher.store;
    let resolved = store.resolve(&path("x")).await.unwrap();
    let elsewhere = context("elsewhere");
    let change = |draft: &mut Draft<Metalake>| draft.apply_all(&[set("q")]);
    store.alter(&elsewhere, resolved, change).await.unwrap();
    drop(held);
    assert_eq!(answer(update).await.unwrap().version.get(), 3);
}

/// The same request under the same key comes twice at once, and pins the version. While the second waits, the first is
/// carried out, and the version is another one.
#[tokio::test]
async fn a_repeat_that_has_waited_is_answered_as_the_first_was() {
    let bed = Bed::new(PATIENT_MS).await;
    let store = &bed.dispatcher.store;
    let resolved = store.resolve(&path("x")).await.unwrap();
    let keyed = WriteContext {
        precondition: Precondition::Tags(vec![resolved.tag()]),
        idempotency: Some(Idempotency {
            key: "k".to_owned(),
            fingerprint: "f".to_owned(),
        }),
        ..context("keyed")
    };
    let held = bed.hold("x").await;
    let (dispatcher, repeated) = (bed.dispatcher.clone(), keyed.clone());
    let repeat = tokio::spawn(async move {
        dispatcher
            .alter::<Metalake>(&repeated, &path("x"), vec![set("p")])
            .await
    });
    bed.until_waiting("x", &["alter, request keyed"]).await;
    let change = |draft: &mut Draft<Metalake>| draft.apply_all(&[set("p")]);
    let first = store.alter(&keyed, resolved, change).await.unwrap();
    drop(held);
    assert_eq!(answer(repeat).await.unwrap().tag(), first.tag());
}

/// The row that an update was asked for is gone: a successor of its name is none of its business.
#[tokio::test]
async fn an_update_that_has_waited_leaves_a_successor_alone() {
    let bed = Bed::new(PATIENT_MS).await;
    let held = bed.hold("x").await;
    let update = bed.set("x", "p");
    bed.until_waiting("x", &["alter, request p"]).await;
    let store = &bed.dispatcher.store;
    let resolved = store.resolve(&path("x")).await.unwrap();
    let everything = DropRule {
        cascade: true,
        require_disabled: false,
        prune: Vec::new(),
    };
    assert!(
        store
            .drop(&context("elsewhere"), resolved, everything)
            .await
            .unwrap()
    );
    let new = NewEntity {
        name: Name::new("x").unwrap(),
        payload: Metalake::default(),
    };
    let successor = store.create(&context("elsewhere"), None, new).await.unwrap();
    drop(held);
    let refused = answer(update).await.unwrap_err();
    assert!(matches!(refused, Error::NotFound { .. }), "{refused}");
    let loaded = bed.dispatcher.load::<Metalake>(&path("x")).await.unwrap();
    assert_eq!(loaded.tag(), successor.tag());
}

#[tokio::test]
async fn different_names_do_not_wait_for_each_other() {
    let bed = Bed::new(PATIENT_MS).await;
    let held = bed.hold("x").await;
    answer(bed.set("y", "p")).await.unwrap();
    answer(bed.create("z")).await.unwrap();
    let (dispatcher, other) = (bed.dispatcher.clone(), path("z"));
    let dropped =
        tokio::spawn(async move { dispatcher.drop(&context("drop"), &other, DropMode::Cascade).await });
    assert!(answer(dropped).await.unwrap());
    drop(held);
    bed.nothing_is_left();
}

/// Under one parent too: a create takes the name that is to be, and not its parent's.
#[tokio::test]
async fn a_create_does_not_wait_for_its_parent_or_a_sibling() {
    use treeline_core::kinds::Catalog;
    use treeline_core::{Kind, Payload};

    let bed = Bed::new(PATIENT_MS).await;
    let child = |name: &str| path("x").child(Kind::Catalog, Name::new(name).unwrap());
    let parent = bed.hold("x").await;
    let sibling = bed
        .dispatcher
        .turns
        .take(&context("hold"), "hold", &child("a"), None)
        .await;
    let (dispatcher, other) = (bed.dispatcher.clone(), child("b"));
    let created = tokio::spawn(async move {
        dispatcher
            .create(&context("create"), &other, Catalog::sample())
            .await
    });
    answer(created).await.unwrap();
    drop((parent, sibling));
    bed.nothing_is_left();
}

#[tokio::test]
async fn a_deadline_that_passes_lets_the_write_go_on() {
    let bed = Bed::new(1).await;
    let held = bed.hold("x").await;
    assert_eq!(answer(bed.set("x", "p")).await.unwrap().version.get(), 2);
    assert_eq!(
        bed.queue("x"),
        (vec!["hold, request hold".to_owned()], Vec::new())
    );
    drop(held);
    bed.nothing_is_left();
}

#[tokio::test]
async fn a_cancelled_request_leaves_nothing() {
    let bed = Bed::new(PATIENT_MS).await;
    let held = bed.hold("x").await;
    let update = bed.set("x", "p");
    bed.until_waiting("x", &["alter, request p"]).await;
    update.abort();
    assert!(update.await.unwrap_err().is_cancelled());
    bed.until_waiting("x", &[]).await;
    drop(held);
    bed.nothing_is_left();
    let loaded = bed.dispatcher.load::<Metalake>(&path("x")).await.unwrap();
    assert_eq!(loaded.version.get(), 1);
}

/// Both take `x` first, whichever way they go: so the second waits without a name in hand.
#[tokio::test]
async fn a_rename_and_its_opposite_do_not_wait_in_a_circle() {
    let bed = Bed::new(PATIENT_MS).await;
    let held = bed.hold("y").await;
    let there = bed.rename("x", "y");
    bed.until_waiting("y", &["alter, request rename"]).await;
    assert_eq!(bed.queue("x").0, ["alter, request rename"]);
    let back = bed.rename("y", "x");
    bed.until_waiting("x", &["alter, request rename"]).await;
    assert_eq!(bed.queue("y").1.len(), 1);
    drop(held);
    for refused in [answer(there).await, answer(back).await] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, Error::AlreadyExists { .. }), "{refused}");
    }
    bed.nothing_is_left();
}

#[tokio::test]
async fn where_they_are_switched_off_nobody_takes_a_turn() {
    let turns = Turns::new(&Settings::new(std::env::temp_dir()));
    let first = turns.take(&context("a"), "alter", &path("x"), None).await;
    let second = turns.take(&context("b"), "alter", &path("x"), None).await;
    assert!(!first.waited() && !second.waited());
    assert!(turns.snapshot().is_none());
}

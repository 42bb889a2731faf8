//! The local store on real directories of their own.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use tempfile::{TempDir, tempdir};

use super::*;

/// A store with one root of its own, and the directory that both are in.
struct Bed {
    store: LocalFiles,
    root: PathBuf,
    outside: PathBuf,
    _holder: TempDir,
}

impl Bed {
    fn new() -> Bed {
        let holder = tempdir().unwrap();
        let path = holder.path().canonicalize().unwrap();
        let [root, outside, data] = ["root", "outside", "data"].map(|name| path.join(name));
        for directory in [&root, &outside, &data] {
            fs::create_dir(directory).unwrap();
        }
        let store = LocalFiles::new(AllowedRoots::new(Some(vec![root.clone()]), &data));
        Bed {
            store,
            root,
            outside,
            _holder: holder,
        }
    }

    fn location(&self, below_root: &str) -> String {
        crate::qualify(self.root.join(below_root).to_str().unwrap()).unwrap()
    }
}

fn is_invalid<T: std::fmt::Debug>(outcome: &Result<T>, expected: &str) -> bool {
    matches!(outcome, Err(Error::Invalid { field, reason }) if field == "storageLocations" && reason.contains(expected))
}

#[tokio::test]
async fn a_directory_is_made_once_with_all_that_is_missing_above_it() {
    let bed = Bed::new();
    let location = bed.location("a/b/c");
    assert_eq!(bed.store.stat(&location).await, Ok(Stat::Absent));
    assert_eq!(bed.store.make_dir(&location).await, Ok(Made::Created));
    assert_eq!(bed.store.make_dir(&location).await, Ok(Made::Existed));
    assert_eq!(bed.store.stat(&location).await, Ok(Stat::Directory));
    assert!(bed.root.join("a/b/c").is_dir());
}

#[tokio::test]
async fn of_many_makers_at_once_exactly_one_is_told_that_it_made_it() {
    let bed = Bed::new();
    let location = bed.location("a/b/c");
    let makers: Vec<_> = (0..32)
        .map(|_| {
            let (store, location) = (bed.store.clone(), location.clone());
            tokio::spawn(async move { store.make_dir(&location).await })
        })
        .collect();
    let mut created = 0;
    for maker in makers {
        match maker.await.unwrap() {
            Ok(Made::Created) => created += 1,
            other => assert_eq!(other, Ok(Made::Existed)),
        }
    }
    assert_eq!(created, 1);
}

#[tokio::test]
async fn a_file_is_in_the_way_of_a_directory_and_stays() {
    let bed = Bed::new();
    fs::write(bed.root.join("file"), "kept").unwrap();
    assert_eq!(bed.store.stat(&bed.location("file")).await, Ok(Stat::File));
    assert!(is_invalid(
        &bed.store.make_dir(&bed.location("file")).await,
        "is a file"
    ));
    assert!(is_invalid(
        &bed.store.make_dir(&bed.location("file/below")).await,
        "below a file"
    ));
    assert_eq!(
        bed.store.remove_tree(&bed.location("file"), None).await,
        Ok(Removed::All)
    );
    assert_eq!(bed.store.remove_empty_dir(&bed.location("file")).await, Ok(false));
    assert_eq!(fs::read_to_string(bed.root.join("file")).unwrap(), "kept");
}

#[tokio::test]
async fn a_tree_is_removed_whole_and_a_second_removal_is_no_error() {
    let bed = Bed::new();
    let location = bed.location("a");
    fs::create_dir_all(bed.root.join("a/b/c")).unwrap();
    fs::write(bed.root.join("a/b/file"), "x").unwrap();
    assert_eq!(bed.store.remove_tree(&location, None).await, Ok(Removed::All));
    assert!(!bed.root.join("a").exists());
    assert_eq!(bed.store.remove_tree(&location, None).await, Ok(Removed::All));
}

#[tokio::test]
async fn removing_a_tree_removes_the_links_in_it_and_never_what_they_lead_to() {
    let bed = Bed::new();
    fs::write(bed.outside.join("kept"), "x").unwrap();
    fs::create_dir(bed.root.join("a")).unwrap();
    symlink(&bed.outside, bed.root.join("a/link")).unwrap();
    symlink(bed.outside.join("kept"), bed.root.join("a/file")).unwrap();
    assert_eq!(
        bed.store.remove_tree(&bed.location("a"), None).await,
        Ok(Removed::All)
    );
    assert!(!bed.root.join("a").exists());
    assert!(bed.outside.join("kept").is_file());
}

#[tokio::test]
async fn a_location_that_is_or_goes_through_a_link_is_refused_by_every_call() {
    let bed = Bed::new();
    fs::create_dir(bed.outside.join("below")).unwrap();
    symlink(&bed.outside, bed.root.join("link")).unwrap();
    for location in [
        bed.location("link"),
        bed.location("link/below"),
        bed.location("link/new"),
    ] {
        assert!(is_invalid(&bed.store.stat(&location).await, "symbolic link"));
        assert!(is_invalid(&bed.store.make_dir(&location).await, "symbolic link"));
        assert!(is_invalid(
            &bed.store.remove_tree(&location, None).await,
            "symbolic link"
        ));
        assert_eq!(bed.store.remove_empty_dir(&location).await, Ok(false));
        assert!(is_invalid(&bed.store.list(&location, 10).await, "symbolic link"));
    }
    assert!(bed.root.join("link").is_symlink());
    assert_eq!(fs::read_dir(&bed.outside).unwrap().count(), 1);
}

/// The roots let a link pass as the last part of a path that is their own (a root that is a link); removing still
/// must not touch it.
#[tokio::test]
async fn a_tree_that_is_a_link_stays_even_where_the_roots_would_let_it_pass() {
    let bed = Bed::new();
    symlink(&bed.outside, bed.root.join("link")).unwrap();
    let soon = Instant::now() + STEP;
    assert_eq!(
        tree::remove("file:/link", &bed.root.join("link"), None, soon),
        Ok(Removed::All)
    );
    assert_eq!(remove_empty_dir("file:/link", &bed.root.join("link")), Ok(false));
    assert!(bed.root.join("link").is_symlink());
}

#[tokio::test]
async fn a_location_outside_the_roots_is_refused_by_every_call() {
    let bed = Bed::new();
    let location = crate::qualify(bed.outside.join("a").to_str().unwrap()).unwrap();
    assert!(is_invalid(&bed.store.stat(&location).await, "not below a root"));
    assert!(is_invalid(
        &bed.store.make_dir(&location).await,
        "not below a root"
    ));
    assert!(is_invalid(
        &bed.store.remove_tree(&location, None).await,
        "not below a root"
    ));
    assert_eq!(bed.store.remove_empty_dir(&location).await, Ok(false));
    assert!(is_invalid(
        &bed.store.list(&location, 10).await,
        "not below a root"
    ));
    assert!(is_invalid(
        &bed.store.stat("s3://bucket/a").await,
        "not on this machine"
    ));
    assert!(!bed.outside.join("a").exists());
}

#[tokio::test]
async fn a_root_is_never_made_or_removed() {
    let bed = Bed::new();
    let root = bed.location("");
    assert!(is_invalid(&bed.store.make_dir(&root).await, "not below a root"));
    assert!(is_invalid(
        &bed.store.remove_tree(&root, None).await,
        "not below a root"
    ));
    assert_eq!(bed.store.remove_empty_dir(&root).await, Ok(false));
    assert!(bed.root.is_dir());
}

#[tokio::test]
async fn only_an_empty_directory_is_removed_as_one() {
    let bed = Bed::new();
    fs::create_dir_all(bed.root.join("a/b")).unwrap();
    assert_eq!(bed.store.remove_empty_dir(&bed.location("a")).await, Ok(false));
    assert_eq!(bed.store.remove_empty_dir(&bed.location("a/b")).await, Ok(true));
    assert_eq!(bed.store.remove_empty_dir(&bed.location("a")).await, Ok(true));
    assert_eq!(bed.store.remove_empty_dir(&bed.location("a")).await, Ok(false));
}

#[tokio::test]
async fn one_level_is_listed_in_the_order_of_names() {
    let bed = Bed::new();
    fs::create_dir_all(bed.root.join("a/sub/below")).unwrap();
    fs::write(bed.root.join("a/b.txt"), "12345").unwrap();
    fs::write(bed.root.join("a/B.txt"), "").unwrap();
    symlink(&bed.outside, bed.root.join("a/link")).unwrap();
    let entries = bed.store.list(&bed.location("a"), 4).await.unwrap();
    let shape: Vec<_> = entries
        .iter()
        .map(|entry| (entry.name.as_str(), entry.is_dir))
        .collect();
    assert_eq!(
        shape,
        [("B.txt", false), ("b.txt", false), ("link", false), ("sub", true)]
    );
    assert_eq!((entries[1].size, entries[3].size), (5, 0));
    assert!(
        entries
            .iter()
            .all(|entry| entry.modified_at_ms > 1_700_000_000_000)
    );
}

#[tokio::test]
async fn a_listing_past_its_bound_or_of_nothing_says_so() {
    let bed = Bed::new();
    fs::create_dir(bed.root.join("a")).unwrap();
    for name in ["one", "two", "three"] {
        fs::write(bed.root.join("a").join(name), "").unwrap();
    }
    let directory = bed.location("a");
    assert_eq!(
        bed.store.list(&directory, 3).await.map(|entries| entries.len()),
        Ok(3)
    );
    assert!(is_invalid(
        &bed.store.list(&directory, 2).await,
        "more than the 2 entries"
    ));
    assert!(is_invalid(
        &bed.store.list(&bed.location("a/four"), 3).await,
        "is not there"
    ));
    let entries = bed.store.list(&bed.location("a/one"), 3).await.unwrap();
    assert_eq!(
        entries
            .iter()
            .map(|entry| entry.name.as_str())
            .collect::<Vec<_>>(),
        ["one"]
    );
}

#[tokio::test]
async fn a_name_that_the_file_system_does_not_take_is_the_clients_error() {
    let bed = Bed::new();
    let location = bed.location(&"x".repeat(300));
    assert!(is_invalid(
        &bed.store.make_dir(&location).await,
        "no name that the file system takes"
    ));
}

/// Makers and removers of one place at once: each call is answered, and nobody's answer is an internal error.
#[tokio::test]
async fn makers_and_removers_of_one_place_do_not_trip_over_each_other() {
    let bed = Bed::new();
    let location = bed.location("a/b/c");
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..200 {
        let (store, location, above) = (bed.store.clone(), location.clone(), bed.location("a"));
        calls.spawn(async move {
            match number % 2 {
                0 => store.make_dir(&location).await.map(|_| ()),
                _ => store.remove_tree(&above, None).await.map(|_| ()),
            }
        });
    }
    while let Some(outcome) = calls.join_next().await {
        match outcome.unwrap() {
            Ok(()) | Err(Error::Unavailable { .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// Calls that hang keep their threads, and no more of them than the bound.
#[tokio::test]
async fn a_call_past_the_bound_is_refused_until_one_that_hangs_has_ended() {
    let bed = Bed::new();
    let location = bed.location("a");
    let (free, hanging) = std::sync::mpsc::channel::<()>();
    let hanging = Arc::new(std::sync::Mutex::new(hanging));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..CALLS_MAX {
        let (store, location, hanging) = (bed.store.clone(), location.clone(), Arc::clone(&hanging));
        calls.spawn(async move {
            let hang = move |_: &AllowedRoots, _: &str, _: &Path| {
                let _ = hanging.lock().unwrap().recv();
                Ok(())
            };
            // Whoever asked goes away; the thread stays.
            let asked = tokio::time::timeout(Duration::from_millis(10), store.run(&location, hang));
            assert!(asked.await.is_err());
        });
    }
    calls.join_all().await;
    let refused = bed.store.stat(&location).await;
    assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
    free.send(()).unwrap();
    assert_eq!(bed.store.stat(&location).await, Ok(Stat::Absent));
    drop(free);
}

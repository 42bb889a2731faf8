//! `VersionedCell` where its source is slow, broken or gone: tables A7 and A8, and what lies between.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio_time as tokio;
use treeline_locks::{Loader, RefreshError, Versioned, VersionedCell};

use crate::cell::{Broken, Source, cell, counts};
use crate::kit::{LONG, Polled, now};

/// Table A7, on a clock that only moves when everybody waits.
#[tokio::test(start_paused = true)]
async fn a_source_that_hangs_costs_the_deadline_and_holds_up_no_reader() {
    let (source, cell) = cell(2);
    let wait = Duration::from_secs(5);
    for gate in [&source.probe_gate, &source.load_gate] {
        gate.close();
        let from = tokio::time::Instant::now();
        let mut writer = Polled::new(cell.get_mut(wait));
        writer.waits();
        assert_eq!(cell.get().version, 1, "a reader does not notice");
        let error = ready(&mut writer).await.err();
        assert!(
            matches!(error, Some(RefreshError::Hung { wait: told }) if told <= wait),
            "{error:?}"
        );
        assert!(
            from.elapsed() <= wait + Duration::from_millis(50),
            "{:?}",
            from.elapsed()
        );
        gate.open();
        source.probe_gate.close();
        let mut next = Polled::new(cell.get_mut(LONG));
        next.waits();
        source.probe_gate.open();
        drop(next);
    }
    assert_eq!(cell.get_mut(LONG).await.unwrap().version, 2, "the permit is free");
}

/// Waits like the task that this is, for something that a timer will wake.
async fn ready<T>(polled: &mut Polled<'_, T>) -> T {
    for _ in 0..100_000 {
        if let Poll::Ready(output) = polled.poll() {
            return output;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("no deadline has passed");
}

/// A short deadline that passes says nothing to the one who waits longer.
#[tokio::test(start_paused = true)]
async fn a_deadline_is_not_shared() {
    let (source, cell) = cell(2);
    source.probe_gate.close();
    let mut hasty = Polled::new(cell.get_refreshed(Duration::from_millis(10)));
    let mut patient = Polled::new(cell.get_refreshed(LONG));
    hasty.waits();
    patient.waits();
    assert!(matches!(ready(&mut hasty).await, Err(RefreshError::Hung { .. })));
    source.probe_gate.open();
    assert_eq!(patient.is_served().unwrap().version, 2);
}

/// Table A8.
#[tokio::test]
async fn a_failure_reaches_the_caller_and_changes_nothing() {
    let (source, cell) = cell(2);
    source.fails.store(true, Ordering::SeqCst);
    let error = cell.get_mut(LONG).await.err();
    assert!(matches!(error, Some(RefreshError::Failed(broken)) if *broken == Broken));
    assert_eq!(cell.get().version, 1);
    source.fails.store(false, Ordering::SeqCst);
    assert_eq!(cell.get_mut(LONG).await.unwrap().version, 2);
}

/// A hundred who meet a broken source ask it twice, not a hundred times in a row.
#[tokio::test]
async fn a_failure_is_shared_by_those_who_waited_for_it() {
    let (source, cell) = cell(2);
    source.probe_gate.close();
    source.fails.store(true, Ordering::SeqCst);
    let mut refreshes: Vec<_> = (0..100).map(|_| Polled::new(cell.get_refreshed(LONG))).collect();
    refreshes.iter_mut().for_each(Polled::waits);
    source.probe_gate.open();
    assert!(
        refreshes
            .iter_mut()
            .all(|refresh| matches!(refresh.is_served(), Err(RefreshError::Failed(_))))
    );
    assert_eq!(counts(&source), (2, 0));
    source.fails.store(false, Ordering::SeqCst);
    assert_eq!(cell.get_refreshed(LONG).await.unwrap().version, 2);
}

/// Table A9: at each point at which a writer can wait.
#[tokio::test]
async fn a_writer_that_is_dropped_anywhere_leaves_the_permit_free() {
    let (source, cell) = cell(2);
    let served = |cell: &VersionedCell<String, Arc<Source>>| now(cell.get_mut(LONG)).is_ok();
    let blocker = now(cell.get_mut(LONG)).unwrap();
    let mut queued = Polled::new(cell.get_mut(LONG));
    queued.waits();
    drop(blocker);
    drop(queued);
    assert!(
        served(&cell),
        "dropped after its turn had come, before it noticed"
    );
    for gate in [&source.probe_gate, &source.load_gate] {
        source.newest.fetch_add(1, Ordering::SeqCst);
        gate.close();
        let mut writer = Polled::new(cell.get_mut(LONG));
        let mut reader = Polled::new(cell.get_refreshed(LONG));
        writer.waits();
        reader.waits();
        drop(writer);
        gate.open();
        assert!(
            matches!(reader.poll(), Poll::Ready(Ok(_))),
            "the flight is free for the next"
        );
        assert!(served(&cell));
    }
}

/// Table A10.
#[tokio::test]
async fn a_gap_in_the_versions_is_no_end() {
    let (_, cell) = cell(4);
    assert_eq!(cell.get_refreshed(LONG).await.unwrap().version, 4);
}

/// Table A11: whoever holds the permit may read, and so may everybody else while a writer waits.
#[tokio::test]
async fn reading_inside_a_write_completes() {
    let (_, cell) = cell(2);
    let writer = cell.get_mut(LONG).await.unwrap();
    let mut queued = Polled::new(cell.get_mut(LONG));
    queued.waits();
    assert_eq!(cell.get().version, 2);
    assert_eq!(cell.get_refreshed(LONG).await.unwrap().version, 2);
    drop(writer);
    assert!(queued.is_served().is_ok());
}

/// One task may wait for several refreshes: the turn inside belongs to no caller.
#[tokio::test]
async fn one_task_may_refresh_twice_at_once() {
    let (_, cell) = cell(2);
    let (one, other) = tokio::join!(cell.get_refreshed(LONG), cell.get_refreshed(LONG));
    assert_eq!((one.unwrap().version, other.unwrap().version), (2, 2));
}

/// Like a connector: closed when the last one lets go of it.
struct Handle {
    closed: Arc<AtomicBool>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
    }
}

struct Catalog(AtomicU64);

impl Loader<Handle> for Catalog {
    type Error = Broken;

    async fn probe(&self) -> Result<u64, Broken> {
        tokio::task::yield_now().await;
        Ok(self.0.load(Ordering::SeqCst))
    }

    async fn load(&self) -> Result<Versioned<Handle>, Broken> {
        let version = self.0.load(Ordering::SeqCst);
        tokio::task::yield_now().await;
        Ok(handle(version))
    }
}

fn handle(version: u64) -> Versioned<Handle> {
    Versioned {
        version,
        value: Handle {
            closed: Arc::default(),
        },
    }
}

/// Table A13: 32 clients use the handle while one replaces it 200 times, each within a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_client_sees_a_closed_handle_while_it_is_replaced() {
    let catalog = Arc::new(Catalog(AtomicU64::new(1)));
    let cell = Arc::new(VersionedCell::new(Arc::clone(&catalog), handle(1)));
    let done = Arc::new(AtomicBool::new(false));
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..32 {
        let (cell, done) = (Arc::clone(&cell), Arc::clone(&done));
        clients.spawn(async move {
            while !done.load(Ordering::SeqCst) {
                let handle = cell.get_refreshed(LONG).await.unwrap();
                tokio::task::yield_now().await;
                assert!(!handle.value.closed.load(Ordering::SeqCst));
            }
        });
    }
    for version in 2..=201 {
        let writer = cell.get_mut(Duration::from_secs(1)).await.unwrap();
        catalog.0.store(version, Ordering::SeqCst);
        // A refresh may have seen the new version first: then the handle is already replaced.
        let _ = writer.commit(handle(version));
        assert!(cell.get().version >= version);
    }
    done.store(true, Ordering::SeqCst);
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
}

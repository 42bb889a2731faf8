//! `VersionedCell`: tables A1 and A4 to A13, with a scripted source where the tables speak of datasets, tables and
//! connector handles.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_time as tokio;
use treeline_locks::{Loader, NotNewer, RefreshError, Versioned, VersionedCell};

use crate::kit::{LONG, Polled, now};

/// The authority, as a script: what it has, how it fails, and where it is made to wait.
struct Source {
    newest: AtomicU64,
    probes: AtomicUsize,
    loads: AtomicUsize,
    probe_gate: Gate,
    load_gate: Gate,
    fails: AtomicBool,
}

/// A door that a probe or a load passes after it has read the authority: closed, its answer comes late.
struct Gate(Semaphore);

impl Gate {
    async fn pass(&self) {
        drop(self.0.acquire().await);
    }

    fn close(&self) {
        self.0.forget_permits(1);
    }

    fn open(&self) {
        self.0.add_permits(1);
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Broken;

impl Source {
    fn at(version: u64) -> Self {
        Self {
            newest: AtomicU64::new(version),
            probes: AtomicUsize::new(0),
            loads: AtomicUsize::new(0),
            probe_gate: Gate(Semaphore::new(1)),
            load_gate: Gate(Semaphore::new(1)),
            fails: AtomicBool::new(false),
        }
    }

    async fn answer(&self, gate: &Gate) -> Result<u64, Broken> {
        let (version, fails) = (
            self.newest.load(Ordering::SeqCst),
            self.fails.load(Ordering::SeqCst),
        );
        gate.pass().await;
        if fails { Err(Broken) } else { Ok(version) }
    }
}

impl Loader<String> for Source {
    type Error = Broken;

    async fn probe(&self) -> Result<u64, Broken> {
        self.probes.fetch_add(1, Ordering::SeqCst);
        self.answer(&self.probe_gate).await
    }

    async fn load(&self) -> Result<Versioned<String>, Broken> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        Ok(value(self.answer(&self.load_gate).await?))
    }
}

fn value(version: u64) -> Versioned<String> {
    Versioned {
        version,
        value: format!("value {version}"),
    }
}

/// A cell at version 1 whose source is at this one.
fn cell(newest: u64) -> (Arc<Source>, VersionedCell<String, Arc<Source>>) {
    let source = Arc::new(Source::at(newest));
    (Arc::clone(&source), VersionedCell::new(source, value(1)))
}

fn counts(source: &Source) -> (usize, usize) {
    (
        source.probes.load(Ordering::SeqCst),
        source.loads.load(Ordering::SeqCst),
    )
}

#[tokio::test]
async fn a_snapshot_needs_no_source_and_stays_what_it_was() {
    let (source, cell) = cell(2);
    let before = cell.get();
    assert_eq!(cell.get_refreshed(LONG).await.unwrap().version, 2);
    assert_eq!((before.version, cell.get().version), (1, 2));
    assert_eq!(counts(&source), (1, 1));
}

/// Table A1 on the cell: the writer that came first is served first although a later one asks while it reloads, and
/// it probes only when its turn has come.
#[tokio::test]
async fn a_writer_probes_after_its_turn_has_come_and_before_later_writers() {
    for _ in 0..1_000 {
        let (source, cell) = cell(1);
        let blocker = now(cell.get_mut(LONG)).unwrap();
        let mut first = Polled::new(cell.get_mut(LONG));
        first.waits();
        assert_eq!(
            counts(&source).0,
            1,
            "only the blocker's: a probe that is made in the queue is stale by its end"
        );
        source.newest.store(2, Ordering::SeqCst);
        let mut later = Polled::new(cell.get_mut(LONG));
        later.waits();
        drop(blocker);
        let first = first.is_served().unwrap();
        assert_eq!(first.version, 2);
        later.still_waits();
        drop(first);
        assert!(later.is_served().is_ok());
        // The gates are tokio's, which give a task only so many turns at a time.
        tokio::task::yield_now().await;
    }
}

/// Table A4. The source checks at each call that the permit is taken.
#[tokio::test]
async fn a_writer_probes_once_and_loads_at_most_once_both_under_the_permit() {
    let (source, cell) = cell(1);
    for (newest, expected) in [(1, (1, 0)), (2, (2, 1)), (2, (3, 1))] {
        source.newest.store(newest, Ordering::SeqCst);
        source.probe_gate.close();
        source.load_gate.close();
        let mut writer = Polled::new(cell.get_mut(LONG));
        let held = || matches!(now(cell.get_mut(Duration::ZERO)), Err(RefreshError::Busy(_)));
        writer.waits();
        assert!(held(), "while it probes");
        source.probe_gate.open();
        let served = writer.poll();
        assert!(held(), "while it loads or when it is served");
        source.load_gate.open();
        let writer = if served.is_ready() { served } else { writer.poll() };
        let Poll::Ready(Ok(writer)) = writer else {
            panic!("it has probed and loaded")
        };
        assert_eq!(writer.version, newest);
        assert_eq!(counts(&source), expected);
    }
}

/// Table A5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_refreshes_of_a_stale_cell_share_one_load() {
    for _ in 0..50 {
        let (source, cell) = cell(2);
        let cell = Arc::new(cell);
        let tasks: Vec<_> = (0..100)
            .map(|_| {
                let cell = Arc::clone(&cell);
                tokio::spawn(async move { cell.get_refreshed(LONG).await.unwrap().version })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), 2);
        }
        let (probes, loads) = counts(&source);
        assert_eq!(loads, 1);
        assert!(
            probes <= 100,
            "those that came one after the other probe one after the other"
        );
    }
}

/// The same with all of them there before the first probe has answered: the first one's probe began before the
/// others asked, so they share a second.
#[tokio::test]
async fn refreshes_that_meet_share_the_next_probe() {
    let (source, cell) = cell(2);
    source.probe_gate.close();
    let mut refreshes: Vec<_> = (0..100).map(|_| Polled::new(cell.get_refreshed(LONG))).collect();
    refreshes.iter_mut().for_each(Polled::waits);
    source.probe_gate.open();
    for refresh in &mut refreshes {
        assert_eq!(refresh.is_served().unwrap().version, 2);
    }
    assert_eq!(counts(&source), (2, 1));
}

/// A probe that has read version 1 and is late must not answer for somebody who asked after version 2 was there.
#[tokio::test]
async fn a_refresh_never_takes_the_answer_of_a_probe_that_began_before_it_asked() {
    let (source, cell) = cell(1);
    source.probe_gate.close();
    let mut early = Polled::new(cell.get_refreshed(LONG));
    early.waits();
    source.newest.store(2, Ordering::SeqCst);
    let mut later = Polled::new(cell.get_refreshed(LONG));
    later.waits();
    source.probe_gate.open();
    assert_eq!(early.is_served().unwrap().version, 1);
    assert_eq!(later.is_served().unwrap().version, 2);
}

/// Table A6 by hand; shuttle runs it over random schedules.
#[tokio::test]
async fn a_late_load_never_replaces_a_newer_commit() {
    let (source, cell) = cell(2);
    let writer = now(cell.get_mut(LONG)).unwrap();
    source.newest.store(3, Ordering::SeqCst);
    source.load_gate.close();
    let mut refresh = Polled::new(cell.get_refreshed(LONG));
    refresh.waits();
    assert_eq!(writer.commit(value(4)).unwrap().version, 4);
    source.load_gate.open();
    assert_eq!(
        refresh.is_served().unwrap().version,
        4,
        "3 was loaded, and refused"
    );
}

#[tokio::test]
async fn a_commit_that_is_not_newer_is_refused_and_says_what_is_held() {
    let (source, cell) = cell(1);
    let writer = now(cell.get_mut(LONG)).unwrap();
    source.newest.store(5, Ordering::SeqCst);
    assert_eq!(now(cell.get_refreshed(LONG)).unwrap().version, 5);
    let NotNewer { held, offered, .. } = writer.commit(value(2)).unwrap_err();
    assert_eq!((held, offered), (5, 2));
    let writer = now(cell.get_mut(LONG)).unwrap();
    let refused = writer.commit(value(5)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "version 5 is not newer than 5, which the cell holds"
    );
    assert_eq!(cell.get().value, "value 5");
}

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

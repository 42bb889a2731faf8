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
pub(crate) struct Source {
    pub(crate) newest: AtomicU64,
    pub(crate) probes: AtomicUsize,
    pub(crate) loads: AtomicUsize,
    pub(crate) probe_gate: Gate,
    pub(crate) load_gate: Gate,
    pub(crate) fails: AtomicBool,
}

/// A door that a probe or a load passes after it has read the authority: closed, its answer comes late.
pub(crate) struct Gate(Semaphore);

impl Gate {
    pub(crate) async fn pass(&self) {
        drop(self.0.acquire().await);
    }

    pub(crate) fn close(&self) {
        self.0.forget_permits(1);
    }

    pub(crate) fn open(&self) {
        self.0.add_permits(1);
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Broken;

impl Source {
    pub(crate) fn at(version: u64) -> Self {
        Self {
            newest: AtomicU64::new(version),
            probes: AtomicUsize::new(0),
            loads: AtomicUsize::new(0),
            probe_gate: Gate(Semaphore::new(1)),
            load_gate: Gate(Semaphore::new(1)),
            fails: AtomicBool::new(false),
        }
    }

    pub(crate) async fn answer(&self, gate: &Gate) -> Result<u64, Broken> {
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

pub(crate) fn value(version: u64) -> Versioned<String> {
    Versioned {
        version,
        value: format!("value {version}"),
    }
}

/// A cell at version 1 whose source is at this one.
pub(crate) fn cell(newest: u64) -> (Arc<Source>, VersionedCell<String, Arc<Source>>) {
    let source = Arc::new(Source::at(newest));
    (Arc::clone(&source), VersionedCell::new(source, value(1)))
}

pub(crate) fn counts(source: &Source) -> (usize, usize) {
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
        // Those that came one after the other probe one after the other.
        let (_, loads) = counts(&source);
        assert_eq!(loads, 1);
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

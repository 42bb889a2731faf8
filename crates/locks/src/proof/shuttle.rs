//! Random schedules of the whole crate, with requests dropped at random polls and deadlines that pass at random.
//! `TREELINE_LOCKS_SCHEDULES=100000` for the long run.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use shuttle::future::{block_on, spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};

use crate::{Guard, Loader, Mode, NameLocks, TimedOut, Versioned, VersionedCell};

/// `Duration::MAX` never passes here, anything shorter may.
const NEVER: Duration = Duration::MAX;
const MAYBE: Duration = Duration::from_secs(1);

fn schedules() -> usize {
    std::env::var("TREELINE_LOCKS_SCHEDULES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(2_000)
}

/// Random schedules, and then schedules of the kind that finds a bug which needs three preemptions.
fn explore(run: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(run, schedules());
    shuttle::check_pct(run, schedules(), 3);
}

/// Polls a few times and drops the future, wherever it is by then. The output, if it came to one.
async fn at_most<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    for _ in 0..polls {
        let polled = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
        if let Poll::Ready(output) = polled {
            return Some(output);
        }
        yield_now().await;
    }
    None
}

#[derive(Default)]
struct World {
    locks: NameLocks<usize>,
    readers: [AtomicUsize; 2],
    writers: [AtomicUsize; 2],
}

impl World {
    async fn ask(
        &self,
        key: usize,
        mode: Mode,
        wait: Duration,
    ) -> Result<Guard<'_, usize>, Box<TimedOut<usize>>> {
        match mode {
            Mode::Read => self.locks.read(&key, wait).await,
            Mode::Write => self.locks.write(&key, wait).await,
        }
    }

    /// Holds over a yield, and checks at both ends that nobody is there who should not be.
    async fn inside(&self, key: usize, mode: Mode) {
        let mine = if mode == Mode::Read {
            &self.readers[key]
        } else {
            &self.writers[key]
        };
        mine.fetch_add(1, Ordering::SeqCst);
        for _ in 0..2 {
            let (readers, writers) = (
                self.readers[key].load(Ordering::SeqCst),
                self.writers[key].load(Ordering::SeqCst),
            );
            assert!(
                writers == 0 || (writers == 1 && readers == 0),
                "{readers} readers and {writers} writers"
            );
            yield_now().await;
        }
        mine.fetch_sub(1, Ordering::SeqCst);
    }

    /// One request of a random kind.
    async fn once(&self) {
        let (key, write, kind) = (
            thread_rng().gen_range(0..2),
            thread_rng().gen_bool(0.4),
            thread_rng().gen_range(0..4),
        );
        let mode = if write { Mode::Write } else { Mode::Read };
        let guard = match kind {
            0 => at_most(thread_rng().gen_range(0..4), self.ask(key, mode, NEVER))
                .await
                .and_then(Result::ok),
            1 => self.ask(key, mode, MAYBE).await.ok(),
            2 => self.ask(key, mode, Duration::ZERO).await.ok(),
            _ => self.ask(key, mode, NEVER).await.ok(),
        };
        if guard.is_some() {
            self.inside(key, mode).await;
        }
    }
}

#[test]
fn requests_that_come_and_go_exclude_each_other_and_leave_nothing() {
    explore(|| {
        block_on(async {
            let world = Arc::new(World::default());
            let tasks: Vec<_> = (0..4)
                .map(|_| {
                    let world = Arc::clone(&world);
                    spawn(async move {
                        for _ in 0..3 {
                            world.once().await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            assert!(world.locks.is_empty(), "an entry is left");
        });
    });
}

#[test]
fn random_plans_of_eight_tasks_do_not_deadlock() {
    explore(|| {
        block_on(async {
            let locks = Arc::new(NameLocks::<u8>::new());
            let tasks: Vec<_> = (0..8)
                .map(|_| {
                    let locks = Arc::clone(&locks);
                    spawn(async move {
                        let mut random = thread_rng();
                        let keys = random.gen_range(1..4);
                        let plan: Vec<_> = (0..keys)
                            .map(|_| {
                                (
                                    random.gen_range(0..4),
                                    if random.gen_bool(0.5) {
                                        Mode::Write
                                    } else {
                                        Mode::Read
                                    },
                                )
                            })
                            .collect();
                        let guards = locks.many(plan, NEVER).await;
                        yield_now().await;
                        drop(guards);
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            assert!(locks.is_empty());
        });
    });
}

/// An authority whose version rises while others probe and load it, each in its own time.
struct Source(AtomicU64);

impl Loader<()> for Source {
    type Error = ();

    async fn probe(&self) -> Result<u64, ()> {
        yield_now().await;
        let version = self.0.load(Ordering::SeqCst);
        yield_now().await;
        if thread_rng().gen_bool(0.1) {
            Err(())
        } else {
            Ok(version)
        }
    }

    async fn load(&self) -> Result<Versioned<()>, ()> {
        let version = self.0.load(Ordering::SeqCst);
        // Late answers are what this is about.
        pause().await;
        if thread_rng().gen_bool(0.1) {
            Err(())
        } else {
            Ok(Versioned { version, value: () })
        }
    }
}

/// Table A6 and A9 for the cell: versions only rise, a refresh is never older than its question, a writer is alone,
/// and whoever is dropped on the way holds up nobody.
#[test]
fn a_cell_never_goes_back_whoever_comes_and_goes() {
    explore(|| {
        block_on(async {
            let source = Arc::new(Source(AtomicU64::new(1)));
            let cell = Arc::new(VersionedCell::new(
                Arc::clone(&source),
                Versioned {
                    version: 1,
                    value: (),
                },
            ));
            let writers = Arc::new(AtomicUsize::new(0));
            let mut tasks: Vec<_> = (0..2)
                .map(|_| {
                    let (source, cell, writers) =
                        (Arc::clone(&source), Arc::clone(&cell), Arc::clone(&writers));
                    spawn(async move {
                        for _ in 0..2 {
                            write(&source, &cell, &writers).await;
                        }
                    })
                })
                .collect();
            tasks.extend((0..3).map(|_| {
                let (source, cell) = (Arc::clone(&source), Arc::clone(&cell));
                spawn(async move {
                    for _ in 0..2 {
                        refresh(&source, &cell).await;
                    }
                })
            }));
            let watched = Arc::clone(&cell);
            tasks.push(spawn(async move {
                let mut seen = 0;
                for _ in 0..40 {
                    let version = watched.get().version;
                    assert!(version >= seen, "the cell went back");
                    seen = version;
                    yield_now().await;
                }
            }));
            // Others change the authority too.
            let world = Arc::clone(&source);
            tasks.push(spawn(async move {
                for _ in 0..8 {
                    world.0.fetch_add(1, Ordering::SeqCst);
                    pause().await;
                }
            }));
            for task in tasks {
                task.await.unwrap();
            }
        });
    });
}

/// Lets the others run, for a random while.
async fn pause() {
    for _ in 0..thread_rng().gen_range(0..10) {
        yield_now().await;
    }
}

async fn write(source: &Source, cell: &VersionedCell<(), Arc<Source>>, writers: &AtomicUsize) {
    let asked = source.0.load(Ordering::SeqCst);
    let polls = if thread_rng().gen_bool(0.2) {
        thread_rng().gen_range(0..8)
    } else {
        usize::MAX
    };
    let Some(Ok(writer)) = at_most(polls, cell.get_mut(NEVER)).await else {
        return;
    };
    assert_eq!(writers.fetch_add(1, Ordering::SeqCst), 0, "two writers");
    assert!(writer.version >= asked, "it has probed under the permit");
    let base = writer.version;
    pause().await;
    let version = source.0.fetch_add(1, Ordering::SeqCst) + 1;
    writers.fetch_sub(1, Ordering::SeqCst);
    // Refused when a refresh has seen the new version already, and then the cell holds it.
    let _ = writer.commit(Versioned { version, value: () });
    assert!(version > base && cell.get().version >= version);
}

async fn refresh(source: &Source, cell: &VersionedCell<(), Arc<Source>>) {
    let (asked, held) = (source.0.load(Ordering::SeqCst), cell.get().version);
    let polls = if thread_rng().gen_bool(0.2) {
        thread_rng().gen_range(0..8)
    } else {
        usize::MAX
    };
    let wait = if thread_rng().gen_bool(0.3) { MAYBE } else { NEVER };
    if let Some(Ok(seen)) = at_most(polls, cell.get_refreshed(wait)).await {
        assert!(seen.version >= asked, "a refresh is not older than its question");
    }
    assert!(cell.get().version >= held, "the cell went back");
}

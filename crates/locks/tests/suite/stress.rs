//! Table C10: a storm of cancellations on one hot key. `TREELINE_LOCKS_STORM_SECONDS=120` for the long run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio_time as tokio;
use treeline_locks::{Mode, NameLocks};

const TASKS: usize = 64;
/// No request that stays in the queue waits longer than this.
const WAIT_MAX: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Storm {
    locks: NameLocks<&'static str>,
    readers: AtomicUsize,
    writers: AtomicUsize,
    served: AtomicU64,
    cancelled: AtomicU64,
}

impl Storm {
    /// Asks, holds for a moment, and checks that it holds as it asked.
    async fn hold(&self, mode: Mode) {
        let guard = match mode {
            Mode::Read => self.locks.read(&"hot", WAIT_MAX).await,
            Mode::Write => self.locks.write(&"hot", WAIT_MAX).await,
        };
        let guard = guard.unwrap();
        let (mine, readers_max) = match mode {
            Mode::Read => (&self.readers, TASKS),
            Mode::Write => (&self.writers, 0),
        };
        // A future may be dropped while it holds the key, so its mark goes by a drop too, before the guard does.
        let mark = Mark::set(mine);
        let (readers, writers) = (
            self.readers.load(Ordering::SeqCst),
            self.writers.load(Ordering::SeqCst),
        );
        assert!(
            readers <= readers_max && writers <= 1 - usize::from(mode == Mode::Read),
            "exclusion"
        );
        tokio::task::yield_now().await;
        drop(mark);
        drop(guard);
        self.served.fetch_add(1, Ordering::Relaxed);
    }
}

struct Mark<'a>(&'a AtomicUsize);

impl<'a> Mark<'a> {
    fn set(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Polls a future a few times and drops it, wherever it has got to by then.
async fn abandon(future: impl Future<Output = ()>, polls: usize) -> bool {
    let mut future = std::pin::pin!(future);
    for _ in 0..polls {
        let done =
            std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx).is_ready())).await;
        if done {
            return false;
        }
        tokio::task::yield_now().await;
    }
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_cancellations_breaks_no_exclusion_and_starves_nobody() {
    let seconds: Option<u64> = std::env::var("TREELINE_LOCKS_STORM_SECONDS")
        .ok()
        .and_then(|seconds| seconds.parse().ok());
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let storm = Arc::new(Storm::default());
    let mut tasks = tokio::task::JoinSet::new();
    for seed in 0..TASKS {
        let storm = Arc::clone(&storm);
        tasks.spawn(async move {
            let mut random = fastrand::Rng::with_seed(u64::try_from(seed).unwrap());
            let mut round = 0;
            while until.map_or(round < 500, |until| Instant::now() < until) {
                round += 1;
                let mode = if random.u8(..4) == 0 {
                    Mode::Write
                } else {
                    Mode::Read
                };
                if random.u8(..10) >= 6 {
                    storm.hold(mode).await;
                } else if abandon(storm.hold(mode), random.usize(1..6)).await {
                    storm.cancelled.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    let (served, cancelled) = (
        storm.served.load(Ordering::Relaxed),
        storm.cancelled.load(Ordering::Relaxed),
    );
    println!("{served} served, {cancelled} dropped on the way");
    assert!(cancelled > 0);
    assert!(storm.locks.is_empty());
}

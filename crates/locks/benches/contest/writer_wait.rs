//! How long a writer waits while eight readers hold the key for 200 µs each, again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio_time as tokio;

use crate::contenders::Contender;
use crate::scenario::{key, runtime};

const READERS: usize = 8;
const HOLD: Duration = Duration::from_micros(200);
const WRITES: usize = 4_000;

pub(crate) struct Waits {
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) p999: Duration,
    pub(crate) max: Duration,
}

pub(crate) fn measure<C: Contender>() -> Waits {
    let runtime = runtime();
    let locks = Arc::new(C::default());
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let (locks, done) = (Arc::clone(&locks), Arc::clone(&done));
            runtime.spawn(async move {
                let key = key(0);
                while !done.load(Ordering::Relaxed) {
                    let guard = locks.read(&key).await;
                    let from = Instant::now();
                    while from.elapsed() < HOLD {
                        tokio::task::yield_now().await;
                    }
                    drop(guard);
                }
            })
        })
        .collect();
    let writer = runtime.spawn(async move {
        let key = key(0);
        let mut waits = Vec::with_capacity(WRITES);
        for _ in 0..WRITES {
            let from = Instant::now();
            drop(locks.write(&key).await);
            waits.push(from.elapsed());
            tokio::task::yield_now().await;
        }
        done.store(true, Ordering::Relaxed);
        waits
    });
    let mut waits = runtime.block_on(async {
        let waits = writer.await.unwrap();
        for reader in readers {
            reader.await.unwrap();
        }
        waits
    });
    waits.sort_unstable();
    let at = |share: usize| waits[WRITES * share / 1_000];
    Waits {
        p50: at(500),
        p99: at(990),
        p999: at(999),
        max: waits[WRITES - 1],
    }
}

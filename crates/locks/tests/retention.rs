//! Table C9, in a process of its own because it measures memory: a million names, each locked once, each with a
//! waiter that goes at a random moment. Nothing may be left.

#![cfg(not(feature = "disabled"))]
#![expect(
    clippy::unwrap_used,
    reason = "a test that goes wrong should stop where it does"
)]

use std::future::Future as _;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio_time as tokio;
use treeline_locks::NameLocks;

const NAMES: usize = 1_000_000;
const TASKS: usize = 8;
const GROWTH_KIB_MAX: u64 = 8 * 1024;
const LONG: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_names_with_cancelled_waiters_leave_nothing() {
    let locks = Arc::new(NameLocks::new());
    // The allocator and the runtime take their share before the measurement.
    churn(&locks, 20_000).await;
    let base = resident_kib();
    churn(&locks, NAMES).await;
    let grown = resident_kib().saturating_sub(base);
    println!("grown by {grown} KiB");
    assert!(locks.is_empty());
    assert!(grown < GROWTH_KIB_MAX, "grown by {grown} KiB");
}

async fn churn(locks: &Arc<NameLocks<String>>, names: usize) {
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..TASKS {
        let locks = Arc::clone(locks);
        tasks.spawn(async move {
            let mut random = fastrand::Rng::with_seed(u64::try_from(task).unwrap());
            for number in (task..names).step_by(TASKS) {
                use_once(
                    &locks,
                    &format!("metalake.catalog.schema.{number}"),
                    random.u8(..4),
                )
                .await;
                // The runtime keeps the wakers of a task's waiters until the task comes back to it.
                if number % 1_000 < TASKS {
                    assert!(locks.len() <= TASKS + 1, "only what is in flight");
                    tokio::task::yield_now().await;
                }
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
}

/// A holder, and a waiter that goes before its hand-off, after it, or when it has had the key.
async fn use_once(locks: &NameLocks<String>, name: &String, moment: u8) {
    let holder = locks.write(name, LONG).await.unwrap();
    // The waiter is a task of its own as far as the crate can tell: a no-op waker belongs to none.
    let mut cx = Context::from_waker(Waker::noop());
    let mut waiter = pin!(locks.write(name, LONG));
    assert!(waiter.as_mut().poll(&mut cx).is_pending());
    match moment {
        0 => {}
        1 => assert!(waiter.as_mut().poll(&mut cx).is_pending(), "it looks twice"),
        2 => drop(holder),
        _ => {
            drop(holder);
            assert!(waiter.as_mut().poll(&mut cx).is_ready());
        }
    }
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

//! Bad use is clear: a typed answer or a documented panic, never a leak or a stall.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio_time as tokio;
use treeline_locks::{Mode, NameLocks};

use crate::kit::{LONG, Polled, now};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_may_be_dropped_on_another_thread() {
    let locks: &'static NameLocks<u32> = Box::leak(Box::new(NameLocks::new()));
    let guard = locks.write(&1, LONG).await.unwrap();
    let waiter = tokio::spawn(async { locks.write(&1, LONG).await.map(drop) });
    std::thread::spawn(move || drop(guard)).join().unwrap();
    waiter.await.unwrap().unwrap();
    assert!(locks.is_empty());
}

#[tokio::test]
async fn a_task_that_is_aborted_while_it_waits_leaves_nothing() {
    let locks: &'static NameLocks<u32> = Box::leak(Box::new(NameLocks::new()));
    let guard = locks.write(&1, LONG).await;
    let waiter = tokio::spawn(async { locks.write(&1, LONG).await.map(drop) });
    while locks.snapshot()[0].waiter_count == 0 {
        tokio::task::yield_now().await;
    }
    waiter.abort();
    assert!(waiter.await.unwrap_err().is_cancelled());
    assert_eq!(locks.snapshot()[0].waiter_count, 0);
    drop(guard);
    assert!(locks.is_empty());
}

#[test]
fn a_runtime_that_is_shut_down_with_waiters_leaves_nothing() {
    let locks: &'static NameLocks<u32> = Box::leak(Box::new(NameLocks::new()));
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let guard = runtime.block_on(locks.write(&1, LONG)).unwrap();
    for _ in 0..100 {
        runtime.spawn(async { locks.write(&1, LONG).await.map(drop) });
    }
    while locks.snapshot()[0].waiter_count < 100 {
        std::thread::yield_now();
    }
    runtime.shutdown_timeout(LONG);
    assert_eq!(locks.snapshot()[0].waiter_count, 0);
    drop(guard);
    assert!(locks.is_empty());
}

#[tokio::test]
async fn a_panic_under_a_guard_releases_the_key() {
    let locks: &'static NameLocks<u32> = Box::leak(Box::new(NameLocks::new()));
    let task = tokio::spawn(async {
        let _guard = locks.write(&1, LONG).await;
        panic!("under the guard");
    });
    assert!(task.await.unwrap_err().is_panic());
    assert!(locks.is_empty());
    assert!(locks.write(&1, Duration::ZERO).await.is_ok());
}

#[tokio::test]
async fn a_deadline_of_zero_takes_what_is_free_and_never_queues() {
    let locks = NameLocks::new();
    let reader = locks.read(&1, Duration::ZERO).await;
    assert!(now(locks.read(&1, Duration::ZERO)).is_ok());
    assert!(now(locks.write(&1, Duration::ZERO)).is_err());
    let mut writer = Polled::new(locks.write(&1, LONG));
    writer.waits();
    assert!(
        now(locks.read(&1, Duration::ZERO)).is_err(),
        "it would pass the writer"
    );
    assert_eq!(locks.snapshot()[0].waiter_count, 1);
    drop(reader);
    drop(writer.is_served());
    assert!(locks.is_empty());
}

/// In a runtime of one thread, where every one of them is queued before the first is served.
#[tokio::test]
async fn a_hundred_thousand_waiters_on_one_key_are_served_in_order_or_leave() {
    const WAITERS: u32 = 100_000;
    let locks: &'static NameLocks<u32> = Box::leak(Box::new(NameLocks::new()));
    let served = Arc::new(std::sync::Mutex::new(Vec::new()));
    let guard = locks.write(&1, LONG).await;
    let mut tasks = tokio::task::JoinSet::new();
    let mut aborted = Vec::new();
    for number in 0..WAITERS {
        let served = Arc::clone(&served);
        let task = tasks.spawn(async move {
            let guard = locks.write(&1, LONG).await.unwrap();
            served.lock().unwrap().push(number);
            drop(guard);
        });
        if number % 2 == 0 {
            aborted.push(task);
        }
    }
    while locks.snapshot()[0].waiter_count < usize::try_from(WAITERS).unwrap() {
        tokio::task::yield_now().await;
    }
    aborted.iter().rev().for_each(tokio::task::AbortHandle::abort);
    drop(guard);
    while tasks.join_next().await.is_some() {}
    let served = served.lock().unwrap();
    assert_eq!(served.len(), usize::try_from(WAITERS / 2).unwrap());
    assert!(served.is_sorted());
    assert!(locks.is_empty());
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Colliding(u32);

impl Hash for Colliding {
    fn hash<H: Hasher>(&self, state: &mut H) {
        0.hash(state);
    }
}

#[tokio::test]
async fn keys_whose_hashes_collide_are_different_keys() {
    let locks = NameLocks::new();
    let one = locks.write(&Colliding(1), LONG).await;
    let two = locks.write(&Colliding(2), Duration::ZERO).await;
    assert!(two.is_ok());
    let mut waiter = Polled::new(locks.write(&Colliding(1), LONG));
    waiter.waits();
    drop(two);
    waiter.still_waits();
    drop(one);
    drop(waiter.is_served());
    assert!(locks.is_empty());
    let many = locks
        .many((0..200).map(|key| (Colliding(key), Mode::Write)), LONG)
        .await
        .unwrap();
    assert_eq!(locks.len(), 200);
    drop(many);
    assert!(locks.is_empty());
}

#[cfg(debug_assertions)]
mod in_a_debug_build {
    use super::{AssertUnwindSafe, Builder, Duration, LONG, NameLocks, catch_unwind};
    use tokio_time as tokio;
    use treeline_locks::Mode::{Read, Write};

    #[test]
    fn asking_for_a_key_twice_panics_and_names_both_places() {
        for (first, second) in [(Read, Read), (Read, Write), (Write, Read), (Write, Write)] {
            let locks = NameLocks::new();
            let runtime = Builder::new_current_thread().enable_time().build().unwrap();
            let twice = async {
                // One asks for several keys, so that the mode is a value.
                let held = locks.many([(1, first)], LONG).await;
                drop((locks.many([(1, second)], Duration::from_secs(1)).await, held));
            };
            let panic = catch_unwind(AssertUnwindSafe(|| runtime.block_on(twice))).unwrap_err();
            let text = panic.downcast::<String>().unwrap();
            assert!(
                text.starts_with(&format!("the {second:?} lock asked for at ")),
                "{text}"
            );
            assert!(text.contains(&format!("somebody ({first:?} at ")), "{text}");
            assert_eq!(text.matches(file!()).count(), 2, "{text}");
            assert!(locks.is_empty(), "the panic releases what was held");
        }
    }

    /// A task may ask for a key that another task holds, and for one that it held before.
    #[tokio::test]
    async fn another_task_and_another_time_are_no_re_entrancy() {
        let locks: &'static NameLocks<u32> = Box::leak(Box::new(NameLocks::new()));
        let guard = locks.write(&1, LONG).await;
        let other = tokio::spawn(async { locks.write(&1, Duration::ZERO).await.is_err() });
        assert!(other.await.unwrap());
        drop(guard);
        assert!(locks.write(&1, LONG).await.is_ok());
    }
}

/// Without a runtime there is no timer, so a wait cannot have a deadline. A key that is free needs none.
#[test]
fn a_wait_outside_a_runtime_panics_and_leaves_nothing() {
    let locks = NameLocks::new();
    let guard = now(locks.write(&1, LONG));
    let waiter = catch_unwind(AssertUnwindSafe(|| {
        Polled::new(locks.write(&1, LONG)).poll().is_ready()
    }));
    assert!(waiter.is_err());
    drop(guard);
    assert!(locks.is_empty());
}

//! First come, first served: tables A1 to A3 of the acceptance tests.

use std::future::Future;

use tokio_time as tokio;
use treeline_locks::{Locked, NameLocks};

use crate::kit::{LONG, Polled, now};

const RUNS: usize = 1_000;

/// A blocker holds the key, a writer queues, and after it a reader who keeps what it gets. The writer must be served
/// while the reader still waits. Whether it is depends on nothing but the writer's first request.
fn writer_is_served_first<'a, W>(
    locks: &'a NameLocks<u32>,
    writer: impl FnOnce(&'a NameLocks<u32>) -> W,
) -> bool
where
    W: Future<Output = Locked<'a, u32>> + 'a,
{
    let blocker = now(locks.write(&1, LONG));
    let mut writer = Polled::new(writer(locks));
    let mut reader = Polled::new(locks.read(&1, LONG));
    writer.waits();
    reader.waits();
    drop(blocker);
    let early = reader.poll();
    let served = writer.poll();
    let first = served.is_ready() && early.is_pending();
    drop(served);
    assert!(
        early.is_ready() || reader.poll().is_ready(),
        "the reader is served after the writer"
    );
    first
}

#[tokio::test]
async fn a_writer_is_served_before_a_reader_that_came_later() {
    let locks = NameLocks::new();
    for _ in 0..RUNS {
        assert!(writer_is_served_first(&locks, |locks| locks.write(&1, LONG)));
    }
    assert!(locks.is_empty());
}

/// The defect that the schedule is there for: a writer that asks as a reader first (to reload), and as a writer after
/// that. If the schedule passed it too, it would prove nothing.
#[tokio::test]
async fn the_same_schedule_catches_a_writer_that_asks_as_a_reader_first() {
    let locks = NameLocks::new();
    let read_then_write = |locks: &'static NameLocks<u32>| async move {
        drop(locks.read(&1, LONG).await?);
        locks.write(&1, LONG).await
    };
    let locks: &'static NameLocks<u32> = Box::leak(Box::new(locks));
    let caught = (0..RUNS)
        .filter(|_| !writer_is_served_first(locks, read_then_write))
        .count();
    assert_eq!(caught, RUNS);
}

/// The same between tasks of a runtime, as a server would meet it.
#[tokio::test]
async fn a_writer_task_is_served_while_a_later_reader_task_still_waits() {
    let locks: &'static NameLocks<u32> = Box::leak(Box::new(NameLocks::new()));
    let blocker = locks.write(&1, LONG).await;
    let writer = tokio::spawn(async { locks.write(&1, LONG).await.map(drop) });
    tokio::task::yield_now().await;
    let (release, told) = tokio::sync::oneshot::channel::<()>();
    let reader = tokio::spawn(async {
        let guard = locks.read(&1, LONG).await;
        told.await.unwrap();
        guard.map(drop)
    });
    tokio::task::yield_now().await;
    drop(blocker);
    let served = tokio::time::timeout(LONG, writer).await.unwrap().unwrap();
    assert!(served.is_ok(), "the writer must not need the reader's release");
    release.send(()).unwrap();
    reader.await.unwrap().unwrap();
}

#[tokio::test]
async fn none_of_64_later_readers_passes_a_writer() {
    let locks = NameLocks::new();
    for _ in 0..RUNS {
        let first = now(locks.read(&1, LONG));
        let mut writer = Polled::new(locks.write(&1, LONG));
        writer.waits();
        let mut readers: Vec<_> = (0..64).map(|_| Polled::new(locks.read(&1, LONG))).collect();
        readers.iter_mut().for_each(Polled::waits);
        drop(first);
        let written = writer.is_served();
        readers.iter_mut().for_each(Polled::still_waits);
        drop(written);
        let served: Vec<_> = readers.iter_mut().map(Polled::is_served).collect();
        assert_eq!(served.len(), 64, "they all share it");
    }
    assert!(locks.is_empty());
}

#[tokio::test]
async fn the_order_is_w1_r1_w2_r2_and_r3_w3() {
    let locks = NameLocks::new();
    let blocker = now(locks.write(&1, LONG));
    let [mut w1, mut w2, mut w3] = [(); 3].map(|()| Polled::new(locks.write(&1, LONG)));
    let [mut r1, mut r2, mut r3] = [(); 3].map(|()| Polled::new(locks.read(&1, LONG)));
    for waiter in [&mut w1, &mut r1, &mut w2, &mut r2, &mut r3, &mut w3] {
        waiter.waits();
    }
    let mut held: Vec<Locked<'_, u32>> = Vec::new();
    drop(blocker);
    held.push(w1.is_served());
    r1.still_waits();
    held.clear();
    held.push(r1.is_served());
    w2.still_waits();
    held.clear();
    held.push(w2.is_served());
    r2.still_waits();
    r3.still_waits();
    held.clear();
    held.push(r2.is_served());
    held.push(r3.is_served());
    w3.still_waits();
    held.pop();
    w3.still_waits();
    held.clear();
    held.push(w3.is_served());
    assert!(held.iter().all(Result::is_ok));
    drop(held);
    assert!(locks.is_empty());
}

#[tokio::test]
async fn readers_share_and_another_key_is_free() {
    let locks = NameLocks::new();
    let guards = [(); 3].map(|()| now(locks.read(&1, LONG)));
    assert!(now(locks.write(&2, LONG)).is_ok());
    assert!(guards.iter().all(Result::is_ok));
    assert_eq!(locks.len(), 1, "key 2 is forgotten already");
}

/// Names hash to shards, but no two of them share a lock: a parent never waits for its child.
#[tokio::test]
async fn ten_thousand_parents_and_children_never_block_each_other() {
    let locks = NameLocks::new();
    for number in 0..10_000 {
        let parent = locks.write(&format!("m.c.s{number}"), LONG).await.unwrap();
        assert!(now(locks.write(&format!("m.c.s{number}.f"), LONG)).is_ok());
        drop(parent);
    }
}

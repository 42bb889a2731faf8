//! A request that is dropped, at whatever moment, leaves nothing behind and holds up nobody: table A9.

use std::future::Future as _;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio_time as tokio;
use treeline_locks::NameLocks;

use crate::kit::{LONG, Polled, now};

#[tokio::test]
async fn a_future_that_was_never_polled_never_asked() {
    let locks = NameLocks::new();
    drop(locks.write(&1, LONG));
    assert!(locks.is_empty());
}

#[tokio::test]
async fn a_waiter_that_is_dropped_in_the_queue_leaves_it() {
    let locks = NameLocks::new();
    let holder = locks.write(&1, LONG).await;
    let mut gone = Polled::new(locks.write(&1, LONG));
    let mut next = Polled::new(locks.write(&1, LONG));
    gone.waits();
    next.waits();
    drop(gone);
    assert_eq!(locks.snapshot()[0].waiter_count, 1);
    drop(holder);
    drop(next.is_served());
    assert!(locks.is_empty());
}

/// The holder releases, the waiter is served and woken, and is dropped before it looks. This is where a lock whose
/// clean-up begins with the guard leaks the entry for ever.
#[tokio::test]
async fn a_waiter_that_is_dropped_after_its_hand_off_passes_it_on() {
    let locks = NameLocks::new();
    for _ in 0..1_000 {
        let holder = now(locks.write(&1, LONG));
        let mut gone = Polled::new(locks.write(&1, LONG));
        let mut next = Polled::new(locks.read(&1, LONG));
        gone.waits();
        next.waits();
        drop(holder);
        assert!(gone.is_woken());
        drop(gone);
        drop(next.is_served());
        assert!(locks.is_empty());
    }
}

#[tokio::test]
async fn readers_behind_a_cancelled_writer_join_the_readers_before_it() {
    let locks = NameLocks::new();
    let first = locks.read(&1, LONG).await;
    let mut writer = Polled::new(locks.write(&1, LONG));
    let mut readers: Vec<_> = (0..8).map(|_| Polled::new(locks.read(&1, LONG))).collect();
    writer.waits();
    readers.iter_mut().for_each(Polled::waits);
    drop(writer);
    let served: Vec<_> = readers.iter_mut().map(Polled::is_served).collect();
    drop((first, served));
    assert!(locks.is_empty());
}

#[tokio::test]
async fn a_deadline_that_passes_is_a_cancellation_too() {
    let locks = NameLocks::new();
    let reader = locks.read(&1, LONG).await;
    let writer = locks.write(&1, Duration::from_millis(1));
    let mut behind = Polled::new(locks.read(&1, LONG));
    let mut writer = Polled::new(writer);
    writer.waits();
    behind.waits();
    let error = writer_times_out(&mut writer).await;
    assert_eq!(error.report.holder_count, 1);
    drop(writer);
    drop((reader, behind.is_served()));
    assert!(locks.is_empty());
}

/// A waiter sets its timer when its thread has nothing else to do, or, as here, after so many polls of others.
#[tokio::test]
async fn a_deadline_passes_on_a_thread_that_is_never_idle() {
    let locks: &'static NameLocks<u32> = Box::leak(Box::new(NameLocks::new()));
    let holder = locks.write(&1, LONG).await;
    let waiter = tokio::spawn(async { locks.write(&1, Duration::from_millis(1)).await.is_err() });
    let began = std::time::Instant::now();
    let busy = std::future::poll_fn(|cx| {
        if waiter.is_finished() {
            return Poll::Ready(());
        }
        assert!(began.elapsed() < LONG, "the deadline does not pass");
        cx.waker().wake_by_ref();
        Poll::Pending
    });
    busy.await;
    assert!(waiter.await.unwrap());
    drop(holder);
    assert!(locks.is_empty());
}

/// Waits until the future is ready, as its own task: the timer wakes it.
async fn writer_times_out<'a>(
    writer: &mut Polled<'a, treeline_locks::Locked<'a, i32>>,
) -> Box<treeline_locks::TimedOut<i32>> {
    loop {
        if let Poll::Ready(output) = writer.poll() {
            return output.unwrap_err();
        }
        tokio::task::yield_now().await;
    }
}

/// A future may move from one task to another between two polls, and only the last of them can make it progress.
#[tokio::test]
async fn the_task_that_polled_last_is_woken() {
    let locks = NameLocks::new();
    let holder = locks.write(&1, LONG).await;
    let mut waiter = Box::pin(locks.write(&1, LONG));
    let tasks: [std::sync::Arc<Flag>; 2] = Default::default();
    for task in tasks.iter().flat_map(|task| [task, task]) {
        let waker = std::sync::Arc::clone(task).into();
        assert!(
            waiter
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
    }
    tasks.iter().for_each(|task| task.lower());
    drop(holder);
    assert!(!tasks[0].is_up() && tasks[1].is_up());
}

#[derive(Default)]
struct Flag(std::sync::atomic::AtomicBool);

impl Flag {
    fn lower(&self) {
        self.0.store(false, std::sync::atomic::Ordering::Relaxed);
    }

    fn is_up(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

impl std::task::Wake for Flag {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

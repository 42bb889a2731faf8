//! Several keys at once: in one order, each once, all or none.

use std::task::Poll;
use std::time::{Duration, Instant};

use tokio_time as tokio;
use treeline_locks::Mode::{Read, Write};
use treeline_locks::NameLocks;

use crate::kit::{LONG, Polled, now};

/// Two renames over the same two names, given in opposite orders. In the order given, each would hold one name and
/// wait for the other's.
#[tokio::test]
async fn two_callers_with_opposite_orders_never_wait_in_a_circle() {
    let locks = NameLocks::new();
    let blocker = locks.write(&1, LONG).await;
    let mut forth = Polled::new(locks.many([(1, Write), (2, Write)], LONG));
    let mut back = Polled::new(locks.many([(2, Write), (1, Write)], LONG));
    forth.waits();
    back.waits();
    assert_eq!(locks.len(), 1, "nobody holds 2 while it waits for 1");
    drop(blocker);
    drop(forth.is_served());
    drop(back.is_served());
    assert!(locks.is_empty());
}

#[tokio::test]
async fn a_key_that_is_named_twice_is_locked_once_in_the_stronger_mode() {
    let locks = NameLocks::new();
    let named = [(1, Read), (2, Read), (1, Write), (1, Read), (2, Read)];
    let guards = locks.many(named, LONG).await.unwrap();
    assert_eq!(guards.len(), 2);
    let held: Vec<_> = {
        let mut reports = locks.snapshot();
        reports.sort_by_key(|report| report.key);
        reports
            .iter()
            .map(|report| (report.key, report.holders[0].mode, report.holder_count))
            .collect()
    };
    assert_eq!(held, [(1, Write, 1), (2, Read, 1)]);
}

#[tokio::test]
async fn none_is_kept_when_one_is_not_to_be_had() {
    let locks = NameLocks::new();
    let taken = now(locks.read(&2, LONG));
    let error = locks
        .many([(1, Write), (2, Write), (3, Write)], Duration::ZERO)
        .await
        .unwrap_err();
    assert_eq!(error.report.key, 2);
    assert_eq!(locks.len(), 1);
    let mut cancelled = Polled::new(locks.many([(1, Write), (2, Write)], LONG));
    cancelled.waits();
    assert_eq!(locks.len(), 2);
    drop(cancelled);
    drop(taken);
    assert!(locks.is_empty());
}

#[tokio::test]
async fn the_deadline_is_one_for_all_keys() {
    let locks = NameLocks::new();
    let wait = Duration::from_millis(60);
    let (first, second) = (now(locks.write(&1, LONG)), now(locks.write(&2, LONG)));
    let mut both = Polled::new(locks.many([(1, Read), (2, Read)], wait));
    both.waits();
    // A part of the deadline passes behind the first key, and the second gets what is left.
    let from = Instant::now();
    while from.elapsed() < wait / 3 {
        std::thread::yield_now();
    }
    drop(first);
    let error = loop {
        if let Poll::Ready(answer) = both.poll() {
            break answer.unwrap_err();
        }
        tokio::task::yield_now().await;
    };
    assert!(error.wait <= wait - wait / 3, "{:?} were left", error.wait);
    drop(second);
    assert!(locks.is_empty());
}

#[tokio::test]
async fn no_keys_are_no_locks() {
    let locks = NameLocks::<u32>::new();
    assert!(locks.many([], Duration::ZERO).await.unwrap().is_empty());
}

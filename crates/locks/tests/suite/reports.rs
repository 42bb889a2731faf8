//! Who holds, who waits, what happened: errors, snapshots and the listener.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_time as tokio;
use treeline_locks::{Ask, Mode, NameLocks, Outcome};

use crate::kit::{LONG, Polled, now};

#[tokio::test]
async fn the_error_says_who_holds_the_key_and_where_it_was_taken() {
    let locks = NameLocks::new();
    let alter = Ask::within(LONG).by("alter, request 7");
    let line = line!() + 1;
    let holder = locks.write(&"m.c.s", alter).await;
    let mut queued = Polled::new(locks.read(&"m.c.s", LONG));
    queued.waits();
    let error = now(locks.write(&"m.c.s", Duration::ZERO)).unwrap_err();
    let report = &error.report;
    assert_eq!((error.mode, error.wait), (Mode::Write, Duration::ZERO));
    assert_eq!(
        (report.key, report.holder_count, report.waiter_count),
        ("m.c.s", 1, 1)
    );
    assert_eq!(report.holders[0].who.as_deref(), Some("alter, request 7"));
    assert_eq!(
        (report.holders[0].site.file(), report.holders[0].site.line()),
        (file!(), line)
    );
    assert!(
        report.holders[0].since.is_some(),
        "somebody waits, so the clock was read"
    );
    let text = error.to_string();
    assert!(
        text.starts_with("no Write lock on \"m.c.s\" within 0ns, held by alter, request 7 (Write at "),
        "{text}"
    );
    assert!(text.ends_with("; 1 hold it, 1 wait"), "{text}");
    drop((holder, queued));
}

#[tokio::test]
async fn the_line_that_is_reported_is_the_callers_even_for_several_keys() {
    let locks = NameLocks::new();
    let line = line!() + 1;
    let guards = locks.many([(1, Mode::Read), (2, Mode::Write)], LONG).await;
    assert!(
        locks
            .snapshot()
            .iter()
            .all(|report| report.holders[0].site.line() == line)
    );
    drop(guards);
}

#[tokio::test]
async fn a_snapshot_lists_holders_and_waiters_in_their_order_and_counts_the_rest() {
    let locks = NameLocks::new();
    let writer = locks.write(&1, Ask::within(LONG).by("the writer")).await;
    let mut readers: Vec<_> = (0..40)
        .map(|number| Polled::new(locks.read(&1, Ask::within(LONG).by(format!("reader {number}")))))
        .collect();
    readers.iter_mut().for_each(Polled::waits);
    let report = locks.snapshot().remove(0);
    assert_eq!(
        (report.holder_count, report.waiter_count, report.waiters.len()),
        (1, 40, 16)
    );
    assert_eq!(report.holders[0].who.as_deref(), Some("the writer"));
    assert_eq!(report.waiters[3].who.as_deref(), Some("reader 3"));
    assert!(report.waiters.is_sorted_by_key(|waiter| waiter.since));
    drop(writer);
    let report = locks.snapshot().remove(0);
    assert_eq!(
        (report.holder_count, report.holders.len(), report.waiter_count),
        (40, 16, 0)
    );
    drop(readers);
    assert!(locks.snapshot().is_empty());
}

#[tokio::test]
async fn the_listener_hears_how_each_request_ended_once() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ears = Arc::clone(&heard);
    let locks = NameLocks::new().with_listener(move |event| {
        ears.lock()
            .unwrap()
            .push((event.mode, event.outcome, event.waited > Duration::ZERO));
    });
    let free = now(locks.write(&1, LONG));
    let mut served = Polled::new(locks.read(&1, LONG));
    let mut cancelled = Polled::new(locks.write(&1, LONG));
    served.waits();
    cancelled.waits();
    drop(locks.write(&1, Duration::ZERO).await);
    drop(locks.read(&1, Duration::from_millis(1)).await);
    drop(cancelled);
    drop(free);
    drop(served.is_served());
    assert_eq!(
        *heard.lock().unwrap(),
        [
            (Mode::Write, Outcome::Locked, false),
            (Mode::Write, Outcome::TimedOut, false),
            (Mode::Read, Outcome::TimedOut, true),
            (Mode::Write, Outcome::Cancelled, true),
            (Mode::Read, Outcome::Locked, true),
        ]
    );
}

#[tokio::test]
async fn a_guard_says_whether_its_asker_waited() {
    let locks = NameLocks::new();
    let free = now(locks.write(&1, LONG)).unwrap();
    let mut waits = Polled::new(locks.write(&1, LONG));
    waits.waits();
    assert_eq!(free.waited(), None);
    drop(free);
    assert!(waits.is_served().unwrap().waited().is_some());
}

#[tokio::test]
async fn debug_texts_are_short() {
    let locks = NameLocks::new();
    let guard = locks.write(&1, LONG).await;
    assert_eq!(format!("{locks:?} {guard:?}"), "NameLocks(1 keys) Ok(Guard)");
}

//! Every schedule of a few small models. No deadline passes here, and a waiter gets no second look: a lost wake-up is
//! a deadlock, which loom reports.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use loom::future::block_on;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use crate::{Mode, NameLocks};

const LONG: Duration = Duration::MAX;

/// A map, and who is inside.
struct Model {
    locks: NameLocks<u8>,
    inside: AtomicUsize,
}

const WRITER: usize = 1_000;

impl Model {
    /// Holds the key for a moment and checks the exclusion.
    fn hold(&self, mode: Mode) {
        let guard = block_on(async {
            match mode {
                Mode::Read => self.locks.read(&1, LONG).await,
                Mode::Write => self.locks.write(&1, LONG).await,
            }
        });
        let weight = if mode == Mode::Write { WRITER } else { 1 };
        let before = self.inside.fetch_add(weight, Ordering::SeqCst);
        assert!(
            before == 0 || (mode == Mode::Read && before < WRITER),
            "two holders that exclude each other"
        );
        self.inside.fetch_sub(weight, Ordering::SeqCst);
        drop(guard);
    }

    /// Asks, and goes without looking again, wherever the request has got to.
    fn abandon(&self, mode: Mode) {
        let future = async {
            match mode {
                Mode::Read => drop(self.locks.read(&1, LONG).await),
                Mode::Write => drop(self.locks.write(&1, LONG).await),
            }
        };
        let _ = pin!(future)
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
    }
}

/// Runs the parts as threads under every schedule with at most so many preemptions; nothing may be left.
fn every_schedule(preemptions_max: usize, parts: &'static [fn(&Model)]) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions_max);
    builder.check(move || {
        let model = Arc::new(Model {
            locks: NameLocks::new(),
            inside: AtomicUsize::new(0),
        });
        let threads: Vec<_> = parts[1..]
            .iter()
            .map(|part| {
                let model = Arc::clone(&model);
                thread::spawn(move || part(&model))
            })
            .collect();
        parts[0](&model);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(model.locks.is_empty(), "an entry is left");
    });
}

fn write(model: &Model) {
    model.hold(Mode::Write);
}

fn write_twice(model: &Model) {
    write(model);
    write(model);
}

fn read(model: &Model) {
    model.hold(Mode::Read);
}

fn abandon_write(model: &Model) {
    model.abandon(Mode::Write);
}

#[test]
fn two_writers_twice_exclude_each_other_and_leave_nothing() {
    every_schedule(3, &[write_twice, write_twice]);
}

#[test]
fn three_writers_exclude_each_other_and_leave_nothing() {
    every_schedule(3, &[write, write, write]);
}

#[test]
fn readers_and_a_writer_exclude_each_other_and_leave_nothing() {
    every_schedule(3, &[read, write, read]);
}

#[test]
fn a_waiter_that_goes_at_any_moment_holds_up_nobody() {
    every_schedule(3, &[write, abandon_write, write]);
}

#[test]
fn readers_behind_a_writer_that_goes_are_served() {
    every_schedule(3, &[read, abandon_write, read]);
}

#[test]
fn opposite_orders_of_two_keys_do_not_deadlock() {
    let rename = |model: &Model, from, to| {
        drop(block_on(
            model.locks.many([(from, Mode::Write), (to, Mode::Write)], LONG),
        ));
    };
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let model = Arc::new(Model {
            locks: NameLocks::new(),
            inside: AtomicUsize::new(0),
        });
        let other = Arc::clone(&model);
        let thread = thread::spawn(move || rename(&other, 1, 2));
        rename(&model, 2, 1);
        thread.join().unwrap();
        assert!(model.locks.is_empty());
    });
}

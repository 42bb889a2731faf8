//! The right to leave a queue exactly once: it exists before the await, so whatever ends the wait cleans up.

use std::fmt;
use std::task::{Poll, Waker};
use std::time::Instant;

use crate::ask::Mode;
use crate::names::NameLocks;
use crate::report::{Outcome, Report};

/// Holds a key until it is dropped, on whichever thread that happens.
///
/// It protects no data, so a panic under it poisons nothing: the key is released and the next one is served.
#[must_use = "the key is released as soon as the guard is dropped"]
pub struct Guard<'a, K> {
    pub(crate) locks: &'a NameLocks<K>,
    pub(crate) hash: u64,
    pub(crate) serial: u64,
    pub(crate) id: u64,
    pub(crate) mode: Mode,
    /// Since when it waits; such a guard has not left this crate.
    pub(crate) waits: Option<Instant>,
}

impl<K> Guard<'_, K> {
    /// How the key is held.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) fn poll_admitted(&self, waker: &Waker) -> Poll<()> {
        let mut table = self.locks.table(self.hash);
        let Some(slot) = table.slot(self) else {
            unreachable!("a slot lives as long as its claims")
        };
        if slot.is_admitted(self.id) {
            return Poll::Ready(());
        }
        let replaced = slot.wait(self.id, waker);
        drop(table);
        drop(replaced);
        Poll::Pending
    }

    /// None when the claim was served at the last moment: then it holds the key.
    pub(crate) fn report_unless_admitted(&self) -> Option<Box<Report<K>>>
    where
        K: Clone,
    {
        let mut table = self.locks.table(self.hash);
        let slot = table.slot(self).filter(|slot| !slot.is_admitted(self.id))?;
        Some(Box::new(Report::of(slot)))
    }
}

impl<K> Drop for Guard<'_, K> {
    fn drop(&mut self) {
        self.locks.leave(self);
        if let Some(since) = self.waits {
            self.locks.tell(self.mode, Outcome::Cancelled, since.elapsed());
        }
    }
}

impl<K> fmt::Debug for Guard<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guard({:?})", self.mode)
    }
}

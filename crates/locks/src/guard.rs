//! The right to leave a queue exactly once: it exists before the await, so whatever ends the wait cleans up.

use std::fmt;
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::names::NameLocks;
use crate::report::Report;

/// Holds a key until it is dropped, on whichever thread that happens.
///
/// It protects no data, so a panic under it poisons nothing: the key is released and the next one is served.
///
/// ```
/// # use std::time::Duration;
/// use treeline_locks::{Guard, NameLocks, TimedOut};
///
/// type Busy = Box<TimedOut<u32>>;
///
/// async fn both(locks: &NameLocks<u32>) -> Result<(Guard<'_, u32>, Guard<'_, u32>), Busy> {
///     let wait = Duration::from_secs(1);
///     Ok((locks.read(&1, wait).await?, locks.read(&2, wait).await?)) // the guards may be kept and handed on
/// }
/// ```
#[must_use = "the key is released as soon as the guard is dropped"]
pub struct Guard<'a, K> {
    pub(crate) locks: &'a NameLocks<K>,
    pub(crate) hash: u64,
    pub(crate) id: u64,
    pub(crate) waited: Option<Duration>,
}

impl<'a, K> Guard<'a, K> {
    pub(crate) fn new(locks: &'a NameLocks<K>, hash: u64, id: u64) -> Self {
        Self {
            locks,
            hash,
            id,
            waited: None,
        }
    }

    /// How long its asker was in the queue; `None` when the key was free.
    #[must_use]
    pub fn waited(&self) -> Option<Duration> {
        self.waited
    }

    /// How long it waited, once it holds the key.
    pub(crate) fn poll_admitted(&self, waker: &Waker) -> Poll<Duration> {
        let mut table = self.locks.table(self.hash);
        let Some(slot) = table.slot(self) else {
            unreachable!("a slot lives as long as its claims")
        };
        let polled = slot.poll(self.id, waker);
        drop(table);
        polled.map_or(Poll::Pending, Poll::Ready)
    }

    /// None when the claim was served at the last moment: then it holds the key.
    pub(crate) fn give_up(&self) -> Option<Report<K>>
    where
        K: Clone,
    {
        let mut table = self.locks.table(self.hash);
        let slot = table.slot(self)?;
        slot.give_up(self.id).then(|| Report::of(slot))
    }
}

impl<K> Drop for Guard<'_, K> {
    fn drop(&mut self) {
        self.locks.leave(self);
    }
}

impl<K> fmt::Debug for Guard<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}

//! What a caller, an operator or a metric learns: who holds, who waits, what happened.

use std::error::Error;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::ask::Mode;
use crate::slot::Slot;

/// A report is read by people and copied under a lock: past this many it counts instead of listing.
const LISTED_MAX: usize = 16;

/// One holder or waiter.
///
/// ```
/// use treeline_locks::Claimant;
///
/// /// `alter, request 7 (Write at src/alter.rs:12:9, for 1.2s)`
/// fn line(claimant: &Claimant) -> String {
///     claimant.to_string()
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Claimant {
    /// What it asked for.
    pub mode: Mode,
    /// The name it gave, if any.
    pub who: Option<Arc<str>>,
    /// The line of code that asked.
    pub site: &'static Location<'static>,
    /// Since when it has waited; for a holder, since when it is known to hold: it got the key after a wait then, or
    /// somebody began to wait for it. None for a holder that nobody has waited for.
    pub since: Option<Instant>,
}

/// The queue of one key at one moment.
///
/// ```
/// use treeline_locks::NameLocks;
///
/// /// The key for which the most are waiting.
/// fn hottest(locks: &NameLocks<String>) -> Option<String> {
///     locks.snapshot().into_iter().max_by_key(|report| report.waiter_count).map(|report| report.key)
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report<K> {
    /// The key.
    pub key: K,
    /// Who holds it, the first to ask first; at most 16 of them.
    pub holders: Vec<Claimant>,
    /// How many hold it.
    pub holder_count: usize,
    /// Who waits, the next first; at most 16 of them.
    pub waiters: Vec<Claimant>,
    /// How many wait.
    pub waiter_count: usize,
}

/// A lock was not to be had within the deadline; says who held it when the time was up.
///
/// ```
/// # use std::time::Duration;
/// use treeline_locks::NameLocks;
///
/// async fn who_holds(locks: &NameLocks<u32>, key: u32) -> Option<String> {
///     let timed_out = locks.read(&key, Duration::ZERO).await.err()?;
///     timed_out.report.holders.first()?.who.as_deref().map(str::to_owned)
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TimedOut<K> {
    /// What was asked for.
    pub mode: Mode,
    /// The deadline that passed.
    pub wait: Duration,
    /// The queue when it passed. The one who gives up may still be among its waiters.
    pub report: Report<K>,
}

/// What a listener hears. It runs in the caller's task, outside every lock of this crate.
///
/// ```
/// use std::time::Duration;
/// use treeline_locks::{Event, NameLocks, Outcome};
///
/// fn watched(slow: impl Fn(Event) + Send + Sync + 'static) -> NameLocks<String> {
///     NameLocks::new().with_listener(move |event| {
///         if event.outcome != Outcome::Locked || event.waited > Duration::from_millis(100) {
///             slow(event);
///         }
///     })
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// What was asked for.
    pub mode: Mode,
    /// How it ended.
    pub outcome: Outcome,
    /// How long the asker was in the queue; zero when the key was free.
    pub waited: Duration,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The key was locked.
    Locked,
    /// The deadline passed first.
    TimedOut,
    /// The future was dropped while it waited.
    Cancelled,
}

impl<K: Clone> Report<K> {
    pub(crate) fn of(slot: &Slot<K>) -> Self {
        let (holders, waiters) = (slot.holders(), slot.waiters());
        Self {
            key: slot.key.clone(),
            holder_count: holders.len(),
            holders: holders.take(LISTED_MAX).cloned().collect(),
            waiter_count: waiters.len(),
            waiters: waiters.take(LISTED_MAX).cloned().collect(),
        }
    }
}

impl fmt::Display for Claimant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = self.who.as_deref().unwrap_or("somebody");
        write!(f, "{who} ({:?} at {}", self.mode, self.site)?;
        self.since
            .map_or(Ok(()), |since| write!(f, ", for {:?}", since.elapsed()))?;
        f.write_str(")")
    }
}

impl<K: fmt::Debug> fmt::Display for TimedOut<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report {
            key,
            holders,
            holder_count,
            waiter_count,
            ..
        } = &self.report;
        write!(f, "no {:?} lock on {key:?} within {:?}", self.mode, self.wait)?;
        holders
            .iter()
            .take(1)
            .try_for_each(|holder| write!(f, ", held by {holder}"))?;
        write!(f, "; {holder_count} hold it, {waiter_count} wait")
    }
}

impl<K: fmt::Debug> Error for TimedOut<K> {}

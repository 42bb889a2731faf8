//! `NameLocks`: from a key to its queue.
//!
//! Everything about a key happens in one critical section of its shard: a claim joins the queue in the section that
//! looks the key up, and the slot goes in the section in which its last claim leaves. Nothing is counted apart from
//! the queue, and no await, no wake-up and no foreign `drop` happens inside.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hash};
use std::panic::Location;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::ask::{Ask, Mode};
use crate::guard::Guard;
use crate::report::{Claimant, Event, Outcome, Report, TimedOut};
use crate::slot::{Claim, Slot};
use crate::sync::{MODEL, Mutex, MutexGuard, lock, within};

/// What a shard keeps for its next keys: room in its table, and queues. More than this is given back.
const SPARE_KEYS: usize = 64;
const SPARE_QUEUES: usize = 8;
const SPARE_CLAIMS: usize = 16;

/// A guard, or who holds the key instead.
pub type Locked<'a, K> = Result<Guard<'a, K>, TimedOut<K>>;

/// Fair read and write locks by key. A key that nobody holds or waits for takes no memory.
///
/// - **First come, first served.** A writer is served before every reader that came later.
/// - **Every acquisition has a deadline**, and its error says who holds the key.
/// - **Cancel as you like.** A waiter that is dropped, at whatever moment, leaves nothing behind.
/// - **No re-entrancy, no upgrade.** A task that asks for a key which it holds waits for itself until the deadline;
///   in a debug build it panics at once and names both places. Branches of one `join!` are one task. A waker that
///   belongs to no task (`Waker::noop`) is not checked.
///
/// A wait needs a tokio runtime with its time driver enabled; a key that is free needs no runtime at all.
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use treeline_locks::{Ask, NameLocks};
///
/// let locks = NameLocks::new();
/// let writer = locks.write(&"sales", Ask::within(Duration::from_secs(1)).by("alter")).await?;
/// let error = locks.read(&"orders", Duration::ZERO).await.map(drop);
/// assert!(error.is_ok(), "another key is not affected");
/// drop(writer);
/// assert!(locks.is_empty());
/// # Ok(()) }
/// ```
pub struct NameLocks<K> {
    shards: Box<[Shard<K>]>,
    hasher: DefaultHashBuilder,
    enabled: bool,
    /// Whether a task that asks for what it holds panics. Off for locks that only this crate holds.
    checked: bool,
    listener: Option<Box<dyn Fn(Event) + Send + Sync>>,
}

/// Aligned, so that two shards never share a cache line.
#[repr(align(128))]
struct Shard<K>(Mutex<Table<K>>);

pub(crate) struct Table<K> {
    slots: HashTable<Slot<K>>,
    next_id: u64,
    spare: Vec<VecDeque<Claim>>,
}

impl<K: Hash + Eq + Clone> NameLocks<K> {
    /// Locks the key together with other readers.
    ///
    /// # Errors
    /// [`TimedOut`] when the deadline passes first.
    #[track_caller]
    pub fn read(&self, key: &K, ask: impl Into<Ask>) -> impl Future<Output = Locked<'_, K>> {
        self.acquire(key, Mode::Read, ask.into(), Location::caller())
    }

    /// Locks the key alone.
    ///
    /// # Errors
    /// [`TimedOut`] when the deadline passes first.
    #[track_caller]
    pub fn write(&self, key: &K, ask: impl Into<Ask>) -> impl Future<Output = Locked<'_, K>> {
        self.acquire(key, Mode::Write, ask.into(), Location::caller())
    }

    /// Locks several keys under one deadline, in their order, so that no two callers wait for each other in a
    /// circle. A key that is named twice is locked once, in the stronger mode. All or none.
    ///
    /// # Errors
    /// [`TimedOut`] for the key that was not to be had.
    #[track_caller]
    pub fn many(
        &self,
        keys: impl IntoIterator<Item = (K, Mode)>,
        ask: impl Into<Ask>,
    ) -> impl Future<Output = Result<Vec<Guard<'_, K>>, TimedOut<K>>>
    where
        K: Ord,
    {
        let (ask, site, since) = (ask.into(), Location::caller(), Instant::now());
        let mut keys: Vec<(K, Mode)> = keys.into_iter().collect();
        // Equal keys with the stronger mode first: that one stays.
        keys.sort_by(|one, other| one.0.cmp(&other.0).then(other.1.cmp(&one.1)));
        keys.dedup_by(|weaker, stronger| weaker.0 == stronger.0);
        async move {
            let mut guards = Vec::with_capacity(keys.len());
            for (key, mode) in &keys {
                guards.push(self.acquire(key, *mode, ask.rest(since), site).await?);
            }
            Ok(guards)
        }
    }

    /// Who holds and who waits, key by key. Each queue is shown as it was at one moment, two of them perhaps as
    /// they were at different ones.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Report<K>> {
        let reports = |shard: &Shard<K>| lock(&shard.0).slots.iter().map(Report::of).collect::<Vec<_>>();
        self.shards.iter().flat_map(reports).collect()
    }

    pub(crate) async fn acquire(
        &self,
        key: &K,
        mode: Mode,
        ask: Ask,
        site: &'static Location<'static>,
    ) -> Locked<'_, K> {
        let timed_out = |report| {
            self.tell(mode, Outcome::TimedOut, ask.wait);
            TimedOut {
                mode,
                wait: ask.wait,
                report,
            }
        };
        let claimant = Claimant {
            mode,
            who: ask.who,
            site,
            since: Instant::now(),
        };
        let entered =
            poll_fn(|cx| Poll::Ready(self.enter(key, claimant.clone(), ask.wait, cx.waker()))).await;
        let mut guard = entered.map_err(timed_out)?;
        let mut waited = Duration::ZERO;
        if let Some(since) = guard.waits {
            let served = within(ask.wait, poll_fn(|cx| guard.poll_admitted(cx.waker()))).await;
            let late = if served.is_none() {
                guard.report_unless_admitted()
            } else {
                None
            };
            guard.waits = None;
            if let Some(report) = late {
                return Err(timed_out(report));
            }
            waited = since.elapsed();
        }
        self.tell(mode, Outcome::Locked, waited);
        Ok(guard)
    }

    /// Finds or makes the key's slot and joins its queue, in one critical section.
    fn enter(
        &self,
        key: &K,
        claimant: Claimant,
        wait: Duration,
        waker: &Waker,
    ) -> Result<Guard<'_, K>, Box<Report<K>>> {
        let hash = self.hasher.hash_one(key);
        let Claimant {
            mode, site, since, ..
        } = claimant;
        let mut table = self.table(hash);
        let id = table.next_id;
        table.next_id += 1;
        let guard = |serial, waits| Guard {
            locks: self,
            hash,
            serial,
            id,
            mode,
            waits,
        };
        if !self.enabled {
            return Ok(guard(id, None));
        }
        let claim = |keep: bool| Claim {
            id,
            claimant,
            waker: keep.then(|| waker.clone()),
        };
        let Some(slot) = table.slots.find_mut(hash, |slot| slot.key == *key) else {
            let claims = table.spare.pop().unwrap_or_default();
            let mut slot = Slot::new(key.clone(), hash, id, claims);
            slot.join(claim(self.checked));
            table.slots.insert_unique(hash, slot, |slot| slot.hash);
            return Ok(guard(id, None));
        };
        let checked = self.checked && !waker.will_wake(Waker::noop());
        let holder = if checked { slot.held_by(waker) } else { None };
        if let Some(holder) = holder.map(ToString::to_string) {
            drop(table);
            panic!(
                "the {mode:?} lock asked for at {site} is held by the task that asks for it: {holder}. \
                 There is no re-entrancy and no upgrade: release it first, or ask at once for all that is needed."
            );
        }
        let open = slot.is_open(mode);
        if !open && wait.is_zero() {
            return Err(Box::new(Report::of(slot)));
        }
        let serial = slot.serial;
        slot.join(claim(!open || self.checked));
        Ok(guard(serial, (!open).then_some(since)))
    }
}

impl<K> NameLocks<K> {
    /// An empty map. Takes a few kilobytes for each core of the machine.
    #[must_use]
    pub fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(4, usize::from);
        Self::with_shards(if MODEL {
            1
        } else {
            (4 * cores).next_power_of_two().max(16)
        })
    }

    /// Tells the listener how each request ended, for metrics. It must be quick, and must not panic.
    #[must_use]
    pub fn with_listener(mut self, listener: impl Fn(Event) + Send + Sync + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    /// How many keys are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(&shard.0).slots.len()).sum()
    }

    /// Whether no key is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// For locks that only this crate holds: few keys, never a no-op, and a caller's task may ask twice.
    pub(crate) fn internal(checked: bool) -> Self {
        Self {
            enabled: true,
            checked: checked && cfg!(debug_assertions),
            ..Self::with_shards(1)
        }
    }

    fn with_shards(shards: usize) -> Self {
        let table = || Table {
            slots: HashTable::new(),
            next_id: 0,
            spare: Vec::new(),
        };
        Self {
            shards: (0..shards).map(|_| Shard(Mutex::new(table()))).collect(),
            hasher: DefaultHashBuilder::default(),
            enabled: !cfg!(feature = "disabled"),
            checked: cfg!(debug_assertions),
            listener: None,
        }
    }

    pub(crate) fn table(&self, hash: u64) -> MutexGuard<'_, Table<K>> {
        // The table takes the lowest bits and the highest seven; these lie between.
        let shard = usize::try_from((hash >> 32) & 0xFFFF).unwrap_or(0) & (self.shards.len() - 1);
        lock(&self.shards[shard].0)
    }

    pub(crate) fn tell(&self, mode: Mode, outcome: Outcome, waited: Duration) {
        if let Some(listener) = &self.listener {
            listener(Event {
                mode,
                outcome,
                waited,
            });
        }
    }

    /// Takes the guard's claim out, wakes those who hold the key from now on, and drops what is foreign last.
    pub(crate) fn leave(&self, guard: &Guard<'_, K>) {
        let mut table = self.table(guard.hash);
        let Some(slot) = table.slot(guard) else { return };
        let (claim, woken) = slot.leave(guard.id);
        let slot = if slot.is_empty() {
            table.remove(guard)
        } else {
            None
        };
        drop(table);
        woken.into_iter().for_each(Waker::wake);
        drop((claim, slot));
    }
}

impl<K> Table<K> {
    /// By identity, not by key: a later slot of the same key is somebody else's.
    pub(crate) fn slot(&mut self, guard: &Guard<'_, K>) -> Option<&mut Slot<K>> {
        self.slots
            .find_mut(guard.hash, |slot| slot.serial == guard.serial)
    }

    /// The key goes to the caller, who drops it outside; the queue's memory stays for the next key.
    fn remove(&mut self, guard: &Guard<'_, K>) -> Option<K> {
        let slot = self
            .slots
            .find_entry(guard.hash, |slot| slot.serial == guard.serial)
            .ok()?
            .remove()
            .0;
        if self.slots.capacity() > SPARE_KEYS && self.slots.len() * 8 < self.slots.capacity() {
            self.slots.shrink_to(self.slots.len() * 2, |slot| slot.hash);
        }
        let (key, claims) = slot.into_parts();
        if self.spare.len() < SPARE_QUEUES && claims.capacity() <= SPARE_CLAIMS {
            self.spare.push(claims);
        }
        Some(key)
    }
}

impl<K> Default for NameLocks<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> fmt::Debug for NameLocks<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NameLocks({} keys)", self.len())
    }
}

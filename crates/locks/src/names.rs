//! `NameLocks`: from a key to its queue.
//!
//! Everything about a key happens in one critical section of its shard: a claim joins the queue in the section that
//! looks the key up, and the slot goes in the section in which its last claim leaves. Nothing is counted apart from
//! the queue, and no await, no wake-up and no foreign `drop` happens inside.

use std::fmt;
use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hash};
use std::panic::Location;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use hashbrown::DefaultHashBuilder;
use hashbrown::hash_table::{Entry, HashTable};

use crate::ask::{Ask, Mode};
use crate::guard::Guard;
use crate::report::{Claimant, Event, Outcome, Report, TimedOut};
use crate::slot::{Claim, Slot};
use crate::sync::{MODEL, Mutex, MutexGuard, give_turn, lock, now, within};

/// For how many keys a shard keeps room in its table. More is given back.
const SPARE_KEYS: usize = 64;

/// A guard, or who holds the key instead.
pub type Locked<'a, K> = Result<Guard<'a, K>, Box<TimedOut<K>>>;

/// A place in the queue, and since when it waits there, or who holds the key when nobody was to wait.
type Entered<'a, K> = Result<(Guard<'a, K>, Option<Instant>), Box<Report<K>>>;

/// Fair read and write locks by key. A key takes memory while somebody holds it or waits for it.
///
/// - **First come, first served.** A writer is served before every reader that came later.
/// - **Every acquisition has a deadline**, and its error says who holds the key.
/// - **Cancel as you like.** A waiter that is dropped, at whatever moment, leaves nothing behind.
/// - **No re-entrancy, no upgrade.** A task that asks for a key which it holds waits for itself until the deadline;
///   in a debug build it panics at once and names both places. Branches of one `join!` are one task. A waker that
///   belongs to no task (`Waker::noop`) is not checked.
///
/// A wait needs a tokio runtime with its time driver enabled; a key that is free needs no runtime at all. The key's
/// own `Eq` and `Clone` run in a critical section, so they must not lock anything here.
///
/// ```
/// # use std::time::Duration;
/// # use tokio_time as tokio;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use treeline_locks::{Ask, NameLocks};
///
/// let locks = NameLocks::new();
/// let writer = locks.write(&"sales", Ask::within(Duration::from_secs(1)).by("alter")).await?;
/// assert!(locks.read(&"orders", Duration::ZERO).await.is_ok(), "another key is not affected");
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
    slots: HashTable<Box<Slot<K>>>,
    next_id: u64,
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
    ) -> impl Future<Output = Result<Vec<Guard<'_, K>>, Box<TimedOut<K>>>>
    where
        K: Ord,
    {
        let (ask, site, since) = (ask.into(), Location::caller(), now());
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
        let queues = |shard: &Shard<K>| -> Vec<_> {
            lock(&shard.0).slots.iter().map(|slot| Report::of(slot)).collect()
        };
        self.shards.iter().flat_map(queues).collect()
    }

    pub(crate) async fn acquire(
        &self,
        key: &K,
        mode: Mode,
        ask: Ask,
        site: &'static Location<'static>,
    ) -> Locked<'_, K> {
        if !self.enabled {
            return Ok(Guard::new(self, 0, 0));
        }
        let Ask { wait, mut who } = ask;
        let timed_out = |report| {
            self.tell(mode, Outcome::TimedOut, wait);
            Box::new(TimedOut { mode, wait, report })
        };
        let entered = poll_fn(|cx| {
            let claimant = Claimant {
                mode,
                who: who.take(),
                site,
                since: None,
            };
            Poll::Ready(self.enter(key, claimant, wait, cx.waker()))
        });
        let (mut guard, waits) = entered.await.map_err(|report| timed_out(*report))?;
        if let Some(since) = waits {
            give_turn().await;
            let look = poll_fn(|cx| guard.poll_admitted(cx.waker()));
            let served = within(since, wait, look).await;
            if served.is_none()
                && let Some(report) = guard.give_up()
            {
                return Err(timed_out(report));
            }
            guard.waited = Some(served.unwrap_or(wait));
        }
        self.tell(mode, Outcome::Locked, guard.waited.unwrap_or_default());
        Ok(guard)
    }

    /// Finds or makes the key's slot and joins its queue, in one critical section.
    fn enter(&self, key: &K, claimant: Claimant, wait: Duration, waker: &Waker) -> Entered<'_, K> {
        let hash = self.hasher.hash_one(key);
        // Made before the critical section, and so dropped after it.
        let mut claim = Claim {
            id: 0,
            claimant,
            waker: self.checked.then(|| waker.clone()),
            told: true,
        };
        let mut table = self.table(hash);
        table.next_id += 1;
        claim.id = table.next_id;
        let id = claim.id;
        let slot = match table.slots.entry(hash, |slot| slot.key == *key, |slot| slot.hash) {
            Entry::Occupied(slot) => slot.into_mut(),
            Entry::Vacant(place) => {
                place.insert(Box::new(Slot::new(key.clone(), hash, claim)));
                return Ok((Guard::new(self, hash, id), None));
            }
        };
        let checked = self.checked && !waker.will_wake(Waker::noop());
        let holder = if checked { slot.held_by(waker) } else { None };
        if let Some(holder) = holder.map(ToString::to_string) {
            drop(table);
            let Claimant { mode, site, .. } = claim.claimant;
            panic!(
                "the {mode:?} lock asked for at {site} is held by the task that asks for it: {holder}. \
                 There is no re-entrancy and no upgrade: release it first, or ask at once for all that is needed."
            );
        }
        if !slot.is_open(claim.claimant.mode) {
            if wait.is_zero() {
                return Err(Box::new(Report::of(slot)));
            }
            // The clock is read only where somebody waits: it would be a fifth of the price of a free key.
            claim.claimant.since = Some(now());
            claim.waker.get_or_insert_with(|| waker.clone());
            claim.told = false;
        }
        let since = claim.claimant.since;
        slot.join(claim);
        Ok((Guard::new(self, hash, id), since))
    }
}

impl<K> NameLocks<K> {
    /// An empty map. Takes a few kilobytes for each core of the machine.
    #[must_use]
    pub fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(4, usize::from);
        let shards = (4 * cores).next_power_of_two().max(16);
        Self::with_shards(if MODEL { 1 } else { shards })
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

    /// For how many keys the tables have room.
    #[cfg(all(test, not(any(loom, shuttle, feature = "disabled"))))]
    pub(crate) fn room(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| lock(&shard.0).slots.capacity())
            .sum()
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
        let Ok(mut entry) = table.slots.find_entry(guard.hash, |slot| slot.has(guard.id)) else {
            return;
        };
        if let Some((claim, woken)) = entry.get_mut().leave(guard.id) {
            drop(table);
            woken.1.into_iter().chain(woken.0).for_each(Waker::wake);
            self.tell_cancelled(&claim);
        } else {
            let (slot, _) = entry.remove();
            table.give_back();
            drop(table);
            self.tell_cancelled(&slot.first);
        }
    }

    /// Tells it of a claim that has gone before its asker knew how it ended.
    fn tell_cancelled(&self, claim: &Claim) {
        let Claim { claimant, told, .. } = claim;
        if !told {
            let waited = claimant.since.map_or(Duration::ZERO, |since| now() - since);
            self.tell(claimant.mode, Outcome::Cancelled, waited);
        }
    }
}

impl<K> Table<K> {
    pub(crate) fn slot(&mut self, guard: &Guard<'_, K>) -> Option<&mut Slot<K>> {
        self.slots
            .find_mut(guard.hash, |slot| slot.has(guard.id))
            .map(|slot| &mut **slot)
    }

    /// Gives the room back that a burst of keys has left.
    fn give_back(&mut self) {
        if self.slots.capacity() > SPARE_KEYS && self.slots.len() * 8 < self.slots.capacity() {
            self.slots.shrink_to(self.slots.len() * 2, |slot| slot.hash);
        }
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

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
use crate::sync::{MODEL, Mutex, MutexGuard, give_turn, lock, within};

/// What a shard keeps for its next keys: room in its table, and slots with short queues. More is given back.
const SPARE_KEYS: usize = 64;
const SPARE_SLOTS: usize = 8;
const SPARE_CLAIMS: usize = 16;

/// A guard, or who holds the key instead.
pub type Locked<'a, K> = Result<Guard<'a, K>, Box<TimedOut<K>>>;

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
    spare: Vec<Box<Slot<K>>>,
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
        let timed_out = |report| {
            self.tell(mode, Outcome::TimedOut, ask.wait);
            Box::new(TimedOut {
                mode,
                wait: ask.wait,
                report,
            })
        };
        let entered = poll_fn(|cx| Poll::Ready(self.enter(key, mode, &ask, site, cx.waker()))).await;
        let (guard, holds) = entered.map_err(|report| timed_out(*report))?;
        let mut waited = Duration::ZERO;
        if !holds {
            give_turn().await;
            let served = within(ask.wait, poll_fn(|cx| guard.poll_admitted(cx.waker()))).await;
            if served.is_none()
                && let Some(report) = guard.give_up()
            {
                return Err(timed_out(report));
            }
            waited = served.unwrap_or(ask.wait);
        }
        self.tell(mode, Outcome::Locked, waited);
        Ok(guard)
    }

    /// Finds or makes the key's slot and joins its queue, in one critical section. Says whether the claim holds.
    fn enter(
        &self,
        key: &K,
        mode: Mode,
        ask: &Ask,
        site: &'static Location<'static>,
        waker: &Waker,
    ) -> Result<(Guard<'_, K>, bool), Box<Report<K>>> {
        let hash = self.hasher.hash_one(key);
        let mut table = self.table(hash);
        table.next_id += 1;
        let Table {
            slots,
            next_id: id,
            spare,
        } = &mut *table;
        let guard = || Guard::new(self, hash, *id);
        let claim = |waker, told| {
            let claimant = Claimant {
                mode,
                who: ask.who.clone(),
                site,
                since: None,
            };
            Claim {
                id: *id,
                claimant,
                waker,
                told,
            }
        };
        let mine = || self.checked.then(|| waker.clone());
        let slot = match slots.entry(hash, |slot| slot.key == *key, |slot| slot.hash) {
            Entry::Occupied(slot) => slot.into_mut(),
            Entry::Vacant(place) => {
                let mut slot = match spare.pop() {
                    Some(slot) => slot,
                    None => Box::new(Slot::new(key.clone())),
                };
                slot.key.clone_from(key);
                slot.hash = hash;
                slot.join(claim(mine(), true));
                place.insert(slot);
                return Ok((guard(), true));
            }
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
        if open {
            slot.join(claim(mine(), true));
        } else if ask.wait.is_zero() {
            return Err(Box::new(Report::of(slot)));
        } else {
            slot.join(claim(Some(waker.clone()), false));
        }
        Ok((guard(), open))
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

    /// For how many keys the tables have room, and how many slots are spare.
    #[cfg(all(test, not(any(loom, shuttle, feature = "disabled"))))]
    pub(crate) fn kept(&self) -> (usize, usize) {
        let tables = self.shards.iter().map(|shard| lock(&shard.0));
        tables.fold((0, 0), |sum, table| {
            (sum.0 + table.slots.capacity(), sum.1 + table.spare.len())
        })
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
        let (claim, woken) = entry.get_mut().leave(guard.id);
        let slot = if entry.get().is_empty() {
            Some(entry.remove().0)
        } else {
            None
        };
        let gone = slot.and_then(|slot| table.retire(slot));
        drop(table);
        woken.1.into_iter().chain(woken.0).for_each(Waker::wake);
        if let Some(Claim {
            claimant,
            told: false,
            ..
        }) = &claim
        {
            let waited = claimant.since.map_or(Duration::ZERO, |since| since.elapsed());
            self.tell(claimant.mode, Outcome::Cancelled, waited);
        }
        drop((claim, gone));
    }
}

impl<K> Table<K> {
    pub(crate) fn slot(&mut self, guard: &Guard<'_, K>) -> Option<&mut Slot<K>> {
        self.slots
            .find_mut(guard.hash, |slot| slot.has(guard.id))
            .map(|slot| &mut **slot)
    }

    /// Keeps a little memory for the next keys, and hands out what is too much.
    fn retire(&mut self, slot: Box<Slot<K>>) -> Option<Box<Slot<K>>> {
        if self.slots.capacity() > SPARE_KEYS && self.slots.len() * 8 < self.slots.capacity() {
            self.slots.shrink_to(self.slots.len() * 2, |slot| slot.hash);
        }
        if self.spare.len() == SPARE_SLOTS || slot.capacity() > SPARE_CLAIMS {
            return Some(slot);
        }
        self.spare.push(slot);
        None
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

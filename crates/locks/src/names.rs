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

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::ask::{Ask, Claimant, Mode};
use crate::guard::Guard;
use crate::report::{Event, Outcome, Report, TimedOut};
use crate::slot::{Claim, Slot};
use crate::sync::{MODEL, Mutex, MutexGuard, lock, within};

/// A table that holds fewer keys than this is never shrunk.
const SPARE_KEYS: usize = 64;

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
    listener: Option<Box<dyn Fn(Event) + Send + Sync>>,
    #[cfg(test)]
    pub(crate) mutant: Option<crate::seeded::Mutant>,
}

/// Aligned, so that two shards never share a cache line.
#[repr(align(128))]
struct Shard<K>(Mutex<Table<K>>);

pub(crate) struct Table<K> {
    slots: HashTable<Slot<K>>,
    next_id: u64,
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
    pub fn with_listener(self, listener: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self {
            listener: Some(Box::new(listener)),
            ..self
        }
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

    /// For a cell's own locks: there are few of them, and they stay locks in a `disabled` build.
    pub(crate) fn always_on() -> Self {
        Self {
            enabled: true,
            ..Self::with_shards(1)
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

    /// Takes the guard's claim out and wakes those who hold the key from now on.
    pub(crate) fn leave(&self, guard: &Guard<'_, K>) {
        let mut table = self.table(guard.hash);
        let Some(slot) = table.slot(guard) else { return };
        if (seeded!(self, TicketAfterAwait) && !slot.is_admitted(guard.id))
            || (seeded!(self, HandOffForgotten) && guard.waits.is_some() && slot.is_admitted(guard.id))
        {
            return;
        }
        if let Some((gone, woken)) = slot.leave(guard.id) {
            drop(table);
            woken.into_iter().for_each(Waker::wake);
            drop(gone);
            return;
        }
        if seeded!(self, RemoveWithoutRecheck) {
            drop(table);
            table = self.table(guard.hash);
        }
        let gone = table.remove(guard);
        drop(table);
        drop(gone);
    }

    fn with_shards(shards: usize) -> Self {
        let shard = |_| {
            Shard(Mutex::new(Table {
                slots: HashTable::new(),
                next_id: 0,
            }))
        };
        Self {
            shards: (0..shards).map(shard).collect(),
            hasher: DefaultHashBuilder::default(),
            enabled: !cfg!(feature = "disabled"),
            listener: None,
            #[cfg(test)]
            mutant: None,
        }
    }
}

impl<K: Hash + Eq + Clone> NameLocks<K> {
    /// Locks the key together with other readers.
    ///
    /// # Errors
    /// [`TimedOut`] when the deadline passes first.
    #[track_caller]
    pub fn read(
        &self,
        key: &K,
        ask: impl Into<Ask>,
    ) -> impl Future<Output = Result<Guard<'_, K>, TimedOut<K>>> {
        self.acquire(key, Mode::Read, ask.into(), Location::caller())
    }

    /// Locks the key alone.
    ///
    /// # Errors
    /// [`TimedOut`] when the deadline passes first.
    #[track_caller]
    pub fn write(
        &self,
        key: &K,
        ask: impl Into<Ask>,
    ) -> impl Future<Output = Result<Guard<'_, K>, TimedOut<K>>> {
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
        if !seeded!(self, UnsortedKeys) {
            keys.sort();
        }
        // Of two equal keys the stronger mode comes last, and goes.
        keys.dedup_by(|later, first| {
            let same = later.0 == first.0;
            if same && !seeded!(self, WeakerMode) {
                first.1 = first.1.max(later.1);
            }
            same
        });
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
    ) -> Result<Guard<'_, K>, TimedOut<K>> {
        if seeded!(self, ReadThenWrite) && mode == Mode::Write {
            drop(self.claim(key, Mode::Read, &ask, site).await);
        }
        self.claim(key, mode, &ask, site).await.map_err(|report| {
            self.tell(mode, Outcome::TimedOut, ask.wait);
            TimedOut {
                mode,
                wait: ask.wait,
                report,
            }
        })
    }

    async fn claim(
        &self,
        key: &K,
        mode: Mode,
        ask: &Ask,
        site: &'static Location<'static>,
    ) -> Result<Guard<'_, K>, Box<Report<K>>> {
        let mut guard = poll_fn(|cx| Poll::Ready(self.enter(key, mode, ask, site, cx.waker()))).await?;
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
                return Err(report);
            }
            waited = since.elapsed();
        }
        self.tell(mode, Outcome::Locked, waited);
        Ok(guard)
    }

    /// Finds or makes the key's slot and joins its queue, in one critical section.
    fn enter<'a>(
        &'a self,
        key: &K,
        mode: Mode,
        ask: &Ask,
        site: &'static Location<'static>,
        waker: &Waker,
    ) -> Result<Guard<'a, K>, Box<Report<K>>> {
        let since = Instant::now();
        let hash = self.hasher.hash_one(key);
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
        let claim = || Claim {
            id,
            claimant: Claimant {
                mode,
                who: ask.who.clone(),
                site,
                since,
            },
            waker: None,
            #[cfg(debug_assertions)]
            task: (!ask.may_share_task && !waker.will_wake(Waker::noop())).then(|| waker.clone()),
        };
        if !self.enabled {
            return Ok(guard(id, None));
        }
        let Some(slot) = table.slots.find_mut(hash, |slot| slot.key == *key) else {
            if seeded!(self, LookUpThenClaim) {
                drop(table);
                table = self.table(hash);
            }
            let slot = Slot::new(key.clone(), hash, claim());
            #[cfg(test)]
            let slot = Slot {
                mutant: self.mutant,
                ..slot
            };
            table.slots.insert_unique(hash, slot, |slot| slot.hash);
            return Ok(guard(id, None));
        };
        #[cfg(debug_assertions)]
        if let Some(holder) = slot
            .held_by(waker)
            .filter(|_| !ask.may_share_task)
            .map(ToString::to_string)
        {
            drop(table);
            panic!(
                "the {mode:?} lock asked for at {site} is held by the task that asks for it: {holder}. \
                 There is no re-entrancy and no upgrade: release it first, or ask at once for all that is needed."
            );
        }
        if ask.wait.is_zero() && !slot.is_open(mode) && !seeded!(self, ZeroWaits) {
            return Err(Box::new(Report::of(slot)));
        }
        let serial = slot.serial;
        let holds = slot.join(claim(), waker);
        Ok(guard(serial, (!holds).then_some(since)))
    }
}

impl<K> Table<K> {
    /// By identity, not by key: a later slot of the same key is somebody else's.
    pub(crate) fn slot(&mut self, guard: &Guard<'_, K>) -> Option<&mut Slot<K>> {
        self.slots
            .find_mut(guard.hash, |slot| slot.serial == guard.serial)
    }

    fn remove(&mut self, guard: &Guard<'_, K>) -> Option<Slot<K>> {
        let gone = self
            .slots
            .find_entry(guard.hash, |slot| slot.serial == guard.serial)
            .ok()?
            .remove()
            .0;
        if self.slots.capacity() > SPARE_KEYS && self.slots.len() * 8 < self.slots.capacity() {
            self.slots.shrink_to(self.slots.len() * 2, |slot| slot.hash);
        }
        Some(gone)
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

//! The queue of one key: who holds it and who waits, in the order in which they asked.
//!
//! The holders are always the front of the queue: its first claim, and if that is a reader, the readers directly
//! behind it. So a writer is served before every reader that came later, and two holders that exclude each other
//! cannot be written down. The reference count of the key is the length of its queue.

use std::collections::VecDeque;
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::ask::Mode;
use crate::report::Claimant;

/// One request, from the moment it was asked until its guard is dropped or its future is.
pub(crate) struct Claim {
    /// Rises within a shard, so a queue is sorted by it.
    pub(crate) id: u64,
    pub(crate) claimant: Claimant,
    /// Called when the claim is admitted. A debug build keeps it to know the task that holds the key.
    pub(crate) waker: Option<Waker>,
    /// Whether the asker knows how its request ended; if not, it was cancelled.
    pub(crate) told: bool,
}

/// Those who moved up. There is mostly one, who needs no memory.
pub(crate) type Woken = (Option<Waker>, Vec<Waker>);

/// A key that somebody holds or waits for, or, with an empty queue, the memory for the next one.
pub(crate) struct Slot<K> {
    pub(crate) key: K,
    pub(crate) hash: u64,
    /// How many claims from the front hold the key.
    admitted: usize,
    claims: VecDeque<Claim>,
}

impl<K> Slot<K> {
    pub(crate) fn new(key: K) -> Self {
        Self {
            key,
            hash: 0,
            admitted: 0,
            claims: VecDeque::new(),
        }
    }

    /// Whether this claim is in the queue. Claims have ids of their own, so this tells a slot from a later one of
    /// the same key, which is somebody else's.
    pub(crate) fn has(&self, id: u64) -> bool {
        self.position(id).is_some()
    }

    /// Whether a claim that joins now would hold the key at once: nobody waits, and the holders share it.
    pub(crate) fn is_open(&self, mode: Mode) -> bool {
        self.admitted == self.claims.len() && self.shares(mode)
    }

    /// Joins the end of the queue.
    pub(crate) fn join(&mut self, claim: Claim) {
        self.admitted += usize::from(self.is_open(claim.claimant.mode));
        self.claims.push_back(claim);
    }

    /// How long the claim waited, once it holds the key. Until then this waker is called when it does; the one that
    /// it replaces is handed out, for its drop is foreign code, which must not run in a critical section.
    ///
    /// The clock is read only here, where somebody waits: it would be a fifth of the price of a free key.
    pub(crate) fn poll(&mut self, id: u64, waker: &Waker) -> Result<Duration, Option<Waker>> {
        let index = self.position(id).ok_or(None)?;
        let claim = &mut self.claims[index];
        if index < self.admitted {
            claim.told = true;
            let Some(asked) = claim.claimant.since else {
                return Ok(Duration::ZERO);
            };
            let now = Instant::now();
            claim.claimant.since = Some(now);
            return Ok(now - asked);
        }
        let known = claim.waker.as_ref().is_some_and(|known| known.will_wake(waker));
        let replaced = if known {
            None
        } else {
            claim.waker.replace(waker.clone())
        };
        let now = *claim.claimant.since.get_or_insert_with(Instant::now);
        self.claims[0].claimant.since.get_or_insert(now);
        Err(replaced)
    }

    /// False when the claim was served at the last moment: then it holds the key.
    pub(crate) fn give_up(&mut self, id: u64) -> bool {
        let Some(index) = self.position(id) else {
            return false;
        };
        self.claims[index].told = true;
        index >= self.admitted
    }

    /// Takes the claim out, whether it holds or waits, and lets those behind it move up. The wakers of those who
    /// moved up, like the claim's own, are foreign code.
    pub(crate) fn leave(&mut self, id: u64) -> (Option<Claim>, Woken) {
        let mut woken = Woken::default();
        let Some(index) = self.position(id) else {
            return (None, woken);
        };
        let gone = self.claims.remove(index);
        self.admitted -= usize::from(index < self.admitted);
        while self
            .claims
            .get(self.admitted)
            .is_some_and(|next| self.shares(next.claimant.mode))
        {
            let next = &mut self.claims[self.admitted];
            let waker = if cfg!(debug_assertions) {
                next.waker.clone()
            } else {
                next.waker.take()
            };
            woken.1.extend(std::mem::replace(&mut woken.0, waker));
            self.admitted += 1;
        }
        (gone, woken)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.claims.capacity()
    }

    pub(crate) fn holders(&self) -> impl ExactSizeIterator<Item = &Claimant> {
        self.claims.range(..self.admitted).map(|claim| &claim.claimant)
    }

    pub(crate) fn waiters(&self) -> impl ExactSizeIterator<Item = &Claimant> {
        self.claims.range(self.admitted..).map(|claim| &claim.claimant)
    }

    /// The holder that is the task of this waker: a waker knows its task, whatever the runtime.
    pub(crate) fn held_by(&self, task: &Waker) -> Option<&Claimant> {
        let mut holders = self.claims.range(..self.admitted);
        let found = holders.find(|claim| claim.waker.as_ref().is_some_and(|known| known.will_wake(task)));
        found.map(|claim| &claim.claimant)
    }

    /// The one rule of exclusion.
    fn shares(&self, mode: Mode) -> bool {
        let held = self.claims.front().map(|first| first.claimant.mode);
        self.admitted == 0 || (mode == Mode::Read && held == Some(Mode::Read))
    }

    fn position(&self, id: u64) -> Option<usize> {
        if self.claims.front()?.id == id {
            return Some(0);
        }
        self.claims.binary_search_by_key(&id, |claim| claim.id).ok()
    }
}

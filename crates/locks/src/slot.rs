//! The queue of one key: who holds it and who waits, in the order in which they asked.
//!
//! The holders are always the front of the queue: its first claim, and if that is a reader, the readers directly
//! behind it. So a writer is served before every reader that came later, and two holders that exclude each other
//! cannot be written down. The reference count of the key is the length of its queue.

use std::collections::VecDeque;
use std::ops::Range;
use std::task::Waker;
use std::time::Duration;

use crate::ask::Mode;
use crate::report::Claimant;
use crate::sync::now;

/// One request, from the moment it was asked until its guard is dropped or its future is.
pub(crate) struct Claim {
    /// Rises within a shard, so a queue is sorted by it.
    pub(crate) id: u64,
    pub(crate) claimant: Claimant,
    /// Called when the claim is admitted.
    pub(crate) waker: Option<Waker>,
    /// Whether the asker knows how its request ended; if not, it was cancelled.
    pub(crate) told: bool,
}

/// Those who moved up. There is mostly one, who needs no memory.
pub(crate) type Woken = (Option<Waker>, Vec<Waker>);

/// A key that somebody holds. It goes with its last claim, so its queue is never empty.
pub(crate) struct Slot<K> {
    pub(crate) key: K,
    pub(crate) hash: u64,
    /// The first in the queue always holds the key. It has its place here, for mostly there is no other.
    pub(crate) first: Claim,
    rest: VecDeque<Claim>,
    /// How many of the rest, from its front, hold the key too.
    sharing: usize,
}

impl<K> Slot<K> {
    pub(crate) fn new(key: K, hash: u64, first: Claim) -> Self {
        Self {
            key,
            hash,
            first,
            rest: VecDeque::new(),
            sharing: 0,
        }
    }

    /// Whether this claim is in the queue. Claims have ids of their own, so this tells a slot from a later one of
    /// the same key, which is somebody else's.
    pub(crate) fn has(&self, id: u64) -> bool {
        self.first.id == id || self.position(id).is_some()
    }

    /// Whether a claim that joins now would hold the key at once: nobody waits, and the holders share it.
    pub(crate) fn is_open(&self, mode: Mode) -> bool {
        self.sharing == self.rest.len() && self.shares(mode)
    }

    /// Joins the end of the queue. Who waits says since when, and from then on the holder is known to hold.
    pub(crate) fn join(&mut self, claim: Claim) {
        self.sharing += usize::from(self.is_open(claim.claimant.mode));
        self.first.claimant.since = self.first.claimant.since.or(claim.claimant.since);
        self.rest.push_back(claim);
    }

    /// How long the claim waited, once it holds the key. Until then this waker is called when it does; the one that
    /// it replaces is handed out, for its drop is foreign code, which must not run in a critical section.
    pub(crate) fn poll(&mut self, id: u64, waker: &Waker) -> Result<Duration, Option<Waker>> {
        let (claim, holds) = self.find(id).ok_or(None)?;
        if holds {
            claim.told = true;
            let now = now();
            let asked = claim.claimant.since.replace(now);
            return Ok(asked.map_or(Duration::ZERO, |asked| now - asked));
        }
        let known = claim.waker.as_ref().is_some_and(|known| known.will_wake(waker));
        Err(if known {
            None
        } else {
            claim.waker.replace(waker.clone())
        })
    }

    /// False when the claim was served at the last moment: then it holds the key.
    pub(crate) fn give_up(&mut self, id: u64) -> bool {
        let Some((claim, holds)) = self.find(id) else {
            return false;
        };
        claim.told = true;
        !holds
    }

    /// Takes the claim out, whether it holds or waits, and lets those behind it move up. Its waker and those of the
    /// others are foreign code. `None` when there are no others: then the slot goes with it.
    pub(crate) fn leave(&mut self, id: u64) -> Option<(Claim, Woken)> {
        let mut woken = Woken::default();
        let gone = if self.first.id == id {
            let mut next = self.rest.pop_front()?;
            if self.sharing == 0 {
                woken.0 = next.wake();
            } else {
                self.sharing -= 1;
            }
            std::mem::replace(&mut self.first, next)
        } else {
            let index = self.position(id)?;
            self.sharing -= usize::from(index < self.sharing);
            self.rest.remove(index)?
        };
        while self
            .rest
            .get(self.sharing)
            .is_some_and(|next| self.shares(next.claimant.mode))
        {
            let waker = self.rest[self.sharing].wake();
            woken.1.extend(std::mem::replace(&mut woken.0, waker));
            self.sharing += 1;
        }
        Some((gone, woken))
    }

    pub(crate) fn holders(&self) -> impl ExactSizeIterator<Item = &Claimant> {
        self.queue(0..1 + self.sharing)
    }

    pub(crate) fn waiters(&self) -> impl ExactSizeIterator<Item = &Claimant> {
        self.queue(1 + self.sharing..1 + self.rest.len())
    }

    /// The holder that is the task of this waker: a waker knows its task, whatever the runtime.
    pub(crate) fn held_by(&self, task: &Waker) -> Option<&Claimant> {
        let mut holders = (0..1 + self.sharing).map(|at| self.claim(at));
        let found = holders.find(|claim| claim.waker.as_ref().is_some_and(|known| known.will_wake(task)));
        found.map(|claim| &claim.claimant)
    }

    /// The one rule of exclusion.
    fn shares(&self, mode: Mode) -> bool {
        mode == Mode::Read && self.first.claimant.mode == Mode::Read
    }

    /// The claim, and whether it holds the key.
    fn find(&mut self, id: u64) -> Option<(&mut Claim, bool)> {
        if self.first.id == id {
            return Some((&mut self.first, true));
        }
        let index = self.position(id)?;
        Some((&mut self.rest[index], index < self.sharing))
    }

    /// Its place behind the first.
    fn position(&self, id: u64) -> Option<usize> {
        self.rest.binary_search_by_key(&id, |claim| claim.id).ok()
    }

    fn queue(&self, places: Range<usize>) -> impl ExactSizeIterator<Item = &Claimant> {
        places.map(|at| &self.claim(at).claimant)
    }

    fn claim(&self, at: usize) -> &Claim {
        at.checked_sub(1).map_or(&self.first, |at| &self.rest[at])
    }
}

impl Claim {
    /// Admits it. A debug build keeps the waker to know the task that holds the key.
    fn wake(&mut self) -> Option<Waker> {
        if cfg!(debug_assertions) {
            self.waker.clone()
        } else {
            self.waker.take()
        }
    }
}

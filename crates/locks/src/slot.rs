//! The queue of one key: who holds it and who waits, in the order in which they asked.
//!
//! The holders are always the front of the queue: its first claim, and if that is a reader, the readers directly
//! behind it. So a writer is served before every reader that came later, and two holders that exclude each other
//! cannot be written down. The reference count of the key is the length of its queue.

use std::collections::VecDeque;
use std::task::Waker;
use std::time::Instant;

use crate::ask::Mode;
use crate::report::Claimant;

/// One request, from the moment it was asked until its guard is dropped or its future is.
pub(crate) struct Claim {
    /// Rises within a shard, so a queue is sorted by it.
    pub(crate) id: u64,
    pub(crate) claimant: Claimant,
    /// Called when the claim is admitted. A debug build keeps it to know the task that holds the key.
    pub(crate) waker: Option<Waker>,
}

/// A key that somebody holds or waits for.
pub(crate) struct Slot<K> {
    pub(crate) key: K,
    pub(crate) hash: u64,
    /// The id of the claim that made the slot: a later slot of the same key has another one.
    pub(crate) serial: u64,
    /// How many claims from the front hold the key.
    admitted: usize,
    claims: VecDeque<Claim>,
}

impl<K> Slot<K> {
    pub(crate) fn new(key: K, hash: u64, serial: u64, claims: VecDeque<Claim>) -> Self {
        Self {
            key,
            hash,
            serial,
            admitted: 0,
            claims,
        }
    }

    /// Whether a claim that joins now would hold the key at once: nobody waits, and the holders share it.
    pub(crate) fn is_open(&self, mode: Mode) -> bool {
        self.admitted == self.claims.len() && self.shares(mode)
    }

    /// Joins the end of the queue. True when the claim holds the key at once.
    pub(crate) fn join(&mut self, claim: Claim) -> bool {
        let open = self.is_open(claim.claimant.mode);
        self.claims.push_back(claim);
        self.admitted += usize::from(open);
        open
    }

    pub(crate) fn is_admitted(&self, id: u64) -> bool {
        self.position(id).is_some_and(|index| index < self.admitted)
    }

    /// This waker is called when the claim is admitted. The one that it replaces is handed out: its drop is foreign
    /// code, which must not run in a critical section.
    pub(crate) fn wait(&mut self, id: u64, waker: &Waker) -> Option<Waker> {
        let index = self.position(id)?;
        let known = &mut self.claims[index].waker;
        if known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            None
        } else {
            known.replace(waker.clone())
        }
    }

    /// Takes the claim out, whether it holds or waits, and lets those behind it move up. The claim and the wakers
    /// of those who moved up are foreign code too.
    pub(crate) fn leave(&mut self, id: u64) -> (Option<Claim>, Vec<Waker>) {
        let Some(index) = self.position(id) else {
            return (None, Vec::new());
        };
        let gone = self.claims.remove(index);
        self.admitted -= usize::from(index < self.admitted);
        let mut woken = Vec::new();
        while self
            .claims
            .get(self.admitted)
            .is_some_and(|next| self.shares(next.claimant.mode))
        {
            let next = &mut self.claims[self.admitted];
            next.claimant.since = Instant::now();
            woken.extend(if cfg!(debug_assertions) {
                next.waker.clone()
            } else {
                next.waker.take()
            });
            self.admitted += 1;
        }
        (gone, woken)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.claims.is_empty()
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

    /// The key, and the queue's memory for the next slot.
    pub(crate) fn into_parts(self) -> (K, VecDeque<Claim>) {
        (self.key, self.claims)
    }

    /// The one rule of exclusion.
    fn shares(&self, mode: Mode) -> bool {
        let held = self.claims.front().map(|first| first.claimant.mode);
        self.admitted == 0 || (mode == Mode::Read && held == Some(Mode::Read))
    }

    fn position(&self, id: u64) -> Option<usize> {
        self.claims.binary_search_by_key(&id, |claim| claim.id).ok()
    }
}

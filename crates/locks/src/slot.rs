//! The queue of one key: who holds it and who waits, in the order in which they asked.
//!
//! The holders are always the front of the queue: its first claim, and if that is a reader, the readers directly
//! behind it. So a writer is served before every reader that came later, and two holders that exclude each other
//! cannot be written down. A slot without a claim cannot be written down either: the last one that leaves takes
//! the slot with it.

use std::collections::VecDeque;
use std::task::Waker;
use std::time::Instant;

use crate::ask::{Claimant, Mode};

/// One request, from the moment it was asked until its guard is dropped or its future is.
pub(crate) struct Claim {
    /// Rises within a shard, so a queue is sorted by it.
    pub(crate) id: u64,
    pub(crate) claimant: Claimant,
    /// Called when the claim is admitted.
    pub(crate) waker: Option<Waker>,
    /// Tells in a debug build which task holds the lock: a waker knows its task, whatever the runtime.
    #[cfg(debug_assertions)]
    pub(crate) task: Option<Waker>,
}

/// A key with at least one claim on it.
pub(crate) struct Slot<K> {
    pub(crate) key: K,
    pub(crate) hash: u64,
    /// The id of the claim that made the slot: a later slot of the same key has another one.
    pub(crate) serial: u64,
    /// How many claims from the front hold the key; never zero between two calls.
    admitted: usize,
    head: Claim,
    rest: VecDeque<Claim>,
    #[cfg(test)]
    pub(crate) mutant: Option<crate::seeded::Mutant>,
}

impl<K> Slot<K> {
    pub(crate) fn new(key: K, hash: u64, head: Claim) -> Self {
        Self {
            key,
            hash,
            serial: head.id,
            admitted: 1,
            head,
            rest: VecDeque::new(),
            #[cfg(test)]
            mutant: None,
        }
    }

    /// Whether a claim that joins now would hold the key at once: nobody waits, and the holders share it.
    pub(crate) fn is_open(&self, mode: Mode) -> bool {
        (self.admitted == self.len() || seeded!(self, ReaderBarges)) && self.shares(mode)
    }

    /// Joins the end of the queue. True when the claim holds the key at once.
    pub(crate) fn join(&mut self, mut claim: Claim, waker: &Waker) -> bool {
        let open = self.is_open(claim.claimant.mode);
        if open {
            self.rest.insert(self.admitted - 1, claim);
            self.admitted += 1;
        } else {
            claim.waker = Some(waker.clone());
            self.rest.push_back(claim);
        }
        open
    }

    /// Whether the claim holds the key; if not, this waker is called when it does. The waker that it replaces is
    /// handed out: its drop is foreign code, which must not run in the critical section.
    pub(crate) fn poll(&mut self, id: u64, waker: &Waker) -> (bool, Option<Waker>) {
        let index = self.position(id);
        let keeps = |known: &Waker| known.will_wake(waker) || seeded!(self, StaleWaker);
        if index < self.admitted || self.claim(index).waker.as_ref().is_some_and(keeps) {
            return (index < self.admitted, None);
        }
        (false, self.claim_mut(index).waker.replace(waker.clone()))
    }

    pub(crate) fn is_admitted(&self, id: u64) -> bool {
        self.position(id) < self.admitted
    }

    /// Takes the claim out, whether it holds or waits, and lets those behind it move up. None when it is the only
    /// one. The claim and the wakers of those who moved up are foreign code too, so they are handed out.
    pub(crate) fn leave(&mut self, id: u64) -> Option<(Claim, Vec<Waker>)> {
        let index = self.position(id);
        let mut gone = if index == 0 {
            self.rest.pop_front()
        } else {
            self.rest.remove(index - 1)
        }?;
        if index == 0 {
            std::mem::swap(&mut self.head, &mut gone);
        }
        let held = index < self.admitted;
        self.admitted -= usize::from(held);
        let woken = if held || !seeded!(self, FollowersForgotten) {
            self.move_up()
        } else {
            Vec::new()
        };
        Some((gone, woken))
    }

    /// Holders first, in the order in which they asked.
    pub(crate) fn claims(&self) -> impl Iterator<Item = &Claim> {
        std::iter::once(&self.head).chain(&self.rest)
    }

    pub(crate) fn len(&self) -> usize {
        1 + self.rest.len()
    }

    pub(crate) fn holder_count(&self) -> usize {
        self.admitted
    }

    /// The holder that this task is, in a debug build.
    #[cfg(debug_assertions)]
    pub(crate) fn held_by(&self, task: &Waker) -> Option<&Claimant> {
        let is_mine = |claim: &&Claim| claim.task.as_ref().is_some_and(|known| known.will_wake(task));
        self.claims()
            .take(self.admitted)
            .find(is_mine)
            .map(|claim| &claim.claimant)
    }

    /// The one rule of exclusion.
    fn shares(&self, mode: Mode) -> bool {
        self.admitted == 0 || (mode == Mode::Read && self.head.claimant.mode == Mode::Read)
    }

    fn move_up(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        while self.admitted < self.len() && self.shares(self.claim(self.admitted).claimant.mode) {
            let next = self.claim_mut(self.admitted);
            next.claimant.since = Instant::now();
            woken.extend(next.waker.take());
            self.admitted += 1;
        }
        woken.truncate(if seeded!(self, OnlyFirstWoken) {
            1
        } else {
            usize::MAX
        });
        woken
    }

    fn position(&self, id: u64) -> usize {
        if self.head.id == id {
            return 0;
        }
        let found = self.rest.binary_search_by_key(&id, |claim| claim.id);
        // A reader that barges leaves the queue unsorted.
        let found = if seeded!(self, ReaderBarges) {
            self.claims().skip(1).position(|claim| claim.id == id).ok_or(0)
        } else {
            found
        };
        found.map_or(usize::MAX, |behind| behind + 1)
    }

    fn claim(&self, index: usize) -> &Claim {
        if index == 0 {
            &self.head
        } else {
            &self.rest[index - 1]
        }
    }

    fn claim_mut(&mut self, index: usize) -> &mut Claim {
        if index == 0 {
            &mut self.head
        } else {
            &mut self.rest[index - 1]
        }
    }
}

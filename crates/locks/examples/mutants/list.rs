//! The mutants: which rule is off, and the lines that switch it off.

/// A defect to plant.
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    /// What is wrong, as a sentence.
    pub(crate) says: &'static str,
    /// File below `src`, what stands there once, and what is put in its place.
    pub(crate) edits: &'static [(&'static str, &'static str, &'static str)],
}

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "look-up-then-claim",
        says: "the look-up and the claim are two critical sections",
        edits: &[
            (
                "names.rs",
                "        let mut table = self.table(hash);\n        table.next_id += 1;",
                "        let known = self.table(hash).slots.find(hash, |slot| slot.key == *key).is_some();\n        \
                 let mut table = self.table(hash);\n        table.next_id += 1;",
            ),
            (
                "names.rs",
                "|slot| slot.key == *key, |slot| slot.hash)",
                "|slot| known && slot.key == *key, |slot| slot.hash)",
            ),
        ],
    },
    Mutant {
        name: "count-after-await",
        says: "only a guard is counted: a waiter that goes stays in the queue",
        edits: &[(
            "names.rs",
            LEAVE,
            "if entry.get_mut().give_up(guard.id) {\n return;\n }\n if let Some((claim, woken)) = entry.get_mut().leave(guard.id) {",
        )],
    },
    Mutant {
        name: "hand-off-forgotten",
        says: "a waiter that is served, and goes before it looks, keeps the key",
        edits: &[(
            "names.rs",
            LEAVE,
            "if entry.get().first.id == guard.id && !entry.get().first.told {\n return;\n }\n if let Some((claim, woken)) = entry.get_mut().leave(guard.id) {",
        )],
    },
    Mutant {
        name: "remove-without-recheck",
        says: "the entry goes in a second critical section, which does not look again",
        edits: &[(
            "names.rs",
            "            let (slot, _) = entry.remove();",
            "            let gone: *const Slot<K> = &raw const **entry.get();\n            drop(table);\n            table = self.table(guard.hash);\n            \
             let same = |slot: &Box<Slot<K>>| std::ptr::eq(&raw const **slot, gone);\n            \
             let Ok(entry) = table.slots.find_entry(guard.hash, same) else {\n return;\n };\n            let (slot, _) = entry.remove();",
        )],
    },
    Mutant {
        name: "removed-by-hash",
        says: "a claim is looked for by its key's hash and not by its identity",
        edits: &[(
            "names.rs",
            "table.slots.find_entry(guard.hash, |slot| slot.has(guard.id))",
            "table.slots.find_entry(guard.hash, |slot| slot.hash == guard.hash)",
        )],
    },
    Mutant {
        name: "everyone-shares",
        says: "a reader is let in beside a writer",
        edits: &[(
            "slot.rs",
            "mode == Mode::Read && self.first.claimant.mode == Mode::Read",
            "mode == Mode::Read",
        )],
    },
    Mutant {
        name: "reader-barges",
        says: "a reader passes the writers that wait",
        edits: &[
            (
                "slot.rs",
                "self.sharing == self.rest.len() && self.shares(mode)",
                "self.shares(mode)",
            ),
            (
                "slot.rs",
                "        self.rest.push_back(claim);",
                "        let open = self.is_open(claim.claimant.mode);\n        \
                 self.rest.insert(if open { self.sharing - 1 } else { self.rest.len() }, claim);",
            ),
            (
                "slot.rs",
                "self.rest.binary_search_by_key(&id, |claim| claim.id).ok()",
                "self.rest.iter().position(|claim| claim.id == id)",
            ),
        ],
    },
    Mutant {
        name: "read-then-write",
        says: "a writer asks as a reader first (reload, then lock)",
        edits: &[(
            "names.rs",
            "self.acquire(key, Mode::Write, ask.into(), Location::caller())",
            "let (ask, site) = (ask.into(), Location::caller());\n        async move {\n            \
             drop(self.acquire(key, Mode::Read, ask.clone(), site).await?);\n            \
             self.acquire(key, Mode::Write, ask, site).await\n        }",
        )],
    },
    Mutant {
        name: "followers-forgotten",
        says: "a waiter that goes does not let those behind it move up",
        edits: &[(
            "slot.rs",
            "            self.sharing -= usize::from(index < self.sharing);\n",
            "            if index >= self.sharing {\n                return self.rest.remove(index).map(|gone| (gone, woken));\n            }\n            \
             self.sharing -= 1;\n",
        )],
    },
    Mutant {
        name: "heir-not-woken",
        says: "who becomes the first is not told",
        edits: &[("slot.rs", "woken.0 = next.wake();", "next.wake();")],
    },
    Mutant {
        name: "heir-still-counted",
        says: "a reader that becomes the first is counted among the others too",
        edits: &[("slot.rs", "                self.sharing -= 1;\n", "")],
    },
    Mutant {
        name: "joins-without-waker",
        says: "a request joins the queue and leaves its waker for its next look",
        edits: &[(
            "names.rs",
            "            claim.waker.get_or_insert_with(|| waker.clone());\n",
            "            claim.waker = None;\n",
        )],
    },
    Mutant {
        name: "wait-unsaid",
        says: "a guard does not know that its asker waited",
        edits: &[(
            "names.rs",
            "guard.waited = Some(served.unwrap_or(wait));",
            "let _ = served;",
        )],
    },
    Mutant {
        name: "only-first-woken",
        says: "of several readers that are let in together one is woken",
        edits: &[(
            "names.rs",
            ".chain(woken.0).for_each(Waker::wake)",
            ".chain(woken.0).take(1).for_each(Waker::wake)",
        )],
    },
    Mutant {
        name: "nobody-woken",
        says: "who moves up is not told",
        edits: &[(
            "names.rs",
            ".chain(woken.0).for_each(Waker::wake)",
            ".chain(woken.0).for_each(drop)",
        )],
    },
    Mutant {
        name: "stale-waker",
        says: "a waiter that moves to another task wakes the first",
        edits: &[(
            "slot.rs",
            "claim.waker.as_ref().is_some_and(|known| known.will_wake(waker))",
            "claim.waker.is_some()",
        )],
    },
    Mutant {
        name: "zero-waits",
        says: "a deadline of zero joins the queue",
        edits: &[("names.rs", "if wait.is_zero() {", "if wait == Duration::MAX {")],
    },
    Mutant {
        name: "unsorted-keys",
        says: "several keys are taken in the order in which they are given",
        edits: &[(
            "names.rs",
            "keys.sort_by(|one, other| one.0.cmp(&other.0).then(other.1.cmp(&one.1)));",
            "",
        )],
    },
    Mutant {
        name: "weaker-mode",
        says: "a key that is named twice is locked in the weaker mode",
        edits: &[(
            "names.rs",
            ".then(other.1.cmp(&one.1))",
            ".then(one.1.cmp(&other.1))",
        )],
    },
    Mutant {
        name: "deadline-for-each",
        says: "each of several keys has a deadline of its own",
        edits: &[("names.rs", "ask.rest(since), site", "ask.clone(), site")],
    },
    Mutant {
        name: "told-twice",
        says: "a deadline that passes is heard as a cancellation too",
        edits: &[(
            "slot.rs",
            "        claim.told = true;\n        !holds",
            "        !holds",
        )],
    },
    Mutant {
        name: "re-entrancy-unseen",
        says: "a task that asks for what it holds is not stopped",
        edits: &[(
            "names.rs",
            "let checked = self.checked && ",
            "let checked = false && ",
        )],
    },
    Mutant {
        name: "memory-kept",
        says: "a table that was large stays large",
        edits: &[(
            "names.rs",
            "self.slots.len() * 8 < self.slots.capacity()",
            "self.slots.capacity() == 0",
        )],
    },
    Mutant {
        name: "probe-then-permit",
        says: "the writer of a cell probes in the queue, not when its turn has come",
        edits: &[
            (
                "cell.rs",
                "        async move {\n            let permit",
                "        async move {\n            let base = self.refresh(ask.rest(since), site).await?;\n            let permit",
            ),
            (
                "cell.rs",
                "            let base = self.refresh(ask.rest(since), site).await?;\n            Ok(",
                "            Ok(",
            ),
        ],
    },
    Mutant {
        name: "permit-shared",
        says: "two writers of a cell at once",
        edits: &[(
            "cell.rs",
            "acquire(&\"writer\", Mode::Write",
            "acquire(&\"writer\", Mode::Read",
        )],
    },
    Mutant {
        name: "install-older",
        says: "a cell takes whatever it is given",
        edits: &[(
            "cell.rs",
            "if new.version <= current.version {",
            "if new.version == 0 {",
        )],
    },
    Mutant {
        name: "everyone-flies",
        says: "everyone who asks probes and loads",
        edits: &[(
            "cell.rs",
            "if flights.landed > noted {",
            "if flights.landed == u64::MAX {",
        )],
    },
    Mutant {
        name: "old-flight-joined",
        says: "a refresh is content with a probe that began before it asked",
        edits: &[(
            "cell.rs",
            "if flights.landed > noted {",
            "if flights.landed >= noted.max(1) {",
        )],
    },
    Mutant {
        name: "failure-forgotten",
        says: "who waited for a load that failed is told that it succeeded",
        edits: &[(
            "cell.rs",
            "flights.outcome = outcome.clone();",
            "flights.outcome = Ok(());",
        )],
    },
    Mutant {
        name: "loader-unbounded",
        says: "the deadline covers the queue and not the loader",
        edits: &[(
            "cell.rs",
            "within(since, ask.wait, self.reload())",
            "within(since, Duration::MAX, self.reload())",
        )],
    },
    Mutant {
        name: "no-load",
        says: "a stale cell is probed and not loaded",
        edits: &[(
            "cell.rs",
            "if self.loader.probe().await? > self.get().version {",
            "if self.loader.probe().await? > u64::MAX - 1 {",
        )],
    },
    Mutant {
        name: "load-always",
        says: "a fresh cell is loaded again",
        edits: &[(
            "cell.rs",
            "if self.loader.probe().await? > self.get().version {",
            "if self.loader.probe().await? >= self.get().version {",
        )],
    },
];

/// What a guard does in its drop.
const LEAVE: &str = "if let Some((claim, woken)) = entry.get_mut().leave(guard.id) {";

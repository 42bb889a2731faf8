//! A store that is right, in memory, with clients whose operations overlap at random: histories that must be accepted.
//!
//! Each operation has its effect at one moment between its beginning and its end, and the effects are applied in the
//! order of those moments. One that nobody saw answered has it later, or never.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use crate::operation::{Operation, Outcome, Tag, Verb};

/// What to simulate. One seed gives one history.
#[derive(Clone, Copy, Debug)]
pub struct Simulation {
    /// Of all that is random.
    pub seed: u64,
    /// How many operations, the final reads apart.
    pub operations: usize,
    /// How many clients have operations at once.
    pub clients: u32,
    /// How many of a hundred writes are not answered.
    pub unknown_percent: u64,
}

/// Hands over each operation once it is known how it ended.
pub fn simulate(simulation: &Simulation, mut each: impl FnMut(Operation)) {
    let mut run = Run {
        random: simulation.seed,
        unknown_percent: simulation.unknown_percent,
        values: 0,
        store: Store::default(),
        pending: BinaryHeap::new(),
        plans: Vec::new(),
        clocks: vec![0; simulation.clients as usize],
        tags: HashMap::new(),
    };
    let mut left = simulation.operations;
    for top in [plan(Verb::Create, &["m"]), plan(Verb::Create, &["m", "c"])] {
        let mut operation = top;
        (operation.begun, operation.ended) = (run.clocks[0] + 1, run.clocks[0] + 2);
        run.store.apply(&mut operation);
        run.clocks.fill(operation.ended);
        each(operation);
    }
    for client in 0..simulation.clients {
        run.begin(client);
    }
    while let Some(Reverse((_, number))) = run.pending.pop() {
        let mut plan = run.plans[number].take().unwrap_or_else(Plan::nothing);
        if plan.has_effect {
            let mut answered = plan.operation.clone();
            run.store.apply(&mut answered);
            if plan.is_answered {
                run.remember(&answered);
                plan.operation = answered;
            }
        }
        let (client, is_answered) = (plan.operation.process, plan.is_answered);
        each(plan.operation);
        left = left.saturating_sub(1);
        if is_answered && left > 0 {
            run.begin(client);
        }
    }
    run.read_everything(simulation.clients, each);
}

/// An operation on its way.
struct Plan {
    operation: Operation,
    has_effect: bool,
    is_answered: bool,
}

impl Plan {
    fn nothing() -> Plan {
        Plan {
            operation: plan(Verb::Load, &[]),
            has_effect: false,
            is_answered: true,
        }
    }
}

struct Run {
    random: u64,
    unknown_percent: u64,
    values: u64,
    store: Store,
    /// By the moment of the effect; the number is that of the plan.
    pending: BinaryHeap<Reverse<(u64, usize)>>,
    plans: Vec<Option<Plan>>,
    clocks: Vec<u64>,
    /// The last state of each path that anybody was told.
    tags: HashMap<Vec<String>, Tag>,
}

impl Run {
    /// The client's next operation; the next but one too if nobody answers that.
    fn begin(&mut self, client: u32) {
        loop {
            let mut operation = self.operation();
            let reads = matches!(operation.operation, Verb::Load | Verb::List);
            let is_answered = reads || self.below(100) >= self.unknown_percent;
            let begun = self.clocks[client as usize] + 1 + self.below(20);
            let mut effect = begun + self.below(50);
            let ended = begun + self.below(50) + if is_answered { effect - begun } else { 0 };
            if !is_answered {
                effect += self.below(100);
            }
            (operation.process, operation.server) = (client, client % 2);
            (operation.begun, operation.ended) = (begun, ended);
            self.clocks[client as usize] = ended;
            self.pending.push(Reverse((effect, self.plans.len())));
            let has_effect = is_answered || self.below(2) == 0;
            self.plans.push(Some(Plan {
                operation,
                has_effect,
                is_answered,
            }));
            if is_answered {
                return;
            }
        }
    }

    fn operation(&mut self) -> Operation {
        const SCHEMAS: [&str; 3] = ["s0", "s1", "s2"];
        const FILESETS: [&str; 5] = ["f0", "f1", "f2", "f3", "f4"];
        let schema = SCHEMAS[self.below_usize(SCHEMAS.len())];
        let fileset = FILESETS[self.below_usize(FILESETS.len())];
        let is_schema = self.below(100) < 15;
        let path: &[&str] = if is_schema {
            &["m", "c", schema]
        } else {
            &["m", "c", schema, fileset]
        };
        let verb = match self.below(100) {
            0..25 => Verb::Create,
            25..45 => Verb::Load,
            45..50 => Verb::List,
            50..80 => Verb::Set,
            80..88 if !is_schema => Verb::Rename,
            _ if is_schema && self.below(3) > 0 => Verb::Load,
            _ => Verb::Drop,
        };
        let mut operation = plan(verb, path);
        match verb {
            Verb::Create | Verb::Set => {
                self.values += 1;
                let key = ["a", "b", "c"][self.below_usize(3)];
                let value = format!("v{}", self.values);
                operation.sets.insert(key.to_owned(), value);
            }
            Verb::List => {
                operation.kind = "fileset".to_owned();
                operation.path.truncate(3);
            }
            Verb::Rename => {
                let names = FILESETS.into_iter().filter(|name| *name != fileset);
                let names: Vec<&str> = names.collect();
                operation.new_name = Some(names[self.below_usize(names.len())].to_owned());
            }
            Verb::Drop => operation.cascade = self.below(2) == 0,
            Verb::Load => {}
        }
        if matches!(verb, Verb::Set | Verb::Rename | Verb::Drop) && self.below(4) == 0 {
            operation.if_match = self.tags.get(&operation.path).copied();
        }
        operation
    }

    fn remember(&mut self, operation: &Operation) {
        if let (Some(id), Some(version)) = (operation.id, operation.version) {
            let mut path = operation.path.clone();
            if let Some(name) = &operation.new_name {
                path.pop();
                path.push(name.clone());
            }
            self.tags.insert(path, Tag { id, version });
        }
    }

    /// One more client loads all that is live, when all else has ended.
    fn read_everything(&mut self, client: u32, mut each: impl FnMut(Operation)) {
        // Later than anything that is still on its way.
        let mut now = self.clocks.iter().max().copied().unwrap_or(0) + 1_000;
        let paths: Vec<Vec<String>> = self.store.live.keys().cloned().collect();
        for path in paths {
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            let mut load = plan(Verb::Load, &names);
            load.process = client;
            (load.begun, load.ended) = (now, now + 1);
            now += 2;
            self.store.apply(&mut load);
            each(load);
        }
    }

    /// SplitMix64: short, and good enough for dice.
    fn below(&mut self, limit: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn below_usize(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).unwrap_or(1);
        usize::try_from(self.below(limit)).unwrap_or(0)
    }
}

fn plan(verb: Verb, path: &[&str]) -> Operation {
    let kind = ["metalake", "catalog", "schema", "fileset"];
    let kind = kind
        .get(path.len().saturating_sub(1))
        .copied()
        .unwrap_or("fileset");
    Operation::new(verb, kind, path.iter().map(|name| (*name).to_owned()).collect())
}

/// The tree, and what is in it.
#[derive(Default)]
struct Store {
    live: BTreeMap<Vec<String>, Row>,
    ids: i64,
}

struct Row {
    tag: Tag,
    properties: BTreeMap<String, String>,
}

impl Store {
    /// Does what is asked for, and answers.
    fn apply(&mut self, operation: &mut Operation) {
        operation.outcome = Outcome::Ok;
        operation.status = Some(200);
        operation.code = Some(0);
        let parent = operation.path.split_last().map_or(&[][..], |(_, parent)| parent);
        if !parent.is_empty() && !self.live.contains_key(parent) {
            return missing(operation);
        }
        if operation.operation == Verb::Create {
            return self.create(operation);
        }
        let Some(row) = self.live.get(&operation.path) else {
            return missing(operation);
        };
        let matches = operation.if_match.is_none_or(|tag| tag == row.tag);
        match operation.operation {
            _ if !matches => refuse(operation, 412, 1012),
            Verb::Create => {}
            Verb::Load => self.show(operation),
            Verb::List => {
                let names = self.live.keys().filter(|path| {
                    path.split_last()
                        .is_some_and(|(_, parent)| *parent == operation.path)
                });
                operation.names = Some(names.filter_map(|path| path.last().cloned()).collect());
            }
            Verb::Set => {
                if let Some(row) = self.live.get_mut(&operation.path) {
                    row.tag.version += 1;
                    row.properties.extend(operation.sets.clone());
                }
                self.show(operation);
            }
            Verb::Rename => self.rename(operation),
            Verb::Drop => {
                let below = self
                    .live
                    .keys()
                    .any(|path| path.len() > operation.path.len() && path.starts_with(&operation.path));
                if below && !operation.cascade {
                    return refuse(operation, 409, 1005);
                }
                self.live.retain(|path, _| !path.starts_with(&operation.path));
                operation.dropped = Some(true);
            }
        }
    }

    fn create(&mut self, operation: &mut Operation) {
        if self.live.contains_key(&operation.path) {
            return refuse(operation, 409, 1004);
        }
        self.ids += 1;
        let tag = Tag {
            id: self.ids,
            version: 1,
        };
        let properties = operation.sets.clone();
        self.live.insert(operation.path.clone(), Row { tag, properties });
        self.show(operation);
    }

    fn rename(&mut self, operation: &mut Operation) {
        let mut path = operation.path.clone();
        path.pop();
        path.extend(operation.new_name.clone());
        if self.live.contains_key(&path) {
            return refuse(operation, 409, 1004);
        }
        if let Some(mut row) = self.live.remove(&operation.path) {
            row.tag.version += 1;
            (operation.id, operation.version) = (Some(row.tag.id), Some(row.tag.version));
            operation.properties = Some(row.properties.clone());
            self.live.insert(path, row);
        }
    }

    fn show(&self, operation: &mut Operation) {
        if let Some(row) = self.live.get(&operation.path) {
            (operation.id, operation.version) = (Some(row.tag.id), Some(row.tag.version));
            operation.properties = Some(row.properties.clone());
        }
    }
}

fn missing(operation: &mut Operation) {
    if operation.operation == Verb::Drop && operation.if_match.is_none() {
        operation.dropped = Some(false);
    } else {
        refuse(operation, 404, 1003);
    }
}

fn refuse(operation: &mut Operation, status: u16, code: i64) {
    operation.outcome = Outcome::Refused;
    (operation.status, operation.code) = (Some(status), Some(code));
}

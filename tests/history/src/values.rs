//! H-LOST and H-INVENTED for properties: what an entity holds is replayed version by version, and each answer that
//! shows properties is compared with it.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::components::Components;
use crate::history::{Answer, Op, Symbol};
use crate::judge::Judge;
use crate::operation::Tag;
use crate::sighting::{Entity, Sighting};
use crate::verdict::Rule;

/// The value of one key.
#[derive(Clone, Copy, Debug)]
struct Held {
    value: Symbol,
    /// From this version on, or an earlier one if nobody saw it being written.
    since: u64,
    writer: usize,
}

/// One difference between what was seen and what was written.
struct Difference {
    rule: Rule,
    what: String,
    operations: Vec<usize>,
}

/// Writes of unknown outcome whose values were seen, each with the entity and the first version that shows it.
pub(crate) type Attributed = HashMap<usize, Tag>;

/// What the replay tells beside the differences.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    pub(crate) attributed: Attributed,
    /// Entities with a difference; what was behind it has not been replayed.
    pub(crate) broken: HashSet<i64>,
}

/// Looks at each entity, and reports the first difference of each.
pub(crate) fn check(judge: &mut Judge<'_>, entities: &[Entity<'_>], components: &Components) -> Replayed {
    let mut replayed = Replayed::default();
    for entity in entities {
        if let Some(difference) = replay(judge, entity, components, &mut replayed.attributed) {
            let name = judge.entity(entity.id, entity.place);
            judge.report(difference.rule, name, difference.what, &difference.operations);
            replayed.broken.insert(entity.id);
        }
    }
    replayed
}

fn replay(
    judge: &Judge<'_>,
    entity: &Entity<'_>,
    components: &Components,
    attributed: &mut Attributed,
) -> Option<Difference> {
    let mut held: BTreeMap<Symbol, Held> = BTreeMap::new();
    for sighting in entity.sightings {
        let op = &judge.history.operations[sighting.op];
        if sighting.writes {
            for (key, value) in &op.sets {
                let now = Held {
                    value: *value,
                    since: sighting.tag.version,
                    writer: sighting.op,
                };
                held.insert(*key, now);
            }
        }
        let Some(seen) = &op.seen else {
            continue;
        };
        let gone = held
            .iter()
            .find(|(key, _)| seen.binary_search_by_key(*key, |pair| pair.0).is_err());
        if let Some((key, held)) = gone {
            return Some(lost(judge, *key, held, sighting));
        }
        for (key, value) in seen {
            let known = held.get(key).copied();
            if known.is_some_and(|held| held.value == *value) {
                continue;
            }
            let look = Look {
                judge,
                entity,
                sighting,
                key: *key,
                known,
            };
            match look.writer_of(*value, components, attributed) {
                Ok(now) => held.insert(*key, now),
                Err(difference) => return Some(difference),
            };
        }
    }
    None
}

fn lost(judge: &Judge<'_>, key: Symbol, held: &Held, sighting: &Sighting) -> Difference {
    Difference {
        rule: Rule::Lost,
        what: format!(
            "version {} does not show `{}`={}, which is there since version {}",
            sighting.tag.version,
            judge.history.text(key),
            judge.history.text(held.value),
            held.since
        ),
        operations: vec![held.writer, sighting.op],
    }
}

/// A value that no acknowledged write of this entity has put there.
struct Look<'a> {
    judge: &'a Judge<'a>,
    entity: &'a Entity<'a>,
    sighting: &'a Sighting,
    key: Symbol,
    known: Option<Held>,
}

impl Look<'_> {
    /// The write of unknown outcome that explains it, or what is wrong.
    fn writer_of(
        &self,
        value: Symbol,
        components: &Components,
        attributed: &mut Attributed,
    ) -> Result<Held, Difference> {
        let history = self.judge.history;
        let Some(writer) = history.writers.get(&(self.key, value)).copied() else {
            return Err(self.invented(value, "which nobody asked for", &[]));
        };
        let op = &history.operations[writer];
        if op.begun > self.sighting.ended {
            return Err(self.invented(value, "before anybody asked for it", &[writer]));
        }
        match op.answer {
            Answer::Unknown => {}
            Answer::State(tag) if tag.id == self.entity.id => return Err(self.misplaced(value, writer, op)),
            Answer::State(_) => {
                return Err(self.invented(value, "which was written to another entity", &[writer]));
            }
            _ => return Err(self.invented(value, "which was refused", &[writer])),
        }
        let elsewhere = attributed.entry(writer).or_insert(self.sighting.tag).id != self.entity.id;
        if elsewhere || components.of(op.place) != components.of(self.entity.place) {
            return Err(self.invented(value, "which was asked of another entity", &[writer]));
        }
        let since = self.known.map_or(0, |held| held.since);
        if self.entity.missing_between(since, self.sighting.tag.version) == 0 {
            return Err(match self.known {
                Some(held) => lost(self.judge, self.key, &held, self.sighting),
                None => self.invented(value, "of a write that took none of its versions", &[writer]),
            });
        }
        Ok(Held {
            value,
            since: self.sighting.tag.version,
            writer,
        })
    }

    /// Written to this entity, at a version that is not this value's turn.
    fn misplaced(&self, value: Symbol, writer: usize, op: &Op) -> Difference {
        let version = op.tag().map_or(0, |tag| tag.version);
        match self.known {
            Some(held) if version <= self.sighting.tag.version => {
                lost(self.judge, self.key, &held, self.sighting)
            }
            _ => self.invented(value, "which a later version brought", &[writer]),
        }
    }

    fn invented(&self, value: Symbol, why: &str, more: &[usize]) -> Difference {
        let what = format!(
            "version {} shows `{}`={}, {why}",
            self.sighting.tag.version,
            self.judge.history.text(self.key),
            self.judge.history.text(value)
        );
        let operations = more.iter().copied().chain([self.sighting.op]).collect();
        Difference {
            rule: Rule::Invented,
            what,
            operations,
        }
    }
}

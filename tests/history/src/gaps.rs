//! H-VERSIONS once more, where the values tell more than the numbers: a version that nobody was told of was made by a
//! write of unknown outcome, and such a write shows its value in the next answer, unless it was overwritten by then, or
//! it was a rename and the entity has moved.

use std::collections::{HashMap, HashSet};

use crate::components::Components;
use crate::history::{History, Symbol};
use crate::judge::Judge;
use crate::operation::{Tag, Verb};
use crate::sighting::{Entity, Sighting};
use crate::values::{Attributed, Replayed};
use crate::verdict::Rule;

/// Looks at each entity, and reports the first gap of each that nothing explains.
pub(crate) fn check(
    judge: &mut Judge<'_>,
    entities: &[Entity<'_>],
    components: &Components,
    replayed: &Replayed,
) {
    let hidden = Hidden::of(judge.history, components, &replayed.attributed);
    let mut shown: HashMap<Tag, Vec<usize>> = HashMap::new();
    for (writer, tag) in &replayed.attributed {
        shown.entry(*tag).or_default().push(*writer);
    }
    let has_gaps = |entity: &&Entity<'_>| !entity.missing.is_empty() && !replayed.broken.contains(&entity.id);
    for entity in entities.iter().filter(has_gaps) {
        for gap in gaps(judge.history, entity) {
            let shown = shown.get(&gap.after.tag).map_or(&[][..], Vec::as_slice);
            let name = judge.entity(entity.id, entity.place);
            let around: Vec<usize> = gap
                .before
                .iter()
                .chain([&gap.after])
                .map(|seen| seen.op)
                .collect();
            if shown.len() as u64 > gap.versions {
                let what = format!(
                    "{} writes of unknown outcome show by version {}, which has room for {}",
                    shown.len(),
                    gap.after.tag.version,
                    gap.versions
                );
                judge.report(Rule::Versions, name, what, &[&around[..], shown].concat());
                break;
            }
            // Two of them may hide each other.
            let is_single = gap.versions == 1 && gap.version > 1;
            if is_single && shown.is_empty() && !hidden.explains(judge.history, entity, &gap, components) {
                let what = format!(
                    "nobody was told of a write that took version {}, and none of unknown outcome shows",
                    gap.version
                );
                judge.report(Rule::Versions, name, what, &around);
                break;
            }
        }
    }
}

/// Missing versions between two answers that show properties.
struct Gap {
    /// How many there are, and the first.
    versions: u64,
    version: u64,
    /// The last sighting before the first of them.
    before: Option<Sighting>,
    /// The answer that would show what they wrote.
    after: Sighting,
    /// The first sighting at or after the first of them.
    next: Sighting,
    /// By when somebody had seen the version.
    seen: u64,
    /// What acknowledged writes have overwritten by then.
    overwritten: HashSet<Symbol>,
}

/// The gaps of an entity, in order. What no answer shows is left out.
fn gaps(history: &History, entity: &Entity<'_>) -> Vec<Gap> {
    let mut gaps: Vec<Gap> = Vec::new();
    for missing in &entity.missing {
        if let Some(gap) = gaps
            .last_mut()
            .filter(|gap| gap.after.tag.version >= missing.first)
        {
            gap.versions += missing.count();
            continue;
        }
        let at = entity
            .sightings
            .partition_point(|sighting| sighting.tag.version < missing.first);
        let later = &entity.sightings[at..];
        let shows = |sighting: &&Sighting| history.operations[sighting.op].seen.is_some();
        let (Some(next), Some(after)) = (later.first(), later.iter().find(shows)) else {
            break;
        };
        let until = later
            .iter()
            .take_while(|sighting| sighting.tag.version <= after.tag.version);
        let writes = until.filter(|sighting| sighting.writes);
        let sets = writes.flat_map(|write| history.operations[write.op].sets.iter().map(|set| set.0));
        gaps.push(Gap {
            versions: missing.count(),
            version: missing.first,
            before: at.checked_sub(1).map(|before| entity.sightings[before]),
            after: *after,
            next: *next,
            seen: missing.seen,
            overwritten: sets.collect(),
        });
    }
    gaps
}

/// Writes of unknown outcome that no answer shows, by what they might explain; of each the first that began.
#[derive(Default)]
struct Hidden {
    sets: HashMap<(usize, Symbol), u64>,
    pinned_sets: HashMap<(Tag, Symbol), u64>,
    renames: HashMap<usize, u64>,
}

impl Hidden {
    fn of(history: &History, components: &Components, attributed: &Attributed) -> Hidden {
        let mut hidden = Hidden::default();
        for (number, op) in history.operations.iter().enumerate() {
            if !op.is_unknown_write() || attributed.contains_key(&number) {
                continue;
            }
            let component = components.of(op.place);
            match (op.verb, op.if_match) {
                (Verb::Set, None) => {
                    for (key, _) in &op.sets {
                        earlier(hidden.sets.entry((component, *key)), op.begun);
                    }
                }
                (Verb::Set, Some(tag)) => {
                    for (key, _) in &op.sets {
                        earlier(hidden.pinned_sets.entry((tag, *key)), op.begun);
                    }
                }
                (Verb::Rename, _) => earlier(hidden.renames.entry(component), op.begun),
                (Verb::Create | Verb::Drop | Verb::Load | Verb::List, _) => {}
            }
        }
        hidden
    }

    fn explains(&self, history: &History, entity: &Entity<'_>, gap: &Gap, components: &Components) -> bool {
        let in_time = |begun: Option<&u64>| begun.is_some_and(|begun| *begun < gap.seen);
        let component = components.of(entity.place);
        let before = Tag {
            id: entity.id,
            version: gap.version.saturating_sub(1),
        };
        let overwritten = gap.overwritten.iter().any(|key| {
            in_time(self.sets.get(&(component, *key))) || in_time(self.pinned_sets.get(&(before, *key)))
        });
        // Where the entity was at the next sighting; a rename starts from where it was.
        let next = &history.operations[gap.next.op];
        let was_at = if gap.next.tag.version > gap.version {
            Some(next.place)
        } else {
            gap.next.place
        };
        let has_moved = gap.before.and_then(|before| before.place) != was_at;
        overwritten || has_moved && in_time(self.renames.get(&component))
    }
}

fn earlier<K>(entry: std::collections::hash_map::Entry<'_, K, u64>, begun: u64) {
    let first = entry.or_insert(begun);
    *first = begun.min(*first);
}

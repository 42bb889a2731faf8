//! H-VERSIONS and H-MATCH: the writes of an entity, in the order of their versions.

use std::collections::{HashMap, HashSet};

use crate::components::Components;
use crate::history::{History, PlaceId};
use crate::judge::Judge;
use crate::operation::{Tag, Verb};
use crate::sighting::{Entity, Sighting};
use crate::verdict::Rule;

/// The entities whose versions are in order, and where the others were.
pub(crate) struct Ordered<'s> {
    pub(crate) entities: Vec<Entity<'s>>,
    pub(crate) broken: HashSet<PlaceId>,
}

/// Looks at each entity.
pub(crate) fn check<'s>(
    judge: &mut Judge<'_>,
    sightings: &'s [Sighting],
    components: &Components,
) -> Ordered<'s> {
    let unknown = Unknown::of(judge.history, components);
    let mut entities = Vec::new();
    let mut broken = HashSet::new();
    for group in sightings.chunk_by(|a, b| a.tag.id == b.tag.id) {
        judge.verdict.entities += 1;
        let Some(place) = group.iter().find_map(|sighting| sighting.place) else {
            // Pinned and dropped, and never seen otherwise: whoever pinned it made it up.
            let op = group[0].op;
            let place = judge.history.operations[op].place;
            let entity = judge.entity(group[0].tag.id, place);
            judge.report(Rule::Invented, entity, "nobody was ever told of this id", &[op]);
            continue;
        };
        let entity = Entity::new(group[0].tag.id, group, place);
        if is_one_order(judge, &entity) && has_room(judge, &entity, &unknown, components) {
            preconditions_held(judge, &entity);
            entities.push(entity);
        } else {
            broken.extend(group.iter().filter_map(|sighting| sighting.place));
        }
    }
    let unexplained = unknown.account_for(judge, &entities, components);
    entities.retain(|entity| {
        let is_broken = unexplained.contains(&entity.id);
        if is_broken {
            broken.extend(entity.sightings.iter().filter_map(|sighting| sighting.place));
        }
        !is_broken
    });
    Ordered { entities, broken }
}

/// Each version has one write, the first is a create's, and nothing comes after the end.
fn is_one_order(judge: &mut Judge<'_>, entity: &Entity<'_>) -> bool {
    let name = judge.entity(entity.id, entity.place);
    let verb = |sighting: &Sighting| judge.history.operations[sighting.op].verb;
    let writes: Vec<&Sighting> = entity
        .sightings
        .iter()
        .filter(|sighting| sighting.writes)
        .collect();
    let creates: Vec<usize> = writes
        .iter()
        .filter(|write| verb(write) == Verb::Create)
        .map(|write| write.op)
        .collect();
    if creates.len() > 1 {
        let what = "one entity was given to two creates";
        judge.report(Rule::Unique, name, what, &creates[..2]);
        return false;
    }
    if let Some(pair) = writes.windows(2).find(|pair| pair[0].tag == pair[1].tag) {
        let what = format!("two writes took version {}", pair[0].tag.version);
        judge.report(Rule::Versions, name, what, &[pair[0].op, pair[1].op]);
        return false;
    }
    let wrong = writes
        .iter()
        .find(|write| (write.tag.version <= 1) != (verb(write) == Verb::Create) || write.tag.version == 0);
    if let Some(wrong) = wrong {
        let what = format!("version {} is not what this write can make", wrong.tag.version);
        judge.report(Rule::Versions, name, what, &[wrong.op]);
        return false;
    }
    let end = entity.sightings.iter().find(|sighting| sighting.place.is_none());
    let after = end.and_then(|end| {
        let mut sightings = entity.sightings.iter();
        let after =
            sightings.find(|sighting| sighting.op != end.op && sighting.tag.version >= end.tag.version);
        after.map(|after| (end, after))
    });
    if let Some((end, after)) = after {
        let what = format!(
            "it was there after the drop that took version {}",
            end.tag.version
        );
        judge.report(Rule::Dropped, name, what, &[end.op, after.op]);
        return false;
    }
    true
}

/// More versions that no acknowledged write took than there are unknown writes cannot be explained. An entity of which
/// that is so takes none of them away from others.
fn has_room(judge: &mut Judge<'_>, entity: &Entity<'_>, unknown: &Unknown, components: &Components) -> bool {
    let component = components.of(entity.place);
    let [mut creates, mut writes] = [true, false].map(|creates| unknown.begun(component, creates).len());
    let beyond = entity.missing.iter().find(|missing| {
        let room = if missing.first == 1 {
            &mut creates
        } else {
            &mut writes
        };
        let left = usize::try_from(missing.count())
            .ok()
            .and_then(|count| room.checked_sub(count));
        *room = left.unwrap_or_default();
        left.is_none()
    });
    if let Some(beyond) = beyond {
        report_missing(judge, entity, beyond.first);
    }
    beyond.is_none()
}

fn report_missing(judge: &mut Judge<'_>, entity: &Entity<'_>, version: u64) {
    let name = judge.entity(entity.id, entity.place);
    let before = entity
        .sightings
        .iter()
        .rev()
        .find(|sighting| sighting.tag.version < version);
    let after = entity
        .sightings
        .iter()
        .find(|sighting| sighting.tag.version >= version);
    let around: Vec<usize> = before
        .into_iter()
        .chain(after)
        .map(|sighting| sighting.op)
        .collect();
    if version == 1 {
        judge.report(Rule::Invented, name, "nobody created it", &around);
    } else {
        let what = format!(
            "nobody was told of a write that took version {version}, and no write of unknown outcome explains it"
        );
        judge.report(Rule::Versions, name, what, &around);
    }
}

/// H-MATCH. A drop needs no look: its version is derived from what it was pinned to.
fn preconditions_held(judge: &mut Judge<'_>, entity: &Entity<'_>) {
    for sighting in entity.sightings.iter().filter(|sighting| sighting.writes) {
        let Some(pinned) = judge.history.operations[sighting.op].if_match else {
            continue;
        };
        let next = Tag {
            version: pinned.version.saturating_add(1),
            ..pinned
        };
        if sighting.tag != next {
            let name = judge.entity(entity.id, entity.place);
            let what = format!("a write under If-Match {pinned} made {}", sighting.tag);
            judge.report(Rule::Match, name, what, &[sighting.op]);
        }
    }
}

/// Versions that nobody was told of: when they had been seen, of which entity, the first, how many.
type Slots = (u64, usize, u64, u64);

/// The writes of unknown outcome, by component and in the order in which they began. Each accounts for one version.
#[derive(Default)]
struct Unknown {
    creates: HashMap<usize, Vec<u64>>,
    writes: HashMap<usize, Vec<u64>>,
}

impl Unknown {
    fn of(history: &History, components: &Components) -> Unknown {
        let mut unknown = Unknown::default();
        for op in history.operations.iter().filter(|op| op.is_unknown_write()) {
            let begun = match op.verb {
                Verb::Create => &mut unknown.creates,
                Verb::Set | Verb::Rename => &mut unknown.writes,
                // Nothing is seen of an entity at the version that a drop takes.
                Verb::Drop | Verb::Load | Verb::List => continue,
            };
            begun.entry(components.of(op.place)).or_default().push(op.begun);
        }
        for begun in unknown.creates.values_mut().chain(unknown.writes.values_mut()) {
            begun.sort_unstable();
        }
        unknown
    }

    /// When those of one component began: the creates, or the other writes.
    fn begun(&self, component: usize, creates: bool) -> &[u64] {
        let begun = if creates { &self.creates } else { &self.writes };
        begun.get(&component).map_or(&[][..], Vec::as_slice)
    }

    /// Reports the versions that these writes do not account for. A version may be any write's that began before it
    /// was seen, so those that can be each other's form a chain, and counting along it is exact for one component.
    fn account_for(
        &self,
        judge: &mut Judge<'_>,
        entities: &[Entity<'_>],
        components: &Components,
    ) -> HashSet<i64> {
        let mut slots: HashMap<(usize, bool), Vec<Slots>> = HashMap::new();
        for (index, entity) in entities.iter().enumerate() {
            let component = components.of(entity.place);
            for missing in &entity.missing {
                let slots = slots.entry((component, missing.first == 1)).or_default();
                slots.push((missing.seen, index, missing.first, missing.count()));
            }
        }
        let mut broken = HashSet::new();
        for ((component, creates), mut slots) in slots {
            slots.sort_unstable();
            let begun = self.begun(component, creates);
            let mut accounted = 0;
            for (seen, index, first, count) in slots {
                let candidates = begun.partition_point(|begun| *begun < seen) as u64;
                let explained = count.min(candidates.saturating_sub(accounted));
                accounted += explained;
                if explained < count && broken.insert(entities[index].id) {
                    report_missing(judge, &entities[index], first + explained);
                }
            }
        }
        broken
    }
}

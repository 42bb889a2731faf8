//! Stays: an entity at one place, from the write that brought it there to the one that took it away.

use std::collections::HashSet;

use crate::history::{History, PlaceId};
use crate::index::Index;
use crate::judge::Judge;
use crate::operation::Verb;
use crate::sighting::{Entity, Sighting};
use crate::verdict::Rule;

/// One of them. It covers at least the time from `surely_from` to `last_seen`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stay {
    pub(crate) id: i64,
    pub(crate) place: PlaceId,
    /// The first moment by which it had certainly begun, and the operation that shows it.
    pub(crate) surely_from: u64,
    pub(crate) first: usize,
    /// The last moment at which somebody asked who then saw it.
    pub(crate) last_seen: u64,
    pub(crate) last: usize,
    /// When the write began that ended it; none if nothing is known of its end.
    pub(crate) left: Option<u64>,
}

/// The stays of all entities. What is at two places at one version is reported, and left out.
pub(crate) fn stays(
    judge: &mut Judge<'_>,
    entities: &[Entity<'_>],
    index: &Index,
    broken: &mut HashSet<PlaceId>,
) -> Vec<Stay> {
    let mut stays = Vec::new();
    for entity in entities {
        match stays_of(judge.history, entity, index) {
            Ok(found) => stays.extend(found),
            Err((before, after)) => {
                let name = judge.entity(entity.id, entity.place);
                let what = format!("nothing moved it before version {}", after.tag.version);
                judge.report(Rule::Versions, name, what, &[before.op, after.op]);
                broken.extend(entity.sightings.iter().filter_map(|sighting| sighting.place));
            }
        }
    }
    stays
}

fn stays_of(
    history: &History,
    entity: &Entity<'_>,
    index: &Index,
) -> Result<Vec<Stay>, (Sighting, Sighting)> {
    let mut stays: Vec<Stay> = Vec::new();
    let mut before: Option<Sighting> = None;
    for sighting in entity.sightings {
        let Some(place) = sighting.place else {
            // A drop that was pinned to this entity.
            if let Some(stay) = stays.last_mut() {
                stay.left = Some(sighting.begun);
            }
            continue;
        };
        let op = &history.operations[sighting.op];
        let moves = op.verb == Verb::Rename;
        // A rename was at its source until then.
        let expected = if moves { op.place } else { place };
        let unseen = before.map_or(0, |before| {
            entity.missing_between(before.tag.version, sighting.tag.version)
        });
        match (stays.last_mut(), before) {
            (Some(stay), Some(before)) => {
                let stayed = stay.place == expected;
                // Away and back, by two renames that nobody saw answered.
                let may_have_moved = unseen >= 2 && index.at(place).may_be_renamed_unseen;
                if !stayed && unseen == 0 {
                    return Err((before, *sighting));
                }
                if stayed && !moves && !may_have_moved {
                    see(stay, sighting);
                } else {
                    // By this rename, or by one that nobody saw, as soon as nobody looked.
                    stay.left = Some(if stayed && moves { sighting.begun } else { 0 });
                    stays.push(begin(entity.id, place, sighting));
                }
            }
            _ => stays.push(begin(entity.id, place, sighting)),
        }
        before = Some(*sighting);
    }
    Ok(stays)
}

fn begin(id: i64, place: PlaceId, sighting: &Sighting) -> Stay {
    Stay {
        id,
        place,
        surely_from: sighting.ended,
        first: sighting.op,
        last_seen: sighting.begun,
        last: sighting.op,
        left: None,
    }
}

fn see(stay: &mut Stay, sighting: &Sighting) {
    if sighting.ended < stay.surely_from {
        (stay.surely_from, stay.first) = (sighting.ended, sighting.op);
    }
    if sighting.begun > stay.last_seen {
        (stay.last_seen, stay.last) = (sighting.begun, sighting.op);
    }
}

//! H-REALTIME: what ended before something else began has the smaller version, or the same where the later one only
//! reads.
//!
//! Versions are why this is cheap: they are the order, so nothing has to be searched for. One pass over the sightings
//! by time is enough, with the highest version among those that have ended.

use crate::judge::Judge;
use crate::sighting::{Entity, Sighting};
use crate::verdict::Rule;

/// Looks at each entity, and reports the first step back of each.
pub(crate) fn check(judge: &mut Judge<'_>, entities: &[Entity<'_>]) {
    for entity in entities {
        if let Some((before, after)) = step_back(entity.sightings) {
            let name = judge.entity(entity.id, entity.place);
            let (rule, what) = if before.place.is_none() {
                let what = format!("version {} was there after its drop", after.tag.version);
                (Rule::Dropped, what)
            } else if after.writes {
                let what = format!(
                    "version {} was seen before the write of version {} began",
                    before.tag.version, after.tag.version
                );
                (Rule::Realtime, what)
            } else {
                let what = format!(
                    "version {} was read after version {} had been answered",
                    after.tag.version, before.tag.version
                );
                (Rule::Realtime, what)
            };
            judge.report(rule, name, what, &[before.op, after.op]);
        }
    }
}

fn step_back(sightings: &[Sighting]) -> Option<(Sighting, Sighting)> {
    let mut by_begun: Vec<&Sighting> = sightings.iter().collect();
    by_begun.sort_unstable_by_key(|sighting| sighting.begun);
    let mut by_ended = by_begun.clone();
    by_ended.sort_unstable_by_key(|sighting| sighting.ended);
    let mut ended = by_ended.into_iter().peekable();
    let mut newest: Option<&Sighting> = None;
    for sighting in by_begun {
        while let Some(done) = ended.next_if(|done| done.ended < sighting.begun) {
            if newest.is_none_or(|newest| newest.tag.version < done.tag.version) {
                newest = Some(done);
            }
        }
        let Some(newest) = newest else {
            continue;
        };
        let (before, after) = (newest.tag.version, sighting.tag.version);
        if after < before || after == before && sighting.writes {
            return Some((*newest, *sighting));
        }
    }
    None
}

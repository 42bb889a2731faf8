//! Where and when the state of an entity was seen: the answers that name an id and a version.

use crate::history::{Answer, History, NEVER, Op, PlaceId};
use crate::operation::{Tag, Verb};

/// One answer that shows an entity at a version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sighting {
    pub(crate) tag: Tag,
    /// Its index in the history.
    pub(crate) op: usize,
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    /// Whether the operation made this version.
    pub(crate) writes: bool,
    /// Where the entity is at this version; none once it is dropped.
    pub(crate) place: Option<PlaceId>,
}

/// All of them, by id, then by version, the write of a version before its reads.
pub(crate) fn sightings(history: &History) -> Vec<Sighting> {
    let found = history.operations.iter().enumerate();
    let mut found: Vec<Sighting> = found.filter_map(|(index, op)| sighting(index, op)).collect();
    found.sort_unstable_by_key(|sighting| (sighting.tag, !sighting.writes, sighting.op));
    found
}

fn sighting(index: usize, op: &Op) -> Option<Sighting> {
    let (tag, place) = match (&op.answer, op.if_match) {
        (Answer::State(tag), _) => (*tag, Some(op.target.unwrap_or(op.place))),
        // A drop tells no state, but one that was pinned to a state and done took the version after it.
        (Answer::Dropped(true), Some(pinned)) => {
            let version = pinned.version.saturating_add(1);
            (Tag { version, ..pinned }, None)
        }
        _ => return None,
    };
    Some(Sighting {
        tag,
        op: index,
        begun: op.begun,
        ended: op.ended,
        writes: op.verb != Verb::Load,
        place,
    })
}

/// Everything that is known of one entity once its versions are in order.
#[derive(Clone, Debug)]
pub(crate) struct Entity<'s> {
    pub(crate) id: i64,
    /// By version.
    pub(crate) sightings: &'s [Sighting],
    /// Versions that no acknowledged write took, in order.
    pub(crate) missing: Vec<u64>,
    /// Where it was seen first.
    pub(crate) place: PlaceId,
}

impl Entity<'_> {
    /// How many versions after the first and up to the second were made by writes that nobody saw answered.
    pub(crate) fn missing_between(&self, after: u64, until: u64) -> usize {
        let count = |version: u64| self.missing.partition_point(|missing| *missing <= version);
        count(until).saturating_sub(count(after))
    }

    /// For each missing version, the first moment by which somebody had seen it or a later one.
    pub(crate) fn missing_seen_by(&self) -> Vec<(u64, u64)> {
        let mut later = self.sightings.iter().rev().peekable();
        let mut seen = NEVER;
        let mut found = Vec::new();
        for version in self.missing.iter().rev() {
            while let Some(sighting) = later.next_if(|sighting| sighting.tag.version >= *version) {
                seen = seen.min(sighting.ended);
            }
            found.push((*version, seen));
        }
        found
    }
}

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
    pub(crate) missing: Vec<Missing>,
    /// Where it was seen first.
    pub(crate) place: PlaceId,
}

/// Versions one after the other that nobody was told of, and that came to sight together. A range and not a list: a
/// version is a number that anybody can write into a file, and must not decide how much memory it takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Missing {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// The first moment by which somebody had seen one of them or a later one.
    pub(crate) seen: u64,
    /// How many are missing before the first.
    earlier: u64,
}

impl Missing {
    pub(crate) fn count(&self) -> u64 {
        self.last - self.first + 1
    }
}

impl<'s> Entity<'s> {
    pub(crate) fn new(id: i64, sightings: &'s [Sighting], place: PlaceId) -> Entity<'s> {
        Entity {
            id,
            sightings,
            missing: missing(sightings),
            place,
        }
    }

    /// How many versions after the first and up to the second were made by writes that nobody saw answered.
    pub(crate) fn missing_between(&self, after: u64, until: u64) -> u64 {
        let count = |version: u64| {
            let begun = self.missing.partition_point(|missing| missing.first <= version);
            let last = begun.checked_sub(1).map(|last| &self.missing[last]);
            last.map_or(0, |last| last.earlier + (version.min(last.last) - last.first + 1))
        };
        count(until).saturating_sub(count(after))
    }
}

/// The first version is apart from those that follow: only a create can have made it. A version at which somebody has
/// seen the entity ends a range, so there is at most one range more than sightings.
fn missing(sightings: &[Sighting]) -> Vec<Missing> {
    let (mut found, mut next, mut earlier) = (Vec::new(), 1, 0);
    let mut add = |first: u64, last: u64| {
        if first <= last {
            let missing = Missing {
                first,
                last,
                seen: NEVER,
                earlier,
            };
            earlier += missing.count();
            found.push(missing);
        }
    };
    for group in sightings.chunk_by(|a, b| a.tag.version == b.tag.version) {
        let version = group[0].tag.version;
        // The write of a version stands before its reads.
        let last = if group[0].writes {
            version.saturating_sub(1)
        } else {
            version
        };
        if next == 1 {
            add(1, last.min(1));
        }
        add(next.max(2), last);
        next = version.saturating_add(1);
    }
    let (mut later, mut seen) = (sightings.iter().rev().peekable(), NEVER);
    for missing in found.iter_mut().rev() {
        while let Some(sighting) = later.next_if(|sighting| sighting.tag.version >= missing.last) {
            seen = seen.min(sighting.ended);
        }
        missing.seen = seen;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_as_a_look_at_each_version_would() {
        let seen = |&(version, writes, ended): &(u64, bool, u64)| Sighting {
            tag: Tag { id: 7, version },
            op: 0,
            begun: 0,
            ended,
            writes,
            place: None,
        };
        let mut history = History::default();
        let kind = history.symbol("schema");
        let place = history.place(kind, &[kind]);
        for told in [
            &[
                (3, false, 50),
                (4, true, 20),
                (4, false, 10),
                (9, true, 40),
                (12, false, 30),
                (13, false, 70),
            ][..],
            &[(1, true, 5), (1, false, 9), (5, true, 8), (6, true, 7)],
            &[(0, false, 5), (1, false, 4), (2, false, 3)],
            &[(1, true, 1)],
        ] {
            let sightings: Vec<Sighting> = told.iter().map(seen).collect();
            let entity = Entity::new(7, &sightings, place);
            let is_missing = |version: u64| {
                let last = told[told.len() - 1].0;
                version <= last && !told.iter().any(|(at, writes, _)| *writes && *at == version)
            };
            for version in 1..16 {
                let found = entity
                    .missing
                    .iter()
                    .find(|missing| (missing.first..=missing.last).contains(&version));
                let later = told
                    .iter()
                    .filter(|(at, ..)| *at >= version)
                    .map(|(.., ended)| *ended);
                let seen = later.min().filter(|_| is_missing(version));
                assert_eq!(found.map(|missing| missing.seen), seen, "{told:?} {version}");
                assert!(found.is_none_or(|missing| (missing.first == 1) == (version == 1)));
                for after in 0..version {
                    let count = (after + 1..=version)
                        .filter(|version| is_missing(*version))
                        .count();
                    assert_eq!(
                        entity.missing_between(after, version),
                        count as u64,
                        "{told:?} {after}-{version}"
                    );
                }
            }
        }
    }
}

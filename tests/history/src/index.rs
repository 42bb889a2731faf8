//! What happened at each place: who may have come, who may have gone, and when it was surely empty.

use std::collections::HashMap;

use crate::history::{Answer, History, Op, PlaceId, Symbol};
use crate::operation::Verb;
use crate::ranges::{Range, Ranges};

/// All places.
pub(crate) struct Index {
    places: Vec<Place>,
}

/// One place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// Where its ancestors are, from the top; one that cannot be told by its names is left out.
    pub(crate) ancestors: Vec<PlaceId>,
    /// Of what a list names as its parent, which has no kind there: the place itself.
    pub(crate) proper: Option<PlaceId>,
    /// Writes that brought an entity here, or may have.
    pub(crate) arrivals: Ranges,
    /// Those of them that were acknowledged.
    pub(crate) arrived: Ranges,
    /// Writes that may have taken away whichever entity was here.
    pub(crate) removals: Ranges,
    /// Writes that took an entity away.
    pub(crate) removed: Ranges,
    /// The same, and those that may have.
    pub(crate) gone: Ranges,
    /// Acknowledged drops.
    pub(crate) drops: Ranges,
    /// Operations during which there was a moment with nothing here.
    pub(crate) vacant: Ranges,
    /// Whether a rename from here has an unknown outcome.
    pub(crate) may_be_renamed_unseen: bool,
}

impl Index {
    pub(crate) fn of(history: &History) -> Index {
        let mut index = Index {
            places: ancestors(history),
        };
        for (number, op) in history.operations.iter().enumerate() {
            index.add(number, op);
        }
        for place in &mut index.places {
            for ranges in [
                &mut place.arrivals,
                &mut place.arrived,
                &mut place.removals,
                &mut place.removed,
                &mut place.gone,
                &mut place.drops,
                &mut place.vacant,
            ] {
                ranges.seal();
            }
        }
        index
    }

    pub(crate) fn at(&self, place: PlaceId) -> &Place {
        &self.places[place.index()]
    }

    fn add(&mut self, number: usize, op: &Op) {
        let range = Range {
            begun: op.begun,
            ended: op.ended,
            op: number,
        };
        let sure = op.is_acknowledged_write();
        let possible = sure || op.is_unknown_write();
        if matches!(op.answer, Answer::Missing | Answer::Dropped(false)) {
            let nameless = op.listed.map(|_| self.at(op.place).proper);
            if let Some(place) = nameless.unwrap_or(Some(op.place)) {
                self.places[place.index()].vacant.add(range);
            }
        }
        let place = &mut self.places[op.place.index()];
        if possible && matches!(op.verb, Verb::Drop | Verb::Rename) {
            place.gone.add(range);
        }
        match op.verb {
            Verb::Drop if sure => {
                place.drops.add(range);
                place.removed.add(range);
                place.vacant.add(range);
                // A drop that was pinned is known to have met its entity, and no other.
                if op.if_match.is_none() {
                    place.removals.add(range);
                }
            }
            Verb::Drop if possible => place.removals.add(range),
            Verb::Rename if sure => {
                place.removed.add(range);
                place.vacant.add(range);
            }
            Verb::Rename if possible => {
                place.removals.add(range);
                place.may_be_renamed_unseen = true;
            }
            _ => {}
        }
        let arrives_at = match op.verb {
            Verb::Create => Some(op.place),
            _ => op.target,
        };
        if let Some(arrives_at) = arrives_at.filter(|_| possible) {
            let place = &mut self.places[arrives_at.index()];
            place.arrivals.add(range);
            if sure {
                place.arrived.add(range);
            }
        }
    }
}

impl Place {
    /// What shows that nothing was here at any moment of this time.
    pub(crate) fn surely_empty(&self, begun: u64, ended: u64) -> Option<Empty> {
        let since = self.vacant.last_ended_before(begun);
        if self.may_have_arrived(since.map(|since| since.begun), ended) {
            return None;
        }
        Some(since.map_or(Empty::Always, |since| Empty::Since(since.op)))
    }

    /// Whether something may have come after that moment and before this time had ended.
    pub(crate) fn may_have_arrived(&self, after: Option<u64>, ended: u64) -> bool {
        self.arrivals_between(after, ended) > 0
    }

    /// How many may have come after that moment and before this one.
    pub(crate) fn arrivals_between(&self, after: Option<u64>, before: u64) -> usize {
        let settled = after.map_or(0, |after| self.arrivals.count_ended_by(after));
        self.arrivals
            .count_begun_before(before.saturating_add(1))
            .saturating_sub(settled)
    }
}

/// Why a place is known to be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Empty {
    /// Nothing had ever come.
    Always,
    /// This operation left or found it so, and nothing has come since.
    Since(usize),
}

/// The places, each with its ancestors: the one place of those names, whatever its kind, that something happened at.
fn ancestors(history: &History) -> Vec<Place> {
    let mut by_names: HashMap<&[Symbol], Option<PlaceId>> = HashMap::new();
    for (place, name) in history.places() {
        if !history.text(name.kind).is_empty() {
            let found = by_names.entry(&name.names).or_insert(Some(place));
            if *found != Some(place) {
                *found = None;
            }
        }
    }
    let find = |names: &[Symbol]| by_names.get(names).copied().flatten();
    let places = history.places().map(|(_, name)| {
        let is_nameless = history.text(name.kind).is_empty();
        let above = 1..name.names.len();
        Place {
            ancestors: above.filter_map(|length| find(&name.names[..length])).collect(),
            proper: if is_nameless { find(&name.names) } else { None },
            ..Place::default()
        }
    });
    places.collect()
}

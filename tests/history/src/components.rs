//! Places that renames connect: an entity that was at one of them may be at another under the same id.

use crate::history::{History, PlaceId};

/// A partition of the places.
pub(crate) struct Components {
    parents: Vec<usize>,
}

impl Components {
    /// By all renames that may have had an effect.
    pub(crate) fn of_history(history: &History) -> Components {
        let mut components = Components {
            parents: (0..history.places().count()).collect(),
        };
        for op in &history.operations {
            if let Some(target) = op.target
                && (op.tag().is_some() || op.is_unknown_write())
            {
                let source = components.shorten(op.place.index());
                let target = components.shorten(target.index());
                components.parents[source] = target;
            }
        }
        for place in 0..components.parents.len() {
            components.parents[place] = components.shorten(place);
        }
        components
    }

    /// A number that all places of one component share.
    pub(crate) fn of(&self, place: PlaceId) -> usize {
        self.parents[place.index()]
    }

    /// The root of a place; halves the way there.
    fn shorten(&mut self, mut place: usize) -> usize {
        while self.parents[place] != place {
            self.parents[place] = self.parents[self.parents[place]];
            place = self.parents[place];
        }
        place
    }
}

//! What answers say of names: H-LOST where something that surely lived was not found, H-INVENTED, H-DROPPED and
//! H-REALTIME where something was found at a place that was surely empty, H-PARENT where that was the place above.

use std::collections::HashMap;

use crate::history::{Answer, History, Op, PlaceId, Symbol};
use crate::index::{Empty, Index};
use crate::judge::Judge;
use crate::names::Holders;
use crate::operation::Verb;
use crate::verdict::Rule;

/// Names of one collection that are looked for in its lists; of those beyond, only what a list shows is looked at.
pub const LISTED_NAMES_MAX: usize = 1_000;

/// Looks at each operation. A place is reported once: what follows there most often follows from it.
pub(crate) fn check(judge: &mut Judge<'_>, index: &Index, holders: &mut Holders) {
    let history = judge.history;
    let mut look = Look {
        collections: collections(history),
        judge,
        index,
        holders,
        number: 0,
    };
    // What was not found is looked at first: where something was found before and after that, this is the fault.
    for finds in [Look::finds_nothing, Look::finds_something] {
        for (number, op) in history.operations.iter().enumerate() {
            look.number = number;
            finds(&mut look, op);
        }
    }
}

/// The places of each kind under each parent, in order of their names.
type Collections = HashMap<(Symbol, Box<[Symbol]>), Vec<PlaceId>>;

fn collections(history: &History) -> Collections {
    let mut collections = Collections::new();
    for (place, name) in history.places() {
        if let Some((_, parent)) = name.names.split_last() {
            collections
                .entry((name.kind, Box::from(parent)))
                .or_default()
                .push(place);
        }
    }
    collections
}

/// One operation.
struct Look<'a, 'h> {
    judge: &'a mut Judge<'h>,
    index: &'a Index,
    holders: &'a mut Holders,
    collections: Collections,
    /// The operation that is looked at.
    number: usize,
}

impl Look<'_, '_> {
    fn finds_nothing(&mut self, op: &Op) {
        match (&op.answer, op.verb) {
            (Answer::Missing, Verb::List) => {
                if let Some(parent) = self.index.at(op.place).proper {
                    self.is_not_there(op, parent);
                }
            }
            (Answer::Missing | Answer::Dropped(false), _) => self.is_not_there(op, op.place),
            (Answer::Names(names), _) => self.lists_all(op, names),
            _ => {}
        }
    }

    fn finds_something(&mut self, op: &Op) {
        match (&op.answer, op.verb) {
            (Answer::State(_), Verb::Create) => self.parents_are_there(op, op.place),
            (Answer::State(_) | Answer::Dropped(true), _) => self.is_there(op, op.place),
            (Answer::Taken, _) => self.is_there(op, op.target.unwrap_or(op.place)),
            (Answer::Names(names), _) => self.lists_nothing_else(op, names),
            _ => {}
        }
    }

    /// At some moment of the operation something lived at this place.
    fn is_there(&mut self, op: &Op, place: PlaceId) {
        if self.holders.is_broken(place) {
            return;
        }
        match self.index.at(place).surely_empty(op.begun, op.ended) {
            None => self.parents_are_there(op, place),
            Some(Empty::Always) => self.report(Rule::Invented, place, "nothing was ever there", &[]),
            Some(Empty::Since(since)) => {
                if self.judge.history.operations[since].answer == Answer::Dropped(true) {
                    self.report(Rule::Dropped, place, "nothing has come since the drop", &[since]);
                } else {
                    self.report(
                        Rule::Realtime,
                        place,
                        "nothing has come since it was gone",
                        &[since],
                    );
                }
            }
        }
    }

    fn parents_are_there(&mut self, op: &Op, place: PlaceId) {
        if self.holders.is_broken(place) {
            return;
        }
        for ancestor in &self.index.at(place).ancestors {
            let above = self.index.at(*ancestor);
            if self.holders.is_broken(*ancestor) {
                continue;
            }
            let name = self.judge.history.describe_place(*ancestor);
            match above.surely_empty(op.begun, op.ended) {
                // Of what no line has created, nothing is known; it may have been there before all lines.
                Some(Empty::Always) if above.arrivals.iter().next().is_none() => {}
                Some(Empty::Always) => {
                    return self.report(Rule::Parent, place, &format!("there was no {name} yet"), &[]);
                }
                Some(Empty::Since(since)) => {
                    return self.report(Rule::Parent, place, &format!("{name} was gone"), &[since]);
                }
                None => {}
            }
            let dropped = above.drops.last_ended_before(op.begun);
            let below = self.index.at(place);
            let gone = dropped.filter(|drop| !below.may_have_arrived(Some(drop.begun), op.ended));
            if let Some(drop) = gone {
                let what = format!("it went with {name}, and nothing has come since");
                return self.report(Rule::Parent, place, &what, &[drop.op]);
            }
        }
    }

    /// At some moment of the operation nothing lived at this place.
    fn is_not_there(&mut self, op: &Op, place: PlaceId) {
        if self.holders.is_broken(place) {
            return;
        }
        if let Some(held) = self.holders.throughout(place, op.begun, op.ended) {
            let (what, first) = (
                format!("id {} lived there all the time", held.stay.id),
                held.stay.first,
            );
            self.report(Rule::Lost, place, &what, &[first]);
        }
    }

    fn lists_all(&mut self, op: &Op, names: &[Symbol]) {
        let (history, Some(kind)) = (self.judge.history, op.listed) else {
            return;
        };
        let parent = history.place_name(op.place).names.clone();
        let known = self.collections.get(&(kind, parent)).into_iter().flatten();
        let unlisted = known.take(LISTED_NAMES_MAX).copied().filter(|place| {
            let name = history.place_name(*place).names.last();
            name.is_some_and(|name| names.binary_search(name).is_err())
        });
        for place in unlisted.collect::<Vec<_>>() {
            self.is_not_there(op, place);
        }
    }

    fn lists_nothing_else(&mut self, op: &Op, names: &[Symbol]) {
        let (history, Some(kind)) = (self.judge.history, op.listed) else {
            return;
        };
        if let Some(parent) = self.index.at(op.place).proper {
            self.is_there(op, parent);
        }
        for name in names {
            let parent = history.place_name(op.place).names.iter();
            match history.find_place(kind, parent.chain([name]).copied().collect()) {
                Some(place) => self.is_there(op, place),
                None => {
                    let what = format!(
                        "`{}` is listed, which nothing was ever called",
                        history.text(*name)
                    );
                    self.report(Rule::Invented, op.place, &what, &[]);
                }
            }
        }
    }

    fn report(&mut self, rule: Rule, place: PlaceId, what: &str, more: &[usize]) {
        self.holders.breaks(place);
        let name = self.judge.history.describe_place(place);
        let operations: Vec<usize> = more.iter().copied().chain([self.number]).collect();
        self.judge.report(rule, name, what, &operations);
    }
}

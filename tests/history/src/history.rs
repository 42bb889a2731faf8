//! A history in memory: every text stands once, and an operation is a few numbers.

use std::collections::HashMap;
use std::rc::Rc;

use crate::operation::{Tag, Verb};

/// A text that stands once in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Symbol(u32);

/// A place in the tree, by kind and names, whatever lives there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PlaceId(u32);

impl PlaceId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The end of an operation that nobody has seen ending.
pub(crate) const NEVER: u64 = u64::MAX;

/// One operation, as the rules need it.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) line: u32,
    pub(crate) process: u32,
    pub(crate) server: u32,
    pub(crate) verb: Verb,
    /// The entity's place; of a list, the parent's.
    pub(crate) place: PlaceId,
    /// The kind listed, by a list.
    pub(crate) listed: Option<Symbol>,
    pub(crate) begun: u64,
    /// [`NEVER`] for a write whose effect may come at any time.
    pub(crate) ended: u64,
    pub(crate) sets: Box<[(Symbol, Symbol)]>,
    pub(crate) target: Option<PlaceId>,
    pub(crate) if_match: Option<Tag>,
    pub(crate) answer: Answer,
    /// All properties in the answer, by key.
    pub(crate) seen: Option<Box<[(Symbol, Symbol)]>>,
}

/// What an operation's answer says of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The entity was so.
    State(Tag),
    /// Whether a drop dropped something.
    Dropped(bool),
    /// These and no others were there.
    Names(Box<[Symbol]>),
    /// There was nothing.
    Missing,
    /// The name asked for was taken.
    Taken,
    /// Refused for another reason; there was no effect.
    Refused,
    /// Nothing is known.
    Unknown,
}

impl Op {
    /// The state that the answer shows.
    pub(crate) fn tag(&self) -> Option<Tag> {
        match self.answer {
            Answer::State(tag) => Some(tag),
            _ => None,
        }
    }

    /// Whether it may have changed something without anybody knowing.
    pub(crate) fn is_unknown_write(&self) -> bool {
        self.answer == Answer::Unknown && !matches!(self.verb, Verb::Load | Verb::List)
    }

    /// Whether it was acknowledged that it changed something.
    pub(crate) fn is_acknowledged_write(&self) -> bool {
        match self.answer {
            Answer::State(_) => self.verb != Verb::Load,
            Answer::Dropped(dropped) => dropped,
            _ => false,
        }
    }
}

/// What is known of a place whatever happens there.
#[derive(Clone, Debug)]
pub(crate) struct PlaceName {
    pub(crate) kind: Symbol,
    pub(crate) names: Box<[Symbol]>,
}

/// A whole history.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) operations: Vec<Op>,
    /// Who asked for a value under a key.
    pub(crate) writers: HashMap<(Symbol, Symbol), usize>,
    texts: Vec<Rc<str>>,
    symbols: HashMap<Rc<str>, Symbol>,
    places: Vec<PlaceName>,
    place_ids: HashMap<(Symbol, Box<[Symbol]>), PlaceId>,
}

impl History {
    /// The one symbol of a text. A history has fewer lines than a symbol has values, and a line few texts.
    pub(crate) fn symbol(&mut self, text: &str) -> Symbol {
        if let Some(symbol) = self.symbols.get(text) {
            return *symbol;
        }
        let symbol = Symbol(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        let text: Rc<str> = Rc::from(text);
        self.texts.push(Rc::clone(&text));
        self.symbols.insert(text, symbol);
        symbol
    }

    pub(crate) fn text(&self, symbol: Symbol) -> &str {
        self.texts.get(symbol.0 as usize).map_or("?", |text| text)
    }

    /// The one id of a place.
    pub(crate) fn place(&mut self, kind: Symbol, names: &[Symbol]) -> PlaceId {
        let key = (kind, Box::from(names));
        if let Some(place) = self.place_ids.get(&key) {
            return *place;
        }
        let place = PlaceId(u32::try_from(self.places.len()).unwrap_or(u32::MAX));
        self.places.push(PlaceName {
            kind,
            names: Box::from(names),
        });
        self.place_ids.insert(key, place);
        place
    }

    pub(crate) fn places(&self) -> impl Iterator<Item = (PlaceId, &PlaceName)> {
        (0..).map(PlaceId).zip(&self.places)
    }

    pub(crate) fn place_name(&self, place: PlaceId) -> &PlaceName {
        &self.places[place.index()]
    }

    pub(crate) fn find_place(&self, kind: Symbol, names: Box<[Symbol]>) -> Option<PlaceId> {
        self.place_ids.get(&(kind, names)).copied()
    }

    /// For people: kind and names.
    pub(crate) fn describe_place(&self, place: PlaceId) -> String {
        let name = self.place_name(place);
        let names: Vec<&str> = name.names.iter().map(|name| self.text(*name)).collect();
        format!("{} {}", self.text(name.kind), names.join("/"))
    }
}

//! What a client asks for, one operation after the other: the seed and the client's number decide all of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use treeline_core::Kind;
use treeline_history::Verb;

/// Names of one kind under one parent: few, so that clients meet.
const SCHEMAS: [&str; 3] = ["s0", "s1", "s2"];
const LEAVES: [&str; 5] = ["x0", "x1", "x2", "x3", "x4"];
/// A catalog for each kind of leaf.
pub(crate) const CATALOGS: [(&str, Kind); 2] = [("files", Kind::Fileset), ("models", Kind::Model)];
/// All clients write under the same keys, so that values are overwritten, and that a lost one shows.
const KEYS: [&str; 4] = ["k0", "k1", "k2", "k3"];

/// Of so many writes one has a client that hangs up, after less than this time. That is about as long as a write takes.
const IMPATIENT_ONE_IN: u32 = 100;
const PATIENCE_US_MAX: u64 = 10_000;

/// The tree that everything happens in.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) metalake: String,
    /// Where filesets keep their files.
    pub(crate) files: Arc<PathBuf>,
}

/// Something to ask for.
#[derive(Clone, Debug)]
pub(crate) struct Card {
    pub(crate) verb: Verb,
    /// Of the entity; of a list, of those that are listed.
    pub(crate) kind: Kind,
    /// The names from the metalake down; of a list, those of the parent.
    pub(crate) path: Vec<String>,
    /// A property to create it with, or to set.
    pub(crate) sets: Option<(String, String)>,
    pub(crate) new_name: Option<String>,
    /// Only on the state that the client saw last, if it saw any.
    pub(crate) is_pinned: bool,
    pub(crate) cascade: bool,
    /// The client waits no longer, and hangs up; what it asked for may be done all the same.
    pub(crate) patience: Option<Duration>,
}

impl Card {
    /// Something plain: no property, no new name, and all the patience in the world.
    pub(crate) fn new(verb: Verb, kind: Kind, path: Vec<String>) -> Card {
        Card {
            verb,
            kind,
            path,
            sets: None,
            new_name: None,
            is_pinned: false,
            cascade: false,
            patience: None,
        }
    }
}

/// All that one client will ask for.
#[derive(Debug)]
pub(crate) struct Deck {
    random: Rng,
    metalake: String,
    client: u32,
    values: u64,
}

impl Shape {
    pub(crate) fn new(seed: u64, files: PathBuf) -> Shape {
        Shape {
            metalake: format!("history_{seed}"),
            files: Arc::new(files),
        }
    }

    /// Every path that anything may ever have.
    pub(crate) fn paths(&self) -> Vec<(Kind, Vec<String>)> {
        let mut paths = vec![(Kind::Metalake, vec![self.metalake.clone()])];
        for (catalog, leaf) in CATALOGS {
            let catalog = vec![self.metalake.clone(), catalog.to_owned()];
            paths.push((Kind::Catalog, catalog.clone()));
            for schema in SCHEMAS {
                let schema = below(&catalog, schema);
                paths.push((Kind::Schema, schema.clone()));
                paths.extend(LEAVES.iter().map(|name| (leaf, below(&schema, name))));
            }
        }
        paths
    }

    /// Every parent of such a path, and the kind that is below it.
    pub(crate) fn collections(&self) -> Vec<(Kind, Vec<String>)> {
        let mut collections: Vec<(Kind, Vec<String>)> = Vec::new();
        for (kind, mut path) in self.paths() {
            path.pop();
            if !path.is_empty() && !collections.contains(&(kind, path.clone())) {
                collections.push((kind, path));
            }
        }
        collections
    }
}

fn below(parent: &[String], name: &str) -> Vec<String> {
    parent.iter().cloned().chain([name.to_owned()]).collect()
}

impl Deck {
    pub(crate) fn new(shape: &Shape, seed: u64, client: u32) -> Deck {
        Deck {
            // Clients of one seed must not play the same cards.
            random: Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(u64::from(client))),
            metalake: shape.metalake.clone(),
            client,
            values: 0,
        }
    }

    /// The next operation. It does not depend on any answer.
    pub(crate) fn next(&mut self) -> Card {
        let (catalog, leaf) = CATALOGS[self.random.usize(..CATALOGS.len())];
        let mut path = vec![self.metalake.clone(), catalog.to_owned()];
        let kind = match self.random.u32(..100) {
            0..3 => {
                path.pop();
                Kind::Metalake
            }
            3..6 => Kind::Catalog,
            6..25 => Kind::Schema,
            _ => leaf,
        };
        if matches!(kind, Kind::Schema | Kind::Fileset | Kind::Model) {
            path.push(SCHEMAS[self.random.usize(..SCHEMAS.len())].to_owned());
        }
        let is_leaf = kind == leaf;
        if is_leaf {
            path.push(LEAVES[self.random.usize(..LEAVES.len())].to_owned());
        }
        let verb = self.verb(kind, is_leaf);
        let mut card = Card::new(verb, kind, path);
        self.fill(&mut card);
        let writes = !matches!(card.verb, Verb::Load | Verb::List);
        if writes && self.random.u32(..IMPATIENT_ONE_IN) == 0 {
            card.patience = Some(Duration::from_micros(self.random.u64(..PATIENCE_US_MAX)));
        }
        card
    }

    fn verb(&mut self, kind: Kind, is_leaf: bool) -> Verb {
        let die = self.random.u32(..100);
        match (kind, die) {
            // What all the rest hangs on stays.
            (Kind::Metalake | Kind::Catalog, 0..70) => Verb::Set,
            (Kind::Metalake | Kind::Catalog, _) => Verb::Load,
            (_, 0..24) => Verb::Create,
            (_, 24..40) => Verb::Load,
            (_, 40..46) => Verb::List,
            (_, 46..78) => Verb::Set,
            (_, 78..88) if is_leaf => Verb::Rename,
            // A schema takes all its leaves along, so it goes less often.
            (Kind::Schema, 78..92) => Verb::Load,
            _ => Verb::Drop,
        }
    }

    fn fill(&mut self, card: &mut Card) {
        match card.verb {
            Verb::Create if self.random.bool() => card.sets = Some(self.property()),
            Verb::Set => {
                card.sets = Some(self.property());
                card.is_pinned = self.random.u32(..3) == 0;
            }
            Verb::Rename => {
                let others = LEAVES
                    .iter()
                    .filter(|name| card.path.last().is_none_or(|own| own != *name));
                let others: Vec<&&str> = others.collect();
                card.new_name = Some((*others[self.random.usize(..others.len())]).to_owned());
                card.is_pinned = self.random.u32(..4) == 0;
            }
            Verb::Drop => {
                card.cascade = card.kind == Kind::Schema && self.random.u32(..3) > 0;
                card.is_pinned = self.random.u32(..4) == 0;
            }
            Verb::List => {
                card.path.pop();
            }
            Verb::Create | Verb::Load => {}
        }
    }

    /// A value that nobody else ever writes.
    fn property(&mut self) -> (String, String) {
        self.values += 1;
        let key = KEYS[self.random.usize(..KEYS.len())];
        (key.to_owned(), format!("{}-{}", self.client, self.values))
    }
}

/// Whether a property is one of those that clients write.
pub(crate) fn is_ours(key: &str) -> bool {
    KEYS.contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cards(seed: u64, client: u32) -> Vec<String> {
        let shape = Shape::new(seed, PathBuf::new());
        let mut deck = Deck::new(&shape, seed, client);
        (0..500).map(|_| format!("{:?}", deck.next())).collect()
    }

    #[test]
    fn a_seed_gives_each_client_operations_of_its_own_and_always_the_same() {
        assert_eq!(cards(7, 1), cards(7, 1));
        assert_ne!(cards(7, 1), cards(7, 2));
        assert_ne!(cards(7, 1), cards(8, 1));
    }

    #[test]
    fn everything_that_is_asked_for_is_somewhere_on_the_list_of_paths() {
        let shape = Shape::new(1, PathBuf::new());
        let (paths, collections) = (shape.paths(), shape.collections());
        let mut deck = Deck::new(&shape, 1, 1);
        for card in (0..2_000).map(|_| deck.next()) {
            let places = if card.verb == Verb::List {
                &collections
            } else {
                &paths
            };
            assert!(places.contains(&(card.kind, card.path.clone())), "{card:?}");
        }
    }
}

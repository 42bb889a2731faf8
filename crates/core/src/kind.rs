//! The table of kinds: everything that is said of a kind once, and read everywhere.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, NameRule, Result};

/// Which sort of entity a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The top of a tree.
    Metalake,
    /// A collection of schemas with one provider.
    Catalog,
    /// A collection of leaves.
    Schema,
    /// A set of files at named locations.
    Fileset,
    /// A model, holder of its versions.
    Model,
    /// One version of a model; its name is its number.
    ModelVersion,
}

/// One line of the table of kinds.
#[derive(Debug)]
pub struct KindRow {
    /// The kind that this line describes.
    pub kind: Kind,
    /// The word in the database, the feed and messages.
    pub word: &'static str,
    /// The kind above; none for the kind directly under the root.
    pub parent: Option<Kind>,
    /// The collection's segment in a URL.
    pub segment: &'static str,
    /// The key of one entity in a JSON envelope.
    pub json_key: &'static str,
    /// What `NoSuch…Exception` and `…AlreadyExistsException` are built from.
    pub exception_stem: &'static str,
    /// What its names may look like.
    pub name_rule: NameRule,
    /// Whether it can be disabled.
    pub has_in_use: bool,
    /// Whether dropping it always takes along what hangs below.
    pub always_cascades: bool,
}

/// In the order in which parents come before their children.
const KINDS: [KindRow; 6] = [
    KindRow {
        kind: Kind::Metalake,
        word: "metalake",
        parent: None,
        segment: "metalakes",
        json_key: "metalake",
        exception_stem: "Metalake",
        name_rule: NameRule::Metalake,
        has_in_use: true,
        always_cascades: false,
    },
    KindRow {
        kind: Kind::Catalog,
        word: "catalog",
        parent: Some(Kind::Metalake),
        segment: "catalogs",
        json_key: "catalog",
        exception_stem: "Catalog",
        name_rule: NameRule::Catalog,
        has_in_use: true,
        always_cascades: false,
    },
    KindRow {
        kind: Kind::Schema,
        word: "schema",
        parent: Some(Kind::Catalog),
        segment: "schemas",
        json_key: "schema",
        exception_stem: "Schema",
        name_rule: NameRule::Default,
        has_in_use: false,
        always_cascades: false,
    },
    KindRow {
        kind: Kind::Fileset,
        word: "fileset",
        parent: Some(Kind::Schema),
        segment: "filesets",
        json_key: "fileset",
        exception_stem: "Fileset",
        name_rule: NameRule::NoSlash,
        has_in_use: false,
        always_cascades: false,
    },
    KindRow {
        kind: Kind::Model,
        word: "model",
        parent: Some(Kind::Schema),
        segment: "models",
        json_key: "model",
        exception_stem: "Model",
        name_rule: NameRule::Default,
        has_in_use: false,
        always_cascades: true,
    },
    KindRow {
        kind: Kind::ModelVersion,
        word: "model_version",
        parent: Some(Kind::Model),
        segment: "versions",
        json_key: "modelVersion",
        exception_stem: "ModelVersion",
        name_rule: NameRule::Number,
        has_in_use: false,
        always_cascades: false,
    },
];

impl Kind {
    /// Every kind, parents before their children.
    pub fn all() -> impl Iterator<Item = Kind> {
        KINDS.iter().map(|row| row.kind)
    }

    /// This kind's line of the table.
    pub const fn row(self) -> &'static KindRow {
        &KINDS[self as usize]
    }

    /// The word that the database and messages use.
    pub const fn as_str(self) -> &'static str {
        self.row().word
    }

    /// The kind above; none for the kind directly under the root.
    pub const fn parent(self) -> Option<Kind> {
        self.row().parent
    }

    /// The kinds from the top of the tree down to this one, both included.
    pub fn lineage(self) -> Vec<Kind> {
        let mut kinds = vec![self];
        let mut kind = self;
        while let Some(parent) = kind.parent() {
            kinds.push(parent);
            kind = parent;
        }
        kinds.reverse();
        kinds
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::ModelVersion => "model version",
            Kind::Metalake | Kind::Catalog | Kind::Schema | Kind::Fileset | Kind::Model => self.as_str(),
        })
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(word: &str) -> Result<Kind> {
        Kind::all()
            .find(|kind| kind.as_str() == word)
            .ok_or_else(|| Error::invalid("kind", format!("`{word}` is no kind of entity")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_stands_at_its_own_line_below_its_parent() {
        for (line, row) in KINDS.iter().enumerate() {
            assert_eq!(row.kind as usize, line);
            if let Some(parent) = row.parent {
                assert!((parent as usize) < line);
            }
            assert_eq!(row.word.parse::<Kind>(), Ok(row.kind));
        }
    }

    #[test]
    fn lineage_runs_from_the_top_down() {
        assert_eq!(
            Kind::ModelVersion.lineage(),
            [
                Kind::Metalake,
                Kind::Catalog,
                Kind::Schema,
                Kind::Model,
                Kind::ModelVersion
            ]
        );
    }
}

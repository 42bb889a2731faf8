//! The verbs that the feed knows.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// What an effective write did to an entity. One feed row carries one of these (P12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// A strict create (P1).
    Create,
    /// An update under the name it had (P2).
    Alter,
    /// An update that also changed the name (P4).
    Rename,
    /// A drop, also as part of a cascade (P3).
    Drop,
}

impl Operation {
    /// The word that the feed keeps.
    pub const fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "create",
            Operation::Alter => "alter",
            Operation::Rename => "rename",
            Operation::Drop => "drop",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Operation {
    type Err = Error;

    fn from_str(word: &str) -> Result<Operation> {
        [
            Operation::Create,
            Operation::Alter,
            Operation::Rename,
            Operation::Drop,
        ]
        .into_iter()
        .find(|operation| operation.as_str() == word)
        .ok_or_else(|| Error::invalid("operation", format!("`{word}` is none of the feed's verbs")))
    }
}

//! One operation as a client saw it: a line of a history.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Makes an entity of a name that is free.
    Create,
    /// Reads one entity.
    Load,
    /// Reads the names of all entities of one kind under one parent.
    List,
    /// Sets properties of an entity.
    Set,
    /// Gives an entity another name under the same parent.
    Rename,
    /// Ends an entity, and all below it where that was asked for.
    Drop,
}

/// How an operation ended for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was answered with success.
    Ok,
    /// It was answered with an error: `status` and `code` say which. It had no effect, unless the status is a 5xx.
    Refused,
    /// It was not answered, so it may have had its effect, or may still have it.
    Unknown,
}

/// One operation. A history is one of these a line, as JSON, in any order of lines, and an [`End`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// The client. It has one operation at a time.
    pub process: u32,
    /// The server that it asked.
    pub server: u32,
    /// What it asked for.
    pub operation: Verb,
    /// The kind of the entity; of a list, that of the entities listed.
    pub kind: String,
    /// The names from the root down; of a list, those of the parent.
    pub path: Vec<String>,
    /// When it was sent, in microseconds of a clock that all clients share and that never goes back.
    pub begun: u64,
    /// When it was answered, or given up, by the same clock.
    pub ended: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The properties that a create or a set asked for. No value is ever asked for twice under one key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sets: BTreeMap<String, String>,
    /// The name that a rename asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_name: Option<String>,
    /// The one state on which the write was to be done, `<id>-<version>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_match: Option<Tag>,
    /// Whether all below was to be dropped along.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cascade: bool,
    /// The HTTP status of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The protocol's code of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// The id in a successful answer about an entity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    /// The version beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// All properties in the answer; absent where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties: Option<BTreeMap<String, String>>,
    /// The names in the answer of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    /// Whether a drop found something to drop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<bool>,
}

impl Operation {
    /// An operation without an answer, to be filled in by whoever gets one.
    pub fn new(operation: Verb, kind: &str, path: Vec<String>) -> Operation {
        Operation {
            process: 0,
            server: 0,
            operation,
            kind: kind.to_owned(),
            path,
            begun: 0,
            ended: 0,
            outcome: Outcome::Unknown,
            sets: BTreeMap::new(),
            new_name: None,
            if_match: None,
            cascade: false,
            status: None,
            code: None,
            id: None,
            version: None,
            properties: None,
            names: None,
            dropped: None,
        }
    }
}

/// The last line of a history. Without it nobody could tell one that was cut off from a whole one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// How many operations stand before it.
    pub end: usize,
}

/// The state of an entity: which one, and after how many writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// The entity.
    pub id: i64,
    /// 1 when it is created, and one more with each effective write.
    pub version: u64,
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.id, self.version)
    }
}

impl FromStr for Tag {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Tag> {
        let parts = text.rsplit_once('-');
        let parsed = parts.and_then(|(id, version)| {
            Some(Tag {
                id: id.parse().ok()?,
                version: version.parse().ok()?,
            })
        });
        parsed.ok_or_else(|| anyhow::anyhow!("`{text}` is not `<id>-<version>`"))
    }
}

impl Serialize for Tag {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Tag {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Tag, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

//! The schema: a collection of leaves. It has no rename and keeps its comment.

use serde::{Deserialize, Serialize};

use crate::{Draft, Kind, Payload, Properties, Result};

/// What a schema keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// Free text, given once.
    pub comment: Option<String>,
    /// As given.
    pub properties: Properties,
}

/// One change of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaChange {
    /// Sets one property.
    SetProperty {
        /// Which.
        key: String,
        /// To what.
        value: String,
    },
    /// Removes one property; one that is not there is no error.
    RemoveProperty(String),
}

impl Payload for Schema {
    const KIND: Kind = Kind::Schema;
    type Change = SchemaChange;

    fn apply(draft: &mut Draft<Self>, change: &SchemaChange) -> Result<()> {
        match change.clone() {
            SchemaChange::SetProperty { key, value } => {
                draft.payload.properties.insert(key, value);
            }
            SchemaChange::RemoveProperty(key) => {
                draft.payload.properties.remove(&key);
            }
        }
        Ok(())
    }

    fn touched_property(change: &SchemaChange) -> Option<(&str, Option<&str>)> {
        match change {
            SchemaChange::SetProperty { key, value } => Some((key, Some(value))),
            SchemaChange::RemoveProperty(key) => Some((key, None)),
        }
    }

    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn sample() -> Schema {
        Schema {
            comment: Some("a schema".to_owned()),
            properties: Properties::from([("tier".to_owned(), "gold".to_owned())]),
        }
    }
}

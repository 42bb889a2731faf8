//! The schema: a collection of leaves. It has no rename and keeps its comment.

use serde::{Deserialize, Serialize};

use crate::{Draft, Kind, Payload, Properties, PropertyChange, Result};

/// What a schema keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// Free text, given once.
    pub comment: Option<String>,
    /// As given.
    pub properties: Properties,
}

impl Payload for Schema {
    const KIND: Kind = Kind::Schema;
    type Change = PropertyChange;

    fn apply(draft: &mut Draft<Self>, change: &PropertyChange) -> Result<()> {
        change.apply(&mut draft.payload.properties);
        Ok(())
    }

    fn property_change(change: &PropertyChange) -> Option<&PropertyChange> {
        Some(change)
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

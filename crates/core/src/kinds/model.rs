//! The model: holder of its versions, and of the number that the next one gets.

use serde::{Deserialize, Serialize};

use super::CommonChange;
use super::change::Described;
use crate::{Draft, Error, Kind, Name, Payload, Properties, PropertyChange, Result};

/// What a model keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Free text.
    pub comment: Option<String>,
    /// As given.
    pub properties: Properties,
    /// How many versions were ever linked, which is also the number of the next one: numbers begin at 0 and are
    /// never given twice (INV-13).
    pub latest_version: u32,
}

impl Model {
    /// Takes the number for a version that is being linked.
    pub fn take_number(&mut self) -> Result<u32> {
        let number = self.latest_version;
        self.latest_version = number
            .checked_add(1)
            .ok_or_else(|| Error::invalid("version", "the model has used up its numbers"))?;
        Ok(number)
    }
}

impl Described for Model {
    fn described(&mut self) -> (&mut Option<String>, &mut Properties) {
        (&mut self.comment, &mut self.properties)
    }
}

impl Payload for Model {
    const KIND: Kind = Kind::Model;
    type Change = CommonChange;

    fn apply(draft: &mut Draft<Self>, change: &CommonChange) -> Result<()> {
        change.apply(draft);
        Ok(())
    }

    fn property_change(change: &CommonChange) -> Option<&PropertyChange> {
        change.property()
    }

    fn new_name(change: &CommonChange) -> Option<&Name> {
        change.new_name()
    }

    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn sample() -> Model {
        Model {
            comment: Some("a model".to_owned()),
            properties: Properties::from([("task".to_owned(), "ranking".to_owned())]),
            latest_version: 0,
        }
    }
}

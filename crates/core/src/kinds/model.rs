//! The model: holder of its versions, and of the number that the next one gets.

use serde::{Deserialize, Serialize};

use crate::{Draft, Error, Kind, Name, Payload, Properties, Result};

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

/// One change of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelChange {
    /// Gives it another name (P4); its versions go along.
    Rename(Name),
    /// Sets or clears the comment.
    UpdateComment(Option<String>),
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

impl Payload for Model {
    const KIND: Kind = Kind::Model;
    type Change = ModelChange;

    fn apply(draft: &mut Draft<Self>, change: &ModelChange) -> Result<()> {
        match change.clone() {
            ModelChange::Rename(name) => draft.name = name,
            ModelChange::UpdateComment(comment) => draft.payload.comment = comment,
            ModelChange::SetProperty { key, value } => {
                draft.payload.properties.insert(key, value);
            }
            ModelChange::RemoveProperty(key) => {
                draft.payload.properties.remove(&key);
            }
        }
        Ok(())
    }

    fn touched_property(change: &ModelChange) -> Option<(&str, Option<&str>)> {
        match change {
            ModelChange::SetProperty { key, value } => Some((key, Some(value))),
            ModelChange::RemoveProperty(key) => Some((key, None)),
            ModelChange::Rename(_) | ModelChange::UpdateComment(_) => None,
        }
    }

    fn new_name(change: &ModelChange) -> Option<&Name> {
        if let ModelChange::Rename(name) = change {
            Some(name)
        } else {
            None
        }
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

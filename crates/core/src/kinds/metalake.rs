//! The metalake: the top of a tree, with its own switch.

use serde::{Deserialize, Serialize};

use super::require_in_use;
use crate::{Draft, Kind, Name, Payload, Properties, Result};

/// What a metalake keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metalake {
    /// Free text.
    pub comment: Option<String>,
    /// As given; the `in-use` that clients see is not among them.
    pub properties: Properties,
}

/// One change of a metalake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetalakeChange {
    /// Gives it another name (P4).
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
    /// Enables or disables it; the one change that a disabled metalake takes.
    SetInUse(bool),
}

impl Payload for Metalake {
    const KIND: Kind = Kind::Metalake;
    type Change = MetalakeChange;

    fn apply(draft: &mut Draft<Self>, change: &MetalakeChange) -> Result<()> {
        if let MetalakeChange::SetInUse(in_use) = change {
            draft.in_use = *in_use;
            return Ok(());
        }
        require_in_use(Kind::Metalake, &draft.name, draft.in_use)?;
        match change.clone() {
            MetalakeChange::Rename(name) => draft.name = name,
            MetalakeChange::UpdateComment(comment) => draft.payload.comment = comment,
            MetalakeChange::SetProperty { key, value } => {
                draft.payload.properties.insert(key, value);
            }
            MetalakeChange::RemoveProperty(key) => {
                draft.payload.properties.remove(&key);
            }
            MetalakeChange::SetInUse(in_use) => draft.in_use = in_use,
        }
        Ok(())
    }

    fn touched_property(change: &MetalakeChange) -> Option<(&str, Option<&str>)> {
        match change {
            MetalakeChange::SetProperty { key, value } => Some((key, Some(value))),
            MetalakeChange::RemoveProperty(key) => Some((key, None)),
            MetalakeChange::Rename(_) | MetalakeChange::UpdateComment(_) | MetalakeChange::SetInUse(_) => {
                None
            }
        }
    }

    fn new_name(change: &MetalakeChange) -> Option<&Name> {
        if let MetalakeChange::Rename(name) = change {
            Some(name)
        } else {
            None
        }
    }

    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn sample() -> Metalake {
        Metalake {
            comment: Some("a metalake".to_owned()),
            properties: Properties::from([("team".to_owned(), "data".to_owned())]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn a_disabled_metalake_takes_no_change_but_its_switch() {
        let mut draft = Draft {
            in_use: false,
            ..Draft::new(Name::new("ml").unwrap(), Metalake::sample())
        };
        let refused = Metalake::apply(&mut draft, &MetalakeChange::UpdateComment(None));
        assert!(matches!(
            refused,
            Err(Error::NotInUse {
                kind: Kind::Metalake,
                ..
            })
        ));
        assert_eq!(
            Metalake::apply(&mut draft, &MetalakeChange::SetInUse(true)),
            Ok(())
        );
        assert_eq!(
            Metalake::apply(&mut draft, &MetalakeChange::UpdateComment(None)),
            Ok(())
        );
        assert_eq!(draft.payload.comment, None);
    }
}

//! The metalake: the top of a tree, with its own switch.

use serde::{Deserialize, Serialize};

use super::SwitchableChange;
use super::change::Described;
use crate::{Draft, Kind, Name, Payload, Properties, PropertyChange, Result};

/// What a metalake keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metalake {
    /// Free text.
    pub comment: Option<String>,
    /// As given; the `in-use` that clients see is not among them.
    pub properties: Properties,
}

impl Described for Metalake {
    fn described(&mut self) -> (&mut Option<String>, &mut Properties) {
        (&mut self.comment, &mut self.properties)
    }
}

impl Payload for Metalake {
    const KIND: Kind = Kind::Metalake;
    type Change = SwitchableChange;

    fn apply(draft: &mut Draft<Self>, change: &SwitchableChange) -> Result<()> {
        change.apply(draft)
    }

    fn property_change(change: &SwitchableChange) -> Option<&PropertyChange> {
        change.common()?.property()
    }

    fn new_name(change: &SwitchableChange) -> Option<&Name> {
        change.common()?.new_name()
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
    use super::super::CommonChange;
    use super::*;
    use crate::Error;

    #[test]
    fn a_disabled_metalake_takes_no_change_but_its_switch() {
        let mut draft = Draft {
            in_use: false,
            ..Draft::new(Name::new("ml").unwrap(), Metalake::sample())
        };
        let refused = Metalake::apply(&mut draft, &CommonChange::UpdateComment(None).into());
        assert!(matches!(
            refused,
            Err(Error::NotInUse {
                kind: Kind::Metalake,
                ..
            })
        ));
        assert_eq!(
            Metalake::apply(&mut draft, &SwitchableChange::SetInUse(true)),
            Ok(())
        );
        assert_eq!(
            Metalake::apply(&mut draft, &CommonChange::UpdateComment(None).into()),
            Ok(())
        );
        assert_eq!(draft.payload.comment, None);
    }
}

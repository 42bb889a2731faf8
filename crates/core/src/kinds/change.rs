//! The changes that kinds have in common. A kind that takes others too wraps these.

use crate::{Draft, Error, Name, Payload, Properties, PropertyChange, Result};

/// What has a comment and free properties to change.
pub(super) trait Described: Payload {
    fn described(&mut self) -> (&mut Option<String>, &mut Properties);
}

/// One change of what has a name, a comment and free properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommonChange {
    /// Gives it another name (P4); what is below goes along, and files stay where they are.
    Rename(Name),
    /// Sets or clears the comment.
    UpdateComment(Option<String>),
    /// Sets or removes a property.
    Property(PropertyChange),
}

impl CommonChange {
    /// The other name, if it gives one.
    pub fn new_name(&self) -> Option<&Name> {
        match self {
            CommonChange::Rename(name) => Some(name),
            CommonChange::UpdateComment(_) | CommonChange::Property(_) => None,
        }
    }

    /// What it does to the properties, if it is that.
    pub fn property(&self) -> Option<&PropertyChange> {
        match self {
            CommonChange::Property(change) => Some(change),
            CommonChange::Rename(_) | CommonChange::UpdateComment(_) => None,
        }
    }

    pub(super) fn apply<P: Described>(&self, draft: &mut Draft<P>) {
        let (comment, properties) = draft.payload.described();
        match self {
            CommonChange::Rename(name) => draft.name.clone_from(name),
            CommonChange::UpdateComment(new_comment) => comment.clone_from(new_comment),
            CommonChange::Property(change) => change.apply(properties),
        }
    }
}

impl From<PropertyChange> for CommonChange {
    fn from(change: PropertyChange) -> CommonChange {
        CommonChange::Property(change)
    }
}

/// One change of what can be disabled beside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchableChange {
    /// A change that only what is enabled takes.
    Common(CommonChange),
    /// Enables or disables it.
    SetInUse(bool),
}

impl SwitchableChange {
    /// The change, if it is not of the switch.
    pub fn common(&self) -> Option<&CommonChange> {
        match self {
            SwitchableChange::Common(change) => Some(change),
            SwitchableChange::SetInUse(_) => None,
        }
    }

    /// [`Error::NotInUse`] of what is disabled, on whatever row the change meets, but for a change of the switch.
    pub(super) fn apply<P: Described>(&self, draft: &mut Draft<P>) -> Result<()> {
        match self {
            SwitchableChange::SetInUse(in_use) => draft.in_use = *in_use,
            SwitchableChange::Common(_) if !draft.in_use => {
                return Err(Error::NotInUse {
                    kind: P::KIND,
                    path: draft.name.to_string(),
                });
            }
            SwitchableChange::Common(change) => change.apply(draft),
        }
        Ok(())
    }
}

impl From<CommonChange> for SwitchableChange {
    fn from(change: CommonChange) -> SwitchableChange {
        SwitchableChange::Common(change)
    }
}

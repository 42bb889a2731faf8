//! An entity and what a write may change of it.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{
    Alias, Audit, EntityId, Error, Kind, Name, Properties, PropertyChange, Provider, Result, Version,
};

/// What a kind keeps beside its name, and how it changes.
///
/// The store keeps it as the serde text of the type; equal payloads must serialise to equal bytes, since that is
/// how a change that changes nothing is recognised (INV-3). So: ordered maps and sets only.
pub trait Payload:
    Serialize + DeserializeOwned + Clone + fmt::Debug + PartialEq + Send + Sync + 'static
{
    /// The kind that this payload belongs to.
    const KIND: Kind;

    /// One change that a client may ask for.
    type Change: Clone + fmt::Debug + Send + Sync + 'static;

    /// Applies one change. Pure: it may run again on a newer row (P2), so it must only look at the draft.
    fn apply(draft: &mut Draft<Self>, change: &Self::Change) -> Result<()>;

    /// Checks what must hold of the whole, at create and after all changes of a request.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// What a change does to the properties, for the rules of [`crate::property_rules`].
    fn property_change(change: &Self::Change) -> Option<&PropertyChange>;

    /// The name that a change gives the entity, if it renames it.
    fn new_name(_change: &Self::Change) -> Option<&Name> {
        None
    }

    /// The free properties.
    fn properties(&self) -> &Properties;

    /// Promoted to a column, because every request below needs it on the way down.
    fn provider(&self) -> Option<Provider> {
        None
    }

    /// Kept as side rows too, where their uniqueness is decided.
    fn aliases(&self) -> Option<&BTreeSet<Alias>> {
        None
    }

    /// A payload with every field filled, for suites that run over all kinds.
    fn sample() -> Self;
}

/// A live entity as it was read in one statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Entity<P> {
    /// Its identity.
    pub id: EntityId,
    /// Its version at the time of reading.
    pub version: Version,
    /// Its name at the time of reading.
    pub name: Name,
    /// Its own flag; always true for kinds that cannot be disabled.
    pub in_use: bool,
    /// What its kind keeps.
    pub payload: P,
    /// Who and when.
    pub audit: Audit,
}

impl<P> Entity<P> {
    /// The tag that names exactly this state of this row.
    pub fn tag(&self) -> EntityTag {
        EntityTag {
            id: self.id,
            version: self.version,
        }
    }
}

/// An entity that is not there yet: no id and no version, so that it cannot be taken for one that is.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEntity<P> {
    /// The name, checked by its kind's rule.
    pub name: Name,
    /// What its kind keeps.
    pub payload: P,
}

/// What a write may change of an entity.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft<P> {
    /// The name; another one makes the write a rename (P4).
    pub name: Name,
    /// The entity's own flag.
    pub in_use: bool,
    /// What its kind keeps.
    pub payload: P,
}

impl<P: Payload> Draft<P> {
    /// A draft of an enabled entity.
    pub fn new(name: Name, payload: P) -> Draft<P> {
        Draft {
            name,
            in_use: true,
            payload,
        }
    }

    /// Applies the changes of one request in their order, then checks the whole.
    pub fn apply_all(&mut self, changes: &[P::Change]) -> Result<()> {
        for change in changes {
            P::apply(self, change)?;
        }
        self.payload.check()
    }
}

/// Names one state of one row. The id is part of it because a re-created entity begins at version 1 again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntityTag {
    /// The row.
    pub id: EntityId,
    /// Its version.
    pub version: Version,
}

impl fmt::Display for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.id, self.version)
    }
}

impl FromStr for EntityTag {
    type Err = Error;

    fn from_str(text: &str) -> Result<EntityTag> {
        let parse = || {
            let (id, version) = text.split_once('-')?;
            Some(EntityTag {
                id: EntityId::new(id.parse().ok()?).ok()?,
                version: Version::new(version.parse().ok()?).ok()?,
            })
        };
        parse().ok_or_else(|| Error::invalid("tag", format!("`{text}` is no tag of an entity")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_reads_back_what_it_writes() {
        let tag = EntityTag {
            id: EntityId::new(12).unwrap(),
            version: Version::new(3).unwrap(),
        };
        assert_eq!(tag.to_string(), "12-3");
        assert_eq!("12-3".parse(), Ok(tag));
        for text in ["", "12", "12-", "-3", "0-1", "1-0", "a-b", "12-3-4"] {
            assert!(text.parse::<EntityTag>().is_err(), "{text}");
        }
    }
}

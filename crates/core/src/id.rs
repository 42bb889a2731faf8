//! The identity of an entity: a number that is never reused and never given to another row.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Identifies one row for ever: it survives renames and is never revived by a name.
///
/// 63 bits, because the column is a signed 64-bit integer on every database; positive, because 0 is the
/// tombstone of a live row. The store makes ids in the order of time (design §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct EntityId(i64);

impl EntityId {
    /// The row that every metalake hangs under, so that no entity lacks a parent.
    pub const ROOT: EntityId = EntityId(1);

    /// Takes a number from outside. [`Error::Invalid`] unless it is positive.
    pub fn new(value: i64) -> Result<EntityId> {
        if value > 0 {
            Ok(EntityId(value))
        } else {
            Err(Error::invalid("id", format!("{value} is not a positive number")))
        }
    }

    /// The number as the database keeps it.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<EntityId> for i64 {
    fn from(id: EntityId) -> i64 {
        id.0
    }
}

impl TryFrom<i64> for EntityId {
    type Error = Error;

    fn try_from(value: i64) -> Result<EntityId> {
        EntityId::new(value)
    }
}

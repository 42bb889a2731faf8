//! The number that orders the writes of one row.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Rises by exactly one with each effective write of a row (INV-3); a write that changes nothing keeps it.
///
/// At most 2^63 - 1, because the column is a signed 64-bit integer on every database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct Version(i64);

impl Version {
    /// What a row is created with.
    pub const FIRST: Version = Version(1);

    /// Takes a number from outside. [`Error::Invalid`] unless it is positive.
    pub fn new(value: i64) -> Result<Version> {
        if value > 0 {
            Ok(Version(value))
        } else {
            Err(Error::invalid(
                "version",
                format!("{value} is not a positive number"),
            ))
        }
    }

    /// The version after this one. Panics past 2^63 - 1, which no row reaches.
    #[must_use]
    pub const fn next(self) -> Version {
        assert!(self.0 < i64::MAX, "a row's version has run out of numbers");
        Version(self.0 + 1)
    }

    /// The number as the database keeps it.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Version> for i64 {
    fn from(version: Version) -> i64 {
        version.0
    }
}

impl TryFrom<i64> for Version {
    type Error = Error;

    fn try_from(value: i64) -> Result<Version> {
        Version::new(value)
    }
}

//! Entities, their versions and their feed, in a SQL database.

mod context;

pub use context::{Precondition, WriteContext};

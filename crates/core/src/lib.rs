#![doc = include_str!("../README.md")]

mod audit;
mod authority;
mod entity;
mod error;
mod id;
mod kind;
mod name;
mod operation;
mod path;
mod property;
mod version;

pub mod kinds;

pub use audit::Audit;
pub use authority::{Authority, CatalogType, Provider, authority, sole_provider};
pub use entity::{Draft, Entity, EntityTag, NewEntity, Payload};
pub use error::{Error, Missing, Result, Taken};
pub use id::EntityId;
pub use kind::{Kind, KindRow};
pub use name::{Alias, Name, NameRule};
pub use operation::Operation;
pub use path::Path;
pub use property::{Properties, PropertyChange, PropertyRule, PropertyRules, property_rules};
pub use version::Version;

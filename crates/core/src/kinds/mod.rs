//! One file a kind: its payload, its changes, and the pure function from one to the next.

mod catalog;
mod fileset;
mod metalake;
mod model;
mod model_version;
mod schema;

pub use catalog::{Catalog, CatalogChange};
pub use fileset::{DEFAULT_LOCATION_NAME, Fileset, FilesetChange, FilesetType, LOCATIONS_MAX, UNNAMED};
pub use metalake::{Metalake, MetalakeChange};
pub use model::{Model, ModelChange};
pub use model_version::{ALIASES_MAX, DEFAULT_URI_NAME, ModelVersion, ModelVersionChange};
pub use schema::{Schema, SchemaChange};

use crate::{Error, Kind, Name, Result};

/// Refuses an alter of something disabled, on whatever row the change meets.
fn require_in_use(kind: Kind, name: &Name, in_use: bool) -> Result<()> {
    if in_use {
        Ok(())
    } else {
        Err(Error::NotInUse {
            kind,
            path: name.to_string(),
        })
    }
}

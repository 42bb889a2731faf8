//! One file a kind: its payload, its changes, and the pure function from one to the next.

mod catalog;
mod change;
mod fileset;
mod metalake;
mod model;
mod model_version;
mod schema;

pub use catalog::Catalog;
pub use change::{CommonChange, SwitchableChange};
pub use fileset::{DEFAULT_LOCATION_NAME, Fileset, FilesetType, LOCATIONS_MAX, UNNAMED};
pub use metalake::Metalake;
pub use model::Model;
pub use model_version::{ALIASES_MAX, DEFAULT_URI_NAME, ModelVersion, ModelVersionChange};
pub use schema::Schema;

#![doc = include_str!("../README.md")]

mod failure;
mod local;
mod location;
mod registry;
mod roots;
mod store;

pub use local::LocalFiles;
pub use location::{LOCATION_BYTES_MAX, contains, local_path, overlaps, qualify, scheme_of};
pub use registry::Locations;
pub use roots::AllowedRoots;
pub use store::{DirectoryId, FileStat, LocationStore, Made, Removed, Stat};

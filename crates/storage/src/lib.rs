#![doc = include_str!("../README.md")]

mod open;
mod store;
mod writes;

mod claims;

mod context;
mod resolve;

mod alter;
mod create;
mod create_at;
mod drop;
mod idempotency;
mod link;
mod read;
mod tasks;
mod undo;

mod check;
mod dump;
mod feed;
mod lock;
mod migrate;
mod record;
mod side;

mod inside;
mod proof;
mod transaction;

#[cfg(feature = "test-hooks")]
mod mutants;
#[cfg(feature = "test-hooks")]
mod stranger;

#[cfg_attr(feature = "test-hooks", doc(hidden))]
#[cfg(feature = "test-hooks")]
pub mod hooks;
#[cfg(not(feature = "test-hooks"))]
mod hooks;

mod dialect;
mod failure;
mod ids;
mod network;
mod session;
mod sql;
mod sqlite;
mod value;

pub use check::Finding;
pub use context::{Idempotency, Precondition, WriteContext};
pub use drop::DropRule;
#[doc(hidden)]
pub use inside::in_transaction;
pub use inside::require_no_transaction;
pub use migrate::MigrateReport;
pub use open::StoreOptions;
pub use resolve::{Level, Resolved};
pub use side::NewLocation;
pub use store::Store;
pub use tasks::{Removal, Task, TaskFilter, TaskKind};
pub use undo::{KeptCreate, Undone};
pub use writes::CreatedWithLocations;

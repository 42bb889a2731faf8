#![doc = include_str!("../README.md")]

mod dispatcher;
mod filesets;
mod models;
mod probe;

mod directories;
mod guard;
mod locations;
mod settings;
mod turns;

pub use dispatcher::{Dispatcher, DropMode};
pub use filesets::NewFileset;
pub use probe::TestConnection;
pub use settings::Settings;
pub use treeline_connectors::FileStat;
pub use treeline_locks::{Claimant, Mode, Report};
pub use treeline_storage::{Idempotency, Precondition, WriteContext};
pub use turns::LocalLocks;

//! Decides who is the authority, and carries each operation to it.

mod dispatcher;

pub use dispatcher::{DropMode, Dispatcher, FileEntry, NewFileset, TestConnection};
pub use treeline_storage::{Precondition, WriteContext};

//! What every black-box test needs: a bed with a database and directories of its own, servers on it as real
//! processes or in containers, clients that keep one connection each, and the rows that are left in the end.
//!
//! Nothing here links the server: the binary is found through `TREELINE_BIN`, and final rows are read with
//! `treeline check --dump`. Read `bed` first, then `client`; `raw` is for requests that no client would send, `hooks`
//! for builds of the server that can be held at a point.

mod bed;
mod client;
mod container;
mod hooks;
mod program;
mod raw;
mod rows;
mod server;
mod tree;

pub use bed::{Bed, HeldDatabase, Outcome, binary};
pub use client::{Answer, Client};
pub use hooks::{Action, Hooks};
pub use program::output;
pub use raw::{Connection, head};
pub use rows::Rows;
pub use server::{Server, eventually, free_address};
pub use tree::Tree;

#![doc = include_str!("../README.md")]

pub mod cli;
mod serve;

mod config;
mod logging;
mod wiring;

mod app;
mod router;

mod gate;
#[cfg(feature = "test-hooks")]
mod hooks;
mod metrics;
mod operations;

mod entity_routes;
mod kinds;
mod later;
mod local_locks;
mod openapi;
mod system;

mod auth;
mod body;
mod conditional;
mod extract;
mod held;
mod idempotency;
mod negotiate;

mod envelope;
mod error;
mod wire;

#[cfg(test)]
mod tests;

pub use app::{App, Limits};
pub use config::{Config, ConfigError, Database, LocalLocks, LogFormat, Options};
pub use router::router;
pub use serve::{Server, StartError};

//! The checker accepts what is right, calls each planted fault by its name, and says what it cannot read.

#![expect(clippy::unwrap_used, reason = "what cannot be unwrapped has failed its test")]

mod accepted;
mod book;
mod generated;
mod planted;
mod robust;

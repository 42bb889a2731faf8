//! What the crate promises, through its public API. Each file is one subject; `kit` polls futures by hand, so that
//! a schedule is exact and needs no sleep.

#![cfg(not(feature = "disabled"))]
#![expect(
    clippy::unwrap_used,
    reason = "a test that goes wrong should stop where it does"
)]

mod cancelling;
mod cell;
mod cell_failures;
mod fairness;
mod kit;
mod misuse;
mod model;
mod public_api;
mod reports;
mod several;
mod stress;

#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![expect(
    unexpected_cfgs,
    reason = "`loom` and `shuttle` are set by hand, for the model checkers' builds only"
)]

mod ask;
mod cell;
mod guard;
mod names;
mod report;
mod slot;
mod sync;

#[cfg(test)]
mod proof;

#[cfg(doc)]
#[doc = include_str!("../docs/which-lock.md")]
pub mod which_lock {}

pub use ask::{Ask, Mode};
pub use cell::{CellWriter, Loader, NotNewer, RefreshError, Refreshed, Versioned, VersionedCell};
pub use guard::Guard;
pub use names::{Locked, NameLocks};
pub use report::{Claimant, Event, Outcome, Report, TimedOut};

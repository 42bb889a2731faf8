//! The two model checkers. They replace the mutex and the clock, so they live inside the crate:
//! `RUSTFLAGS="--cfg loom"` tries every schedule of small models, `RUSTFLAGS="--cfg shuttle"` random schedules of
//! larger ones. Everything that needs neither, and no look inside,
//! is in `tests/`.

#[cfg(not(any(loom, shuttle, feature = "disabled")))]
mod spare;

#[cfg(loom)]
mod loom;
#[cfg(shuttle)]
mod shuttle;

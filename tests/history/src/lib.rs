#![doc = include_str!("../README.md")]

mod operation;
mod read;
mod verdict;

mod check;
mod components;
mod evidence;
mod gaps;
mod history;
mod index;
mod judge;
mod names;
mod ranges;
mod realtime;
mod sighting;
mod simulate;
mod stays;
mod values;
mod versions;

pub use check::{check, check_unended};
pub use evidence::LISTED_NAMES_MAX;
pub use operation::{End, Operation, Outcome, Tag, Verb};
pub use read::{BYTES_MAX, LINE_BYTES_MAX, LINES_MAX, Unreadable};
pub use simulate::{Simulation, simulate};
pub use verdict::{Concerned, Rule, VIOLATIONS_MAX, Verdict, Violation};

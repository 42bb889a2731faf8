//! The checker accepts what is right, calls each planted fault by its name, and says what it cannot read.

mod accepted;
mod book;
mod generated;
mod planted;
mod robust;

//! Black-box tests of the REST API, against servers as they are shipped.
//!
//! First what a hostile or careless client may send, then what many clients do at once, then what survives a crash,
//! and last what an operator meets.

mod stand;

mod bad_bodies;
mod bad_locations;
mod bad_names;
mod bad_requests;
mod disconnects;

mod local_locks;
mod one_row;
mod opening;
mod same_name;

mod kills;
mod ledger;

mod damage;
mod lifecycle;
mod release;

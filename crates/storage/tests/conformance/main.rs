//! One suite for every database: each test runs on each backend, and ends with the audit finding nothing.
//!
//! SQLite is always there. A backend behind a server takes part when its URL is in the environment
//! (`TREELINE_TEST_<BACKEND>_URL`), which `cargo xtask` sets; what does not take part is said, never passed over.

#![expect(
    clippy::unwrap_used,
    reason = "a suite: what cannot be unwrapped has failed its test"
)]

mod cluster;
mod counts;
mod create;
mod create_at;
mod drop;
mod harness;
mod hosts;
mod idempotency;
mod model;
mod network;
mod opening;
mod outage;
mod plans;
mod pooler;
mod proxy;
mod task;
mod undo;
mod update;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let suites = [
        idempotency::TESTS,
        create::TESTS,
        create_at::TESTS,
        update::TESTS,
        drop::TESTS,
        model::TESTS,
        task::TESTS,
        undo::TESTS,
    ];
    let trials = harness::backends()
        .into_iter()
        .flat_map(|backend| {
            let of_servers: &[_] = match (backend.is_server(), backend.has_pooler()) {
                (true, true) => &[
                    network::TESTS,
                    opening::TESTS,
                    outage::TESTS,
                    plans::TESTS,
                    pooler::TESTS,
                ],
                (true, false) => &[network::TESTS, opening::TESTS, outage::TESTS, plans::TESTS],
                (false, _) => &[],
            };
            let of_hosts: &[_] = if backend.name == "postgres" {
                &[hosts::TESTS]
            } else {
                &[]
            };
            let of_clusters: &[_] = if backend.is_cluster() {
                &[cluster::TESTS]
            } else {
                &[]
            };
            let of_servers = of_servers.iter().chain(of_hosts).chain(of_clusters).copied();
            let all = suites.into_iter().chain(of_servers).flatten();
            all.map(move |test| {
                let backend = backend.clone();
                Trial::test(format!("{}::{}", backend.name, test.name), move || {
                    backend.run(test)
                })
            })
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit();
}

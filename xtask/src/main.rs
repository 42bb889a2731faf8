//! The developer's commands: `cargo xtask <command>`.
//!
//! One file a command and one `match`. What a command needs beyond the Rust toolchain and CPython it installs
//! itself, under the target directory. Heavy tools stay in packages of their own, which xtask only builds and runs.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these commands talk to the developer who typed them"
)]

mod bench;
mod ci;
mod command;
mod containers;
mod images;
mod itest;
mod python;
mod schemathesis;
mod server;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::workspace::Workspace;

/// Name, and what `help` says of it.
const COMMANDS: &[(&str, &str)] = &[
    (
        "ci",
        "everything that must pass, from the cheap to the expensive: what CI runs; `--without NAME` as for itest",
    ),
    ("tidy", "the rules of this repository that no compiler checks"),
    (
        "python",
        "the end-to-end suite with the published Python client; arguments go to pytest (alias: e2e)",
    ),
    (
        "schemathesis",
        "generated requests against every operation of /openapi.json; arguments go to schemathesis",
    ),
    (
        "itest",
        "two servers on one database: the storage suite and every race on SQLite, PostgreSQL, MariaDB and MySQL; see --help",
    ),
    (
        "images",
        "the container images of the databases and of the server, from Debian's packages where no registry is; see --help",
    ),
    (
        "bench",
        "requests a second beside what the database and HTTP allow; see docs/benchmarks.md",
    ),
    ("help", "this list"),
];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_else(|| "help".to_owned());
    let rest: Vec<String> = arguments.collect();
    match command.as_str() {
        "ci" => ci::run(&Workspace::find()?, &rest),
        "tidy" => tidy::run(&Workspace::find()?),
        "python" | "e2e" => python::run(&Workspace::find()?, &rest),
        "schemathesis" => schemathesis::run(&Workspace::find()?, &rest),
        "itest" => itest::run(&Workspace::find()?, &rest),
        "images" => images::run(&Workspace::find()?, &rest),
        "bench" => bench::run(&Workspace::find()?, &rest),
        "help" | "--help" | "-h" => {
            help();
            Ok(())
        }
        unknown => {
            help();
            bail!("there is no command `{unknown}`")
        }
    }
}

fn help() {
    println!("cargo xtask <command>\n");
    for (name, purpose) in COMMANDS {
        println!("  {name:<14}{purpose}");
    }
}

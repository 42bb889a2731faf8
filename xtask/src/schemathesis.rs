//! Generated requests against every operation that `/openapi.json` describes.
//!
//! The server that takes them has an empty database and may put files only below a directory that goes away with
//! it: the generator makes up locations too.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::server::Server;
use crate::workspace::Workspace;
use crate::{command, python, server};

/// Each a way in which an answer can break what the document promises.
const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

/// One seed for every run: a finding of CI is a finding here.
const SEED: &str = "20260822";

/// How many requests of each operation are generated, beside the document's own examples and the edge cases.
const EXAMPLES: &str = "50";

/// Runs schemathesis; further arguments are handed on.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let environment = python::environment(workspace)?;
    let binary = server::build(workspace)?;
    let directory = fresh_directory(workspace)?;
    let files = directory.join("files");
    let mut server = Server::start(
        &binary,
        &directory,
        &[OsStr::new("--allowed-roots"), files.as_os_str()],
    )?;
    let mut schemathesis = Command::new(python::program(&environment, "schemathesis"));
    schemathesis
        .args(["run", &format!("{}/openapi.json", server.url())])
        .args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing"])
        .args([
            "--max-examples",
            EXAMPLES,
            "--seed",
            SEED,
            "--generation-database",
            "none",
        ])
        .args(["--suppress-health-check", "all", "--no-color"])
        .args(arguments)
        .current_dir(&directory);
    let outcome = command::run(&mut schemathesis);
    ensure!(
        server.alive(),
        "the server did not survive:\n{}",
        server.log_tail(40)
    );
    outcome.with_context(|| format!("the server's last lines:\n{}", server.log_tail(20)))
}

/// Emptied at the start and not at the end, so that what a failed run left can be looked at.
fn fresh_directory(workspace: &Workspace) -> Result<PathBuf> {
    let directory = workspace.target.join("schemathesis");
    if directory.exists() {
        std::fs::remove_dir_all(&directory).context("cannot remove what the last run left")?;
    }
    std::fs::create_dir_all(directory.join("files"))?;
    Ok(directory)
}

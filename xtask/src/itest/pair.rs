//! A PostgreSQL primary and its synchronous standby, in containers of their own.

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};

use super::Plan;
use super::databases::variable;
use super::history::CONTAINER_VARIABLE;
use super::node::{Node, READY_WITHIN};
use crate::command;
use crate::containers::{ACCOUNT, Container};
use crate::images;

const BACKEND: &str = "postgres";

/// Names the container of the standby, beside that of the primary.
const STANDBY_VARIABLE: &str = "TREELINE_TEST_STANDBY";

/// Both, until they are dropped.
#[derive(Debug)]
pub(super) struct Pair {
    primary: Container,
    standby: Container,
    url: String,
}

impl Pair {
    /// Starts both. The primary acknowledges nothing before the standby has it.
    pub(super) fn start(image: &str, network: &str, plan: &Plan) -> Result<Pair> {
        ensure!(
            image.starts_with(images::REPOSITORY),
            "only the image of this repository can be a standby, and {image} is another"
        );
        let run = |options: &[&str], setting: &str| {
            let options = [&["--network", network], options].concat();
            Node::container(BACKEND, image, &options, &["-c", setting], plan)
        };
        let primary = run(&[], "synchronous_standby_names=standby")?;
        let (_, host) = split(&primary.url(BACKEND, network)?);
        let (address, _) = host.split_once(':').unwrap_or((&host, ""));
        let standby = run(
            &["--env", &format!("TREELINE_PRIMARY={address}")],
            "cluster_name=standby",
        )?;
        let (account, other) = split(&standby.url(BACKEND, network)?);
        Ok(Pair {
            primary,
            standby,
            // The standby first: nothing may depend on the order.
            url: format!("{account}@{other},{host}/{ACCOUNT}"),
        })
    }

    /// Makes a database, which waits until the standby is there: before, the primary does not acknowledge it.
    pub(super) fn make(&self, run: &str) -> Result<String> {
        let name = format!("race_{}_{}", std::process::id(), run.replace('-', "_"));
        let begun = Instant::now();
        loop {
            let mut client = Command::new("docker");
            client.args([
                "exec",
                &self.primary.id,
                "timeout",
                "60",
                "psql",
                "--no-psqlrc",
                "--quiet",
            ]);
            client.args(["--username", "postgres", "--command"]);
            let made = command::output(client.arg(format!("CREATE DATABASE {name} OWNER {ACCOUNT}")));
            match made {
                Ok(_) => return Ok(name),
                Err(error) if begun.elapsed() > READY_WITHIN => return Err(error),
                Err(_) => std::thread::sleep(std::time::Duration::from_millis(200)),
            }
        }
    }

    /// Tells a program where both are.
    pub(super) fn tell(&self, program: &mut Command) {
        program
            .env(variable(BACKEND), &self.url)
            .env(CONTAINER_VARIABLE, &self.primary.id)
            .env(STANDBY_VARIABLE, &self.standby.id);
    }
}

/// The scheme and account of a URL, and its host and port.
fn split(url: &str) -> (String, String) {
    let (account, rest) = url.split_once('@').unwrap_or(("", url));
    let (host, _) = rest.split_once('/').unwrap_or((rest, ""));
    (account.to_owned(), host.to_owned())
}

//! What the load generator is told.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

const USAGE: &str = "treeline-load WORK --servers HOST:PORT,… --metalake NAME [--clients N] [--seconds N] [--rows N] \
                     [--tag WORD]; WORK is plant, health, read, create, update or hot";

/// What the clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Makes the tree that the others need, and ends.
    Plant,
    /// Asks for `/health`.
    Health,
    /// Loads models, each some row by its path of four names.
    Read,
    /// Creates models of ever new names in one schema.
    Create,
    /// Sets a property of models, each client of rows that are its own.
    Update,
    /// Sets a property of one model, each client a property that is its own.
    Hot,
}

/// The whole command line.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) work: Work,
    /// Clients are dealt out over them in turn.
    pub(crate) servers: Vec<SocketAddr>,
    /// The top of the tree; a name of its own for each benchmark, so that one database can hold several.
    pub(crate) metalake: String,
    pub(crate) clients: usize,
    pub(crate) duration: Duration,
    /// How many models there are to read and to update.
    pub(crate) rows: usize,
    /// Part of every name that this run creates, so that no other run has it.
    pub(crate) tag: String,
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Options> {
        let work = match words.next().as_deref() {
            Some("plant") => Work::Plant,
            Some("health") => Work::Health,
            Some("read") => Work::Read,
            Some("create") => Work::Create,
            Some("update") => Work::Update,
            Some("hot") => Work::Hot,
            Some(_) | None => bail!(USAGE),
        };
        let mut options = Options {
            work,
            servers: Vec::new(),
            metalake: String::new(),
            clients: 1,
            duration: Duration::from_secs(1),
            rows: 1_000,
            tag: "run".to_owned(),
        };
        while let Some(option) = words.next() {
            let value = words.next().context(USAGE)?;
            match option.as_str() {
                "--servers" => {
                    let addresses = value.split(',').map(str::parse);
                    options.servers = addresses.collect::<Result<_, _>>().context(USAGE)?;
                }
                "--metalake" => options.metalake = value,
                "--clients" => options.clients = value.parse().context(USAGE)?,
                "--seconds" => options.duration = Duration::from_secs_f64(value.parse().context(USAGE)?),
                "--rows" => options.rows = value.parse().context(USAGE)?,
                "--tag" => options.tag = value,
                _ => bail!(USAGE),
            }
        }
        ensure!(
            !options.servers.is_empty() && !options.metalake.is_empty() && options.clients > 0,
            USAGE
        );
        ensure!(
            options.rows >= options.clients,
            "{} clients need a row each, and there are {}",
            options.clients,
            options.rows
        );
        Ok(options)
    }
}

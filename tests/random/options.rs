//! What the run is told.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};

use crate::fault::Fault;

const USAGE: &str = "treeline-random --history FILE [--backend NAME] [--database NAME] [--seed N] [--seconds N] \
                     [--clients N] [--servers N] [--kills] [--fault NAME]; a backend other than sqlite needs TREELINE_TEST_<BACKEND>_URL \
                     and the name of a database there";

/// The whole command line.
#[derive(Debug)]
pub(crate) struct Options {
    /// Where the log goes.
    pub(crate) history: PathBuf,
    pub(crate) backend: String,
    database: Option<String>,
    pub(crate) seed: u64,
    pub(crate) seconds: u64,
    pub(crate) clients: u32,
    pub(crate) servers: usize,
    /// Whether servers are killed on the way.
    pub(crate) kills: bool,
    /// What goes wrong in the middle.
    pub(crate) fault: Option<(String, Fault)>,
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Options> {
        let mut options = Options {
            history: PathBuf::new(),
            backend: "sqlite".to_owned(),
            database: None,
            seed: 1,
            seconds: 20,
            clients: 16,
            servers: 2,
            kills: false,
            fault: None,
        };
        while let Some(option) = words.next() {
            if option == "--kills" {
                options.kills = true;
                continue;
            }
            let value = words.next().context(USAGE)?;
            match option.as_str() {
                "--history" => options.history = std::path::absolute(value)?,
                "--backend" => options.backend = value,
                "--database" => options.database = Some(value),
                "--seed" => options.seed = value.parse().context(USAGE)?,
                "--seconds" => options.seconds = value.parse().context(USAGE)?,
                "--clients" => options.clients = value.parse().context(USAGE)?,
                "--fault" => {
                    let fault = Fault::named(&value)?;
                    options.fault = Some((value, fault));
                }
                "--servers" => options.servers = value.parse().context(USAGE)?,
                _ => bail!(USAGE),
            }
        }
        let is_whole = !options.history.as_os_str().is_empty() && options.clients > 0 && options.servers > 0;
        ensure!(is_whole, USAGE);
        ensure!(
            !options.kills || options.servers > 1,
            "no client can go on if the only server is killed"
        );
        Ok(options)
    }

    /// Where the database is, at each node of a cluster; none for a file of the run's own.
    pub(crate) fn database_urls(&self) -> Result<Vec<String>> {
        if self.backend == "sqlite" {
            return Ok(Vec::new());
        }
        let variable = format!("TREELINE_TEST_{}_URL", self.backend.to_uppercase());
        let servers = std::env::var(&variable).with_context(|| format!("{variable} is not set"))?;
        let database = self.database.as_deref().context(USAGE)?;
        let at = |server: &str| {
            let (server, _) = server
                .rsplit_once('/')
                .context("a server's URL ends with a database")?;
            Ok(format!("{server}/{database}"))
        };
        servers.split_whitespace().map(at).collect()
    }
}

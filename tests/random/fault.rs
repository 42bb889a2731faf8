//! What goes wrong in the middle of a run, once, and is mended again.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;
use tokio::process::Command;
use tokio::task::JoinSet;
use treeline_tests::{Client, eventually, output};

use crate::failover::{self, Primary};
use crate::fleet::Fleet;
use crate::log::Log;
use crate::node;
use crate::points;

/// Names the container of a database server, by which it can be killed and frozen.
const CONTAINER_VARIABLE: &str = "TREELINE_TEST_CONTAINER";

/// Longer than the bound of a wait for a row, so that some are given up.
pub(crate) const SILENCE: Duration = Duration::from_secs(6);

/// What stands still does not answer within this.
const NOTICED_WITHIN: Duration = Duration::from_secs(1);

/// An hour ahead and an hour behind, but for the time between two requests.
const CLOCKS_APART_MS_MIN: i64 = 7_000_000;

/// Of the file system that a run's files lie on if its disk is to fill up, and of what is left of it then.
pub(crate) const DISK_BYTES: usize = 64 << 20;

/// One sort of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The first server's process dies, and another comes in its place.
    ServerKilled,
    /// The servers die in turn, one at every sync point.
    ServerDiesAtPoints,
    /// The first server stands still for a while, its row locks in its hands, and wakes up when all has changed.
    ServerFrozen,
    /// The first server loses the network to its database, without a word from either side, and finds it again.
    ServerCutOff,
    /// The database server dies and is started again.
    DatabaseKilled,
    /// The database server stands still for a while.
    DatabaseFrozen,
    /// The primary dies and its standby is promoted.
    PrimaryFailedOver,
    /// The primary stands still, its standby is promoted, and the old primary wakes up when all have left it.
    PrimaryFrozen,
    /// It stands still for no longer than the promotion takes, so that nobody has missed it.
    PrimaryLeftBehind,
    /// The standby dies and is started again; the primary acknowledges nothing without it.
    StandbyKilled,
    /// The disk of a SQLite file is full for a while.
    DiskFull,
    /// The first server's clock is an hour ahead and the second's an hour behind, all the time.
    ClocksApart,
    /// The second server's node of a cluster dies and comes back.
    NodeKilled,
    /// The second server's node loses the others, and is the minority.
    NodeCutOff,
}

/// How a fault ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Over {
    /// When it began, by the clock of the log.
    pub(crate) from: u64,
    /// When, by the same clock.
    pub(crate) at: u64,
    /// What was seen on the way and must not be.
    pub(crate) amiss: Vec<&'static str>,
    /// When what was read may have been of an old primary, and is not judged.
    pub(crate) stale: Option<RangeInclusive<u64>>,
}

impl Fault {
    pub(crate) const ALL: [(&'static str, Fault); 14] = [
        ("server-killed", Fault::ServerKilled),
        ("server-dies-at-points", Fault::ServerDiesAtPoints),
        ("server-frozen", Fault::ServerFrozen),
        ("server-cut-off", Fault::ServerCutOff),
        ("database-killed", Fault::DatabaseKilled),
        ("database-frozen", Fault::DatabaseFrozen),
        ("primary-failed-over", Fault::PrimaryFailedOver),
        ("primary-frozen", Fault::PrimaryFrozen),
        ("primary-left-behind", Fault::PrimaryLeftBehind),
        ("standby-killed", Fault::StandbyKilled),
        ("disk-full", Fault::DiskFull),
        ("clocks-apart", Fault::ClocksApart),
        ("node-killed", Fault::NodeKilled),
        ("node-cut-off", Fault::NodeCutOff),
    ];

    pub(crate) fn named(name: &str) -> Result<Fault> {
        let known = Fault::ALL.into_iter().find(|(known, _)| *known == name);
        let (_, fault) = known.with_context(|| format!("there is no fault `{name}`"))?;
        Ok(fault)
    }

    /// How far the clock of a server is off, in milliseconds.
    pub(crate) fn clock_skew_ms(self, server: usize) -> i64 {
        match (self, server) {
            (Fault::ClocksApart, 0) => 3_600_000,
            (Fault::ClocksApart, 1) => -3_600_000,
            _ => 0,
        }
    }

    /// Lets it happen after a while, mends it, and answers when it was over by the clock of the log. Fails if it did
    /// not happen.
    pub(crate) async fn strike(
        self,
        after: Duration,
        fleet: &mut Fleet<'_>,
        backend: &str,
        log: &Log,
    ) -> Result<Over> {
        tokio::time::sleep(after).await;
        fleet.looks_out().await?;
        let from = log.now();
        let mut amiss = Vec::new();
        // Whatever is found wrong meanwhile, the fault is mended first: others use what it befell.
        match self {
            Fault::ServerKilled => fleet.replace(0).await?,
            Fault::ServerDiesAtPoints => amiss = points::die_at_each(fleet, log).await?,
            Fault::ServerFrozen => {
                fleet.first().freeze().await?;
                let outcome = are_silent([fleet.first().client()], "/api/health").await;
                tokio::time::sleep(SILENCE).await;
                fleet.first().thaw().await?;
                outcome?;
            }
            Fault::ServerCutOff => {
                fleet.first().cut_off().await?;
                tokio::time::sleep(SILENCE).await;
                let outcome = is_cut_off(fleet.first().client()).await;
                fleet.first().reconnect().await?;
                outcome?;
            }
            Fault::DatabaseKilled => kill_database(backend).await?,
            Fault::DatabaseFrozen => {
                let container = container()?;
                docker(&["pause", &container]).await?;
                let outcome = are_silent(fleet.clients(), "/api/health/ready").await;
                tokio::time::sleep(SILENCE).await;
                docker(&["unpause", &container]).await?;
                outcome?;
            }
            Fault::PrimaryFailedOver => return failover::strike(Primary::Killed, fleet, log).await,
            Fault::PrimaryFrozen => return failover::strike(Primary::Frozen, fleet, log).await,
            Fault::PrimaryLeftBehind => return failover::strike(Primary::LeftBehind, fleet, log).await,
            Fault::StandbyKilled => return failover::kill_standby(fleet, log).await,
            Fault::DiskFull => fill_disk(fleet.directory()).await?,
            Fault::ClocksApart => clocks_are_apart(fleet).await?,
            Fault::NodeKilled => node::kill(fleet).await?,
            Fault::NodeCutOff => node::cut_off(fleet).await?,
        }
        Ok(Over {
            from,
            at: log.now(),
            amiss,
            ..Over::default()
        })
    }
}

/// Fails if any of these servers answers that all is well, as if nothing stood still. They are asked at the same time.
async fn are_silent(clients: impl IntoIterator<Item = Client>, path: &'static str) -> Result<()> {
    let mut asked = JoinSet::new();
    for mut client in clients {
        asked.spawn(async move {
            let answer = tokio::time::timeout(NOTICED_WITHIN, client.get(path)).await;
            !matches!(answer, Ok(Ok(answer)) if answer.status == 200)
        });
    }
    ensure!(
        asked.join_all().await.into_iter().all(|is_silent| is_silent),
        "{path} is answered as if nothing stood still"
    );
    Ok(())
}

async fn is_cut_off(mut client: Client) -> Result<()> {
    let ready = client.get("/api/health/ready").await?;
    ensure!(ready.status != 200, "the server still reaches its database");
    Ok(())
}

/// Ids begin with the clock of the server that gave them; a metalake from each tells how far those are apart.
async fn clocks_are_apart(fleet: &Fleet<'_>) -> Result<()> {
    const CLOCK_BIT: u32 = 22;
    let mut moments = Vec::new();
    for number in [0, 1] {
        let (_, mut client) = fleet.addresses().client(number);
        let body = json!({"name": format!("clock{number}")});
        let made = client.post("/api/metalakes", &body).await?.ok()?;
        moments.push(made.tag()?.id.get() >> CLOCK_BIT);
    }
    let apart = moments[0] - moments[1];
    ensure!(apart > CLOCKS_APART_MS_MIN, "the clocks are {apart} ms apart");
    Ok(())
}

pub(crate) fn container() -> Result<String> {
    std::env::var(CONTAINER_VARIABLE).with_context(|| {
        format!("{CONTAINER_VARIABLE} names no container; `cargo xtask itest --faults` sets it")
    })
}

/// Kills it and starts it again, and waits until it answers itself.
async fn kill_database(backend: &str) -> Result<()> {
    let container = container()?;
    let before = address(&container).await?;
    docker(&["kill", &container]).await?;
    start_at(&before, &container).await?;
    eventually("the database is ready", async || {
        Ok(docker(&ping(backend, &container)).await.is_ok())
    })
    .await
}

fn ping<'a>(backend: &str, container: &'a str) -> Vec<&'a str> {
    let client: &[&str] = match backend {
        "postgres" => &[
            "psql",
            "postgres://treeline:treeline@127.0.0.1/treeline",
            "-c",
            "COMMIT",
        ],
        "mysql" => &["mysql", "-h127.0.0.1", "-utreeline", "-ptreeline", "-eCOMMIT"],
        _ => &["mariadb", "-h127.0.0.1", "-utreeline", "-ptreeline", "-eCOMMIT"],
    };
    ["exec", container].iter().chain(client).copied().collect()
}

pub(crate) async fn address(container: &str) -> Result<String> {
    const ADDRESS: &str = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
    docker(&["inspect", "--format", ADDRESS, container]).await
}

/// Starts what was killed, which must come back where it was.
pub(crate) async fn start_at(before: &str, container: &str) -> Result<()> {
    docker(&["start", container]).await?;
    let after = address(container).await?;
    ensure!(
        before == after,
        "the container has moved from {before} to {after}"
    );
    Ok(())
}

pub(crate) async fn docker(words: &[&str]) -> Result<String> {
    run("docker", words).await
}

async fn run(program: &str, words: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(words);
    output(command).await
}

/// A file system of its own for a directory, so small that it can be filled. Only root may make one.
pub(crate) async fn make_disk(directory: &Path) -> Result<Disk> {
    let place = directory.display().to_string();
    let size = format!("size={DISK_BYTES}");
    run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", &place])
        .await
        .context("a full disk needs a file system of its own, which root can make")?;
    Ok(Disk(place))
}

/// A file system that goes when it is dropped.
pub(crate) struct Disk(String);

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a server that a failed run has left may still have files open there.
        let _ = std::process::Command::new("umount")
            .args(["--lazy", &self.0])
            .output();
    }
}

/// Writes until nothing more can be written, and takes it away again after a while.
async fn fill_disk(directory: &Path) -> Result<()> {
    let filler = directory.join("filler");
    match tokio::fs::write(&filler, vec![0; DISK_BYTES]).await {
        Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {}
        other => bail!("the disk did not fill up: {other:?}"),
    }
    tokio::time::sleep(SILENCE).await;
    Ok(tokio::fs::remove_file(&filler).await?)
}

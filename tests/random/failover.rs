//! The failover of a PostgreSQL primary to its synchronous standby, as whoever operates them does it, and the death of the
//! standby.
//!
//! The primary is killed, or frozen as a machine that stands still, which is worse: it wakes up later and goes on saying
//! that it is the primary. What is seen on the way and must not be is answered by a name, for the summary.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use treeline_tests::eventually;

use crate::fault::{Over, SILENCE, address, container, docker, start_at};
use crate::fleet::Fleet;
use crate::log::Log;

/// Names the container of the standby.
const STANDBY_VARIABLE: &str = "TREELINE_TEST_STANDBY";

/// As long as somebody takes to notice that the primary is gone.
const UNNOTICED: Duration = Duration::from_secs(3);

/// How long a primary stays frozen after the promotion, so that others have written by then.
const LEFT_BEHIND: Duration = Duration::from_secs(3);

/// How long servers may go on reading from an old primary that is awake and that nobody has cut off: they ask the other
/// hosts that often (`docs/several-servers.md`).
const STALE_MAX: Duration = Duration::from_secs(3);

/// How long sessions with a primary that was left behind may last once it is awake.
const LET_GO_WITHIN: Duration = Duration::from_secs(5);

/// What becomes of the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Primary {
    Killed,
    /// And thawed some time after the failover.
    Frozen,
    /// And thawed at once.
    LeftBehind,
}

/// Lets it happen, and answers when the standby said that it was the primary.
pub(crate) async fn strike(primary: Primary, fleet: &Fleet<'_>, log: &Log) -> Result<Over> {
    let (from, old, new) = (log.now(), container()?, standby()?);
    ensure!(follows(&old).await?, "the standby does not follow synchronously");
    ensure!(is_standby(&new).await?, "the standby is none");
    refuses_the_standby_alone(fleet, &address(&new).await?).await?;

    let end = match primary {
        Primary::Killed => "kill",
        Primary::Frozen | Primary::LeftBehind => "pause",
    };
    docker(&[end, &old]).await?;
    let mut amiss = Vec::new();
    if primary != Primary::LeftBehind {
        tokio::time::sleep(UNNOTICED).await;
        // There is no primary now. What a server answered would come from the standby, which may lag behind.
        for mut client in fleet.clients() {
            if client.get("/api/health/ready").await?.status == 200 {
                amiss.push("standby-read");
            }
        }
    }
    let promoted = log.now();
    ensure!(is_standby(&new).await?, "somebody else has promoted the standby");
    ask(&new, "SELECT pg_promote()").await?;
    let is_primary = async || Ok(!is_standby(&new).await?);
    eventually("the standby is the primary", is_primary).await?;
    let at = log.now();

    let mut stale = None;
    match primary {
        Primary::Killed => {
            return Ok(Over {
                from,
                at,
                amiss,
                stale,
            });
        }
        Primary::Frozen => tokio::time::sleep(LEFT_BEHIND).await,
        Primary::LeftBehind => stale = Some(promoted..=at + u64::try_from(STALE_MAX.as_micros())?),
    }
    docker(&["unpause", &old]).await?;
    ensure!(
        !is_standby(&old).await?,
        "the old primary has found out by itself"
    );
    let let_go = eventually("nobody reads from it", async || Ok(ask(&old, HELD).await? == "0"));
    match tokio::time::timeout(LET_GO_WITHIN, let_go).await {
        Ok(let_go) => let_go?,
        Err(_) => amiss.push("old-primary-read"),
    }
    Ok(Over {
        from,
        at,
        amiss,
        stale,
    })
}

/// The standby dies, and is started again after a while. A commit waits meanwhile: only one machine would have it. What is
/// answered is when the standby followed again.
pub(crate) async fn kill_standby(fleet: &Fleet<'_>, log: &Log) -> Result<Over> {
    let (from, primary, standby) = (log.now(), container()?, standby()?);
    ensure!(
        follows(&primary).await?,
        "the standby does not follow synchronously"
    );
    let before = address(&standby).await?;
    docker(&["kill", &standby]).await?;
    let count = fleet.count().to_string();
    let wait = eventually("a commit of each server waits", async || {
        Ok(ask(&primary, WAITING).await? == count)
    })
    .await;
    tokio::time::sleep(SILENCE).await;
    start_at(&before, &standby).await?;
    eventually("the standby follows again", async || follows(&primary).await).await?;
    wait?;
    Ok(Over {
        from,
        at: log.now(),
        ..Over::default()
    })
}

/// The servers of which a commit waits for the standby, each at an address of its own.
const WAITING: &str = "SELECT COUNT(DISTINCT client_addr) FROM pg_stat_activity \
                       WHERE application_name = 'treeline' AND wait_event = 'SyncRep'";

fn standby() -> Result<String> {
    std::env::var(STANDBY_VARIABLE).with_context(|| {
        format!("{STANDBY_VARIABLE} names no container; `cargo xtask itest --faults` sets it")
    })
}

/// Whether a primary has a standby that it waits for.
async fn follows(primary: &str) -> Result<bool> {
    let sync = "SELECT COUNT(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'";
    Ok(ask(primary, sync).await? == "1")
}

/// The sessions that servers hold with a primary that was left behind. Those that wait for a client are looked at: what
/// waits for a lock, or in a commit for the standby, does not notice that its client is gone. And each server goes on asking
/// now and then what it is, which takes no time.
const HELD: &str = "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'treeline' \
                    AND wait_event_type = 'Client' AND backend_start < now() - interval '3 seconds'";

/// Whoever names nothing but a standby is told so.
async fn refuses_the_standby_alone(fleet: &Fleet<'_>, address: &str) -> Result<()> {
    let bed = fleet.bed();
    let parts = bed.database_url(0).split_once('@');
    let (account, rest) = parts.context("the URL has no account")?;
    let (_, database) = rest.split_once('/').context("the URL has no database")?;
    let url = format!("{account}@{address}/{database}");
    let ended = bed.run_on(&url, &["check"]).await?;
    let told = ended.text();
    ensure!(
        ended.code == Some(1) && told.contains("is a standby") && told.contains("`database`"),
        "{:?}: {told}",
        ended.code
    );
    Ok(())
}

async fn is_standby(container: &str) -> Result<bool> {
    match ask(container, "SELECT pg_is_in_recovery()").await?.as_str() {
        "t" => Ok(true),
        "f" => Ok(false),
        other => bail!("whether it is in recovery: `{other}`"),
    }
}

/// Asks a server inside its container, as the one who may do everything.
async fn ask(container: &str, sql: &str) -> Result<String> {
    // SERIALIZABLE, which is the default of these servers, is refused by a standby.
    let plain = "PGOPTIONS=-c default_transaction_isolation=repeatable\\ read";
    let client = [
        "exec",
        "--env",
        plain,
        container,
        "psql",
        "--username",
        "postgres",
    ];
    let words = ["--no-psqlrc", "--tuples-only", "--no-align", "--command", sql];
    docker(&client.iter().chain(&words).copied().collect::<Vec<_>>()).await
}

//! Section 8 of the list: connections that are lost in the worst moment, and waits that have a bound.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use treeline_core::Kind;
use treeline_tests::Action;

use crate::holds::BY_A;
use crate::lab::Backend;
use crate::race::{A, B, Held, Race, dropped};
use crate::rows::{CHILDREN, CREATED, LEAVES, Needs, Row};
use crate::wire::{Cut, Wire};

/// What a server has heard from its database, by sort.
const LOST: &str = "treeline_database_errors_total{error=\"connection_lost\"";
pub(crate) const DEADLOCKS: &str = "treeline_database_errors_total{error=\"deadlock\"";
const LOCK_TIMEOUTS: &str = "treeline_database_errors_total{error=\"lock_timeout\"";

/// Where the stranger has one row and not yet the other.
const STRANGER: &str = "stranger.first_locked";

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "r_retry_1_a_commit_of_unknown_outcome_is_answered_with_the_truth",
        kinds: CREATED,
        needs: Needs::Server,
        tell: |race| {
            Box::pin(r_retry_1_a_commit_of_unknown_outcome_is_answered_with_the_truth(
                race,
            ))
        },
    },
    Row {
        name: "r_retry_2_a_deadlock_with_a_stranger_is_run_again_and_counted",
        kinds: LEAVES,
        needs: Needs::Server,
        tell: |race| {
            Box::pin(r_retry_2_a_deadlock_with_a_stranger_is_run_again_and_counted(
                race,
            ))
        },
    },
    Row {
        name: "r_retry_3_a_wait_for_a_parent_has_a_bound",
        kinds: CHILDREN,
        needs: Needs::Nothing,
        tell: |race| Box::pin(r_retry_3_a_wait_for_a_parent_has_a_bound(race)),
    },
    Row {
        name: "r_retry_4_a_server_that_goes_silent_holds_nobody_up_for_long",
        kinds: CHILDREN,
        needs: Needs::Server,
        tell: |race| Box::pin(r_retry_4_a_server_that_goes_silent_holds_nobody_up_for_long(race)),
    },
    Row {
        name: "r_retry_5_a_server_without_a_free_connection_says_not_now",
        kinds: CREATED,
        needs: Needs::Server,
        tell: |race| Box::pin(r_retry_5_a_server_without_a_free_connection_says_not_now(race)),
    },
];

/// The server finds out whether its commit took effect, and runs it again only if it did not.
async fn r_retry_1_a_commit_of_unknown_outcome_is_answered_with_the_truth(race: &mut Race) -> Result<()> {
    let (wire, url) = Wire::to(&race.pair.bed, race.database_url(A)).await?;
    let server = race.start(A, &["--database", &url]).await?;
    // PostgreSQL takes one statement for an update, and for a create under a parent and without a directory.
    let fuses_updates = race.backend == Backend::Postgres;
    let fuses_creates = fuses_updates && !matches!(race.kind, Kind::Metalake | Kind::Fileset);
    for (cut, name, value) in [(Cut::Before, "x", "never-heard"), (Cut::After, "y", "never-told")] {
        let x = race.place(name).await?;
        wire.cut_next(cut, x.name(), fuses_creates);
        let created = race.meanwhile_on(&server, A, &x.create()).answers().await?.ok()?;
        ensure!(wire.is_cut(), "the create made no commit");
        let facts = race.facts().await?;
        facts.is_as_answered(&x, &created)?;
        facts.feed_says(facts.live(&x)?, &["create"])?;

        wire.cut_next(cut, value, fuses_updates);
        let altered = race
            .meanwhile_on(&server, A, &x.set("p", value))
            .answers()
            .await?
            .ok()?;
        ensure!(wire.is_cut(), "the update made no commit");
        let facts = race.facts().await?;
        facts.is_as_answered(&x, &altered)?;
        facts.has_version(&x, 2)?;

        wire.cut_next(cut, x.name(), false);
        let answer = race.meanwhile_on(&server, A, &x.drop()).answers().await?;
        dropped(&answer, true)?;
        ensure!(wire.is_cut(), "the drop made no commit");
        let facts = race.facts().await?;
        facts.is_not_live(&x)?;
        facts.feed_says(facts.all(&x)[0], &["create", "alter", "drop"])?;
    }
    let unknown = server.count("treeline_commits_unknown_total").await?;
    let lost = server.count(LOST).await?;
    ensure!(
        unknown == 6 && lost >= 6,
        "of 6 cut commits {unknown} are counted, and {lost} lost connections"
    );
    Ok(())
}

/// A rename locks its schema and then its row; a stranger has the row and wants the schema. Who waits longest finds the
/// deadlock on PostgreSQL, and InnoDB ends who has written least: A, either way, unless the machine is very slow.
async fn r_retry_2_a_deadlock_with_a_stranger_is_run_again_and_counted(race: &mut Race) -> Result<()> {
    const ATTEMPTS_MAX: usize = 5;
    // Retries of updates are none of its business. It is where the stranger is: no deadlock spans two nodes.
    let node = race.start(B, &["--occ-retries-max", "0"]).await?;
    let (mut x, mut z) = (race.present("x").await?, race.spot(race.kind, "z").await?);
    let (before, mut renames) = (node.retries().await?, 0);
    while node.retries().await? == before {
        ensure!(renames < ATTEMPTS_MAX, "the deadlock never hit A");
        let facts = race.facts().await?;
        let row = facts.live(&x)?;
        let (first, second) = (row["id"].clone(), row["parent_id"].clone());
        let (hooks, name) = (race.node(B).hooks, race.name("stranger"));
        hooks.arm(STRANGER, &name, Action::Pause).await?;
        let stranger = {
            let name = name.clone();
            tokio::spawn(async move { hooks.lock_as_stranger(&first, &second, &name).await })
        };
        hooks.reached(STRANGER, &name).await?;
        let mut a = race.meanwhile_on(&node, A, &x.rename(&z));
        a.waits().await?;
        hooks.release(STRANGER, &name).await?;
        let renamed = a.answers().await?.ok()?;
        stranger.await??;
        race.facts().await?.is_as_answered(&z, &renamed)?;
        std::mem::swap(&mut x, &mut z);
        renames += 1;
    }
    ensure!(node.count(DEADLOCKS).await? > 0, "the deadlock is not counted");
    let facts = race.facts().await?;
    facts.is_not_live(&z)?;
    let feed: Vec<&str> = std::iter::once("create")
        .chain(std::iter::repeat_n("rename", renames))
        .collect();
    facts.feed_says(facts.live(&x)?, &feed)
}

/// Somebody holds the parent's row for longer than anybody waits for it.
async fn r_retry_3_a_wait_for_a_parent_has_a_bound(race: &mut Race) -> Result<()> {
    const BOUND: Duration = Duration::from_secs(2);
    let (parent, child) = race.family("p").await?;
    let bound = BOUND.as_millis().to_string();
    // Where A is: at another node it would not wait.
    let hasty = race.start(A, &["--operation-ms-max", &bound]).await?;
    let a = race.hold(A, &parent.drop(), "drop.locked").await?;
    let begun = Instant::now();
    let refused = race.meanwhile_on(&hasty, B, &child.create()).answers().await?;
    let took = begun.elapsed();
    refused.refused(409, 1012)?;
    ensure!(refused.headers.contains_key("retry-after"), "no Retry-After");
    // InnoDB ends waits by whole seconds, and looks for them once a second.
    let late = match race.backend {
        Backend::Sqlite | Backend::Postgres => Duration::from_secs(1),
        Backend::MariaDb | Backend::MySql | Backend::Galera => Duration::from_secs(2),
    };
    ensure!(took <= BOUND + late, "it took {took:?}");
    // It is the wait for the lock that has ended, and not the statement as a whole.
    ensure!(
        hasty.count(LOCK_TIMEOUTS).await? > 0,
        "no wait for a lock is counted"
    );
    let exhausted = hasty
        .count("treeline_transaction_retries_exhausted_total")
        .await?;
    ensure!(exhausted == 1, "that it was given up is not counted");
    dropped(&a.goes_on().await?, true)?;
    race.facts().await?.never_was(&child)
}

/// The database ends a session that says nothing inside a transaction; the server that wakes up must not believe that
/// it still has its locks.
async fn r_retry_4_a_server_that_goes_silent_holds_nobody_up_for_long(race: &mut Race) -> Result<()> {
    const SUFFERED: Duration = Duration::from_secs(35);
    let (parent, child) = race.family("p").await?;
    // The session is ended after half of A's time, and A must have enough left to be answered on a slow machine. MySQL ends
    // it when it ends idle ones, after 21 s.
    let bound = if race.backend == Backend::MySql {
        "30000"
    } else {
        "10000"
    };
    let silent = race.start(A, &["--operation-ms-max", bound]).await?;
    let a = Held::at(&silent, A, &parent.drop(), "drop.locked").await?;
    silent.server.freeze().await?;
    let mut b = race.meanwhile(B, &child.create());
    b.waits_or_is_elsewhere().await?;
    let created = b.answers_within(SUFFERED).await?;
    silent.server.thaw().await?;
    let woken = a.goes_on().await?;
    created.ok()?;
    if woken.status == 200 {
        dropped(&woken, true)?;
        race.facts().await?.was_dropped_once(&child, BY_A)
    } else {
        woken.refused(409, 1012)?;
        let facts = race.facts().await?;
        facts.live(&parent)?;
        facts.live(&child).map(drop)
    }
}

/// A has the only connection. Whoever else asks that server is told when to come again, and the server goes on after it.
async fn r_retry_5_a_server_without_a_free_connection_says_not_now(race: &mut Race) -> Result<()> {
    let (x, y) = (race.present("x").await?, race.present("y").await?);
    let narrow = [
        "--database-connections-max",
        "1",
        "--database-acquire-ms-max",
        "500",
    ];
    let narrow = race.start(A, &narrow).await?;
    let a = Held::at(&narrow, A, &x.drop(), "drop.locked").await?;
    let mut client = narrow.server.client();
    for call in [y.load(), y.set("p", "1")] {
        let refused = client.send(call.method, &call.path, &[], &call.body).await?;
        ensure!(
            refused.status == 503 && refused.headers.contains_key("retry-after"),
            "answered {}: {}",
            refused.status,
            refused.text
        );
    }
    let exhausted = narrow.count("treeline_connections_exhausted_total").await?;
    ensure!(exhausted == 2, "{exhausted} of 2 refusals are counted");
    dropped(&a.goes_on().await?, true)?;
    race.meanwhile_on(&narrow, B, &y.load()).answers().await?.ok()?;
    race.facts().await?.has_version(&y, 1)
}

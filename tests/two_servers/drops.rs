//! Section 7 of the list: drops that meet, and the directories that go with filesets.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use treeline_core::Kind;
use treeline_tests::{Action, eventually};

use crate::holds::{BY_A, BY_B};
use crate::pair::Node;
use crate::race::{A, B, Held, Race, dropped};
use crate::rows::{CREATED, rows};

const FILESETS: &[Kind] = &[Kind::Fileset];

rows! {
    r_drop_1_what_is_dropped_twice_is_dropped_once of CREATED,
    r_drop_4_a_directory_that_is_in_use_again_is_not_removed of FILESETS,
    r_drop_5_a_directory_goes_though_its_server_died of FILESETS,
    r_drop_6_a_removal_goes_on_when_its_claim_has_run_out of FILESETS,
    r_drop_7_a_directory_that_was_there_before_stays of FILESETS,
    r_drop_8_a_directory_inside_one_that_is_to_go_is_not_removed of FILESETS,
    r_drop_9_a_directory_whose_create_was_not_to_be_seen_is_there_in_the_end of FILESETS,
    r_drop_10_a_create_and_the_removal_of_what_it_made_do_not_wait_for_each_other of FILESETS,
}

/// A server that looks for unfinished work all the time.
async fn reconciler(race: &Race) -> Result<Node> {
    race.start(B, &["--sweep-interval-ms", "100"]).await
}

/// Fails unless every removal that this row asked for is done with, one way or the other. What a killed server has claimed
/// in another row is free after half a minute only.
async fn all_removals_are_done(race: &Race) -> Result<()> {
    let own = race.name("");
    let _reconciler = reconciler(race).await?;
    eventually("no removal is left", async || {
        let rows = race.pair.rows().await?;
        let mut tasks = rows.of("reconcile_tasks");
        Ok(!tasks.any(|task| {
            task["location"]
                .as_str()
                .is_some_and(|location| location.contains(&own))
        }))
    })
    .await
}

/// By which the points of its removal are known.
fn name_of(directory: &Path) -> String {
    let name = directory.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn has_file(directory: &Path) -> Result<()> {
    let file = directory.join("file");
    ensure!(file.is_file(), "{} is gone", file.display());
    Ok(())
}

async fn r_drop_1_what_is_dropped_twice_is_dropped_once(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let a = race.hold(A, &x.drop(), "drop.locked").await?;
    let b = race.meanwhile(B, &x.drop());
    let (first, of_first, of_second) = race.meet(a, b).await?.in_order();
    dropped(&of_first, true)?;
    dropped(&of_second, false)?;
    race.facts().await?.was_dropped_once(&x, first.principal())
}

/// The removal is owed and not done. B's create at the same place comes after it, whoever does it.
async fn r_drop_4_a_directory_that_is_in_use_again_is_not_removed(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let directory = x.directory();
    std::fs::write(directory.join("old"), "of A's time")?;
    let a = race.hold(A, &x.drop(), "drop.committed").await?;
    race.done(B, &x.create()).await?;
    ensure!(
        !directory.join("old").exists(),
        "the old tree was not removed first"
    );
    std::fs::write(directory.join("file"), "B's")?;
    dropped(&a.goes_on().await?, true)?;
    has_file(&directory)?;
    all_removals_are_done(race).await?;
    has_file(&directory)?;

    // The same where A has claimed the removal already: B waits for it.
    std::fs::write(directory.join("file"), "of A's time again")?;
    let name = name_of(&directory);
    let a = race.hold(A, &x.drop().at(&name), "purge.claimed").await?;
    let b = race.hold(B, &x.create().at(&name), "purge.waits").await?;
    has_file(&directory)?;
    dropped(&a.goes_on().await?, true)?;
    b.goes_on().await?.ok()?;
    ensure!(
        !directory.join("file").exists(),
        "the old tree is there after the create"
    );
    std::fs::write(directory.join("file"), "B's again")?;
    all_removals_are_done(race).await?;
    has_file(&directory)?;
    race.facts().await?.live(&x).map(drop)
}

async fn r_drop_5_a_directory_goes_though_its_server_died(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let directory = x.directory();
    std::fs::write(directory.join("file"), "A's")?;
    let a = race.hold(A, &x.drop(), "drop.committed").await?;
    race.kill(A).await?;
    a.ends_cut().await?;
    let _reconciler = reconciler(race).await?;
    eventually("the directory is gone", async || Ok(!directory.exists())).await?;
    race.facts().await?.was_dropped_once(&x, BY_A)
}

async fn r_drop_6_a_removal_goes_on_when_its_claim_has_run_out(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let directory = x.directory();
    std::fs::write(directory.join("file"), "A's")?;
    let name = name_of(&directory);
    let mut doomed = race.start(A, &["--task-lease-ms", "2000"]).await?;
    let drop = x.drop().at(&name);
    let a = Held::at(&doomed, A, &drop, "purge.claimed").await?;
    doomed.server.kill().await?;
    a.ends_cut().await?;
    has_file(&directory)?;
    all_removals_are_done(race).await?;
    ensure!(!directory.exists(), "{} is left over", directory.display());
    race.facts().await?.was_dropped_once(&x, BY_A)
}

async fn r_drop_7_a_directory_that_was_there_before_stays(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    let directory = x.directory();
    std::fs::create_dir(&directory)?;
    std::fs::write(directory.join("file"), "theirs")?;
    race.done(A, &x.create()).await?;
    dropped(&race.done(B, &x.drop()).await?, true)?;
    all_removals_are_done(race).await?;
    has_file(&directory)?;
    race.facts().await?.was_dropped_once(&x, BY_B)
}

async fn r_drop_8_a_directory_inside_one_that_is_to_go_is_not_removed(race: &mut Race) -> Result<()> {
    let schema = race.make(Kind::Schema, "s").await?;
    let mut directories = Vec::new();
    for number in 0..50 {
        let fileset = schema.child(Kind::Fileset, race.name(&format!("x{number}")));
        race.done(A, &fileset.create()).await?;
        directories.push(fileset.directory());
    }
    let inside = race.place("inside").await?;
    let directory = directories[23].join("deeper/inside");
    let a = race.hold(A, &schema.drop(), "drop.committed").await?;
    race.done(B, &inside.create_in(&directory)).await?;
    std::fs::write(directory.join("file"), "B's")?;
    dropped(&a.goes_on().await?, true)?;
    has_file(&directory)?;
    all_removals_are_done(race).await?;
    has_file(&directory)?;
    let left: Vec<_> = directories
        .iter()
        .filter(|directory| directory.exists())
        .collect();
    ensure!(left == [&directories[23]], "{left:?} are left over");
    race.facts().await?.live(&inside).map(drop)
}

/// Once below the directory that goes and once at it, where it is adopted.
async fn r_drop_9_a_directory_whose_create_was_not_to_be_seen_is_there_in_the_end(
    race: &mut Race,
) -> Result<()> {
    for below in ["inside", ""] {
        let x = race.present(&format!("x{below}")).await?;
        let y = race.place(&format!("y{below}")).await?;
        let directory = x.directory().join(below);
        let a = race.hold(A, &y.create_in(&directory), "create.inserted").await?;
        let b = if race.backend.has_one_writer() {
            // The drop begins when A's row is there.
            let b = race.meanwhile(B, &x.drop());
            a.goes_on().await?.ok()?;
            b
        } else {
            let going = name_of(&x.directory());
            let (at_a, at_b) = (race.node(A).hooks, race.node(B).hooks);
            at_b.arm("purge.claimed", &going, Action::Pause).await?;
            let b = race.meanwhile(B, &x.drop());
            at_b.reached("purge.claimed", &going).await?;
            let coming = name_of(&directory);
            at_a.arm("purge.waits", &coming, Action::Pause).await?;
            let a = a.leaves(race.backend).await?;
            at_a.reached("purge.waits", &coming).await?;
            at_b.release("purge.claimed", &going).await?;
            at_a.release("purge.waits", &coming).await?;
            a.answers().await?.ok()?;
            b
        };
        dropped(&b.answers().await?, true)?;
        std::fs::write(directory.join("file"), "A's")?;
        all_removals_are_done(race).await?;
        has_file(&directory)?;
        race.facts().await?.live(&y)?;
    }
    Ok(())
}

/// The removal is not begun while the directory is being made, so the create must not wait for it.
async fn r_drop_10_a_create_and_the_removal_of_what_it_made_do_not_wait_for_each_other(
    race: &mut Race,
) -> Result<()> {
    const AT_ONCE: Duration = Duration::from_secs(5);
    let x = race.place("x").await?;
    let a = race.hold(A, &x.create(), "create.committed").await?;
    dropped(&race.done(B, &x.drop()).await?, true)?;
    let released = Instant::now();
    a.goes_on().await?.ok()?;
    let took = released.elapsed();
    ensure!(took < AT_ONCE, "the create took {took:?}");
    all_removals_are_done(race).await?;
    ensure!(!x.directory().exists(), "the directory is left over");
    race.facts().await?.was_dropped_once(&x, BY_B)
}

//! Section 1 of the list: many creators of one name, and creators that die.

use anyhow::{Result, ensure};
use treeline_core::Kind;

use crate::holds::{BY_A, BY_B};
use crate::race::{A, B, Held, Meanwhile, Race};
use crate::rows::{CREATED, rows};

rows! {
    r_create_1_same_name_first_inserter_wins of CREATED,
    r_create_2_same_name_first_committer_wins of CREATED,
    r_create_3_a_creator_that_dies_before_its_commit_leaves_no_trace of CREATED,
    r_create_4_a_creator_that_dies_after_its_commit_has_created of CREATED,
    r_create_5_a_name_that_was_dropped_meanwhile_is_free of CREATED,
    r_create_6_creators_under_one_parent_do_not_wait_for_each_other of &[Kind::Schema, Kind::Fileset, Kind::Model],
    r_create_7_a_create_that_fails_leaves_an_external_directory_alone of &[Kind::Fileset],
    r_create_8_many_who_wait_for_one_name_all_get_an_answer of &[Kind::Schema, Kind::Fileset],
}

/// A has inserted and not committed; B must neither succeed nor be told "taken" before it is.
async fn r_create_1_same_name_first_inserter_wins(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    let a = race.hold(A, &x.create(), "create.inserted").await?;
    let b = race.meanwhile(B, &x.create());
    let (winner, created, refused) = race.meet(a, b).await?.in_order();
    refused.refused(409, 1004)?;
    let facts = race.facts().await?;
    facts.is_the_only_one(&x, winner.principal())?;
    facts.is_as_answered(&x, &created.ok()?)
}

/// A has looked and not begun; B is first, and A must not overwrite it.
async fn r_create_2_same_name_first_committer_wins(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    let (of_a, of_b) = (x.sibling("of-a").directory(), x.sibling("of-b").directory());
    let a = race.hold(A, &x.create_in(&of_a), "create.resolved").await?;
    let created = race.done(B, &x.create_in(&of_b)).await?;
    a.goes_on().await?.refused(409, 1004)?;
    let facts = race.facts().await?;
    facts.is_the_only_one(&x, BY_B)?;
    facts.is_as_answered(&x, &created)?;
    ensure!(!of_a.exists(), "{} is left over", of_a.display());
    ensure!(
        of_b.exists() == (race.kind == Kind::Fileset),
        "{} is missing",
        of_b.display()
    );
    Ok(())
}

/// A's transaction goes with its process, and B, which waits for it where it can, gets the name.
async fn r_create_3_a_creator_that_dies_before_its_commit_leaves_no_trace(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    let a = race.hold(A, &x.create(), "create.inserted").await?;
    let mut b = race.meanwhile(B, &x.create());
    b.waits_or_is_elsewhere().await?;
    race.kill(A).await?;
    a.ends_cut().await?;
    let created = b.answers().await?.ok()?;
    let facts = race.facts().await?;
    facts.is_the_only_one(&x, BY_B)?;
    facts.is_as_answered(&x, &created)
}

/// A has committed and not answered: what it wrote is there, whatever its client believes.
async fn r_create_4_a_creator_that_dies_after_its_commit_has_created(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    let create = x.create().keyed(&race.name("key"));
    // The directory of a fileset is the dead server's to make, until its claim has run out.
    let mut doomed = race.start(A, &["--task-lease-ms", "2000"]).await?;
    let a = Held::at(&doomed, A, &create, "create.committed").await?;
    let loaded = race.done(B, &x.load()).await?;
    doomed.server.kill().await?;
    a.ends_cut().await?;
    race.tell(B, &x.create()).await?.refused(409, 1004)?;
    let repeated = race.done(B, &create).await?.tag()?;
    ensure!(
        repeated == loaded.tag()?,
        "the repeat under the same key was answered {repeated}"
    );
    ensure!(
        x.kind != Kind::Fileset || x.directory().is_dir(),
        "the repeat was answered without the directory"
    );
    let facts = race.facts().await?;
    facts.is_the_only_one(&x, BY_A)?;
    facts.is_as_answered(&x, &loaded)
}

/// What B made and dropped meanwhile holds no name any more.
async fn r_create_5_a_name_that_was_dropped_meanwhile_is_free(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    let a = race.hold(A, &x.create(), "create.resolved").await?;
    race.done(B, &x.create()).await?;
    race.done(B, &x.drop()).await?;
    let created = a.goes_on().await?.ok()?;
    let facts = race.facts().await?;
    facts.is_as_answered(&x, &created)?;
    let rows = facts.all(&x);
    ensure!(rows.len() == 2, "two were created: {rows:?}");
    ensure!(
        rows[0]["created_by"] == BY_B && rows[1]["created_by"] == BY_A,
        "{rows:?}"
    );
    facts.feed_says(rows[0], &["create", "drop"])
}

/// The parent is locked by all of them at once. One is held inside its transaction, so that any that had to wait for
/// another would wait for this one.
async fn r_create_6_creators_under_one_parent_do_not_wait_for_each_other(race: &mut Race) -> Result<()> {
    let mut places = Vec::new();
    for number in 0..32 {
        places.push(race.place(&format!("x{number}")).await?);
    }
    let a = race.hold(A, &places[0].create(), "create.inserted").await?;
    let others: Vec<Meanwhile> = places[1..]
        .iter()
        .zip([A, B].into_iter().cycle())
        .map(|(place, side)| race.meanwhile(side, &place.create()))
        .collect();
    if race.backend.has_one_writer() {
        a.goes_on().await?.ok()?;
        for other in others {
            other.answers().await?.ok()?;
        }
    } else {
        for other in others {
            other.finishes().await?.ok()?;
        }
        a.goes_on().await?.ok()?;
    }
    let facts = race.facts().await?;
    for place in &places {
        facts.live(place)?;
    }
    let parent = places[0].parent().unwrap_or_else(|| places[0].clone());
    facts.has_version(&parent, 1)
}

async fn r_create_7_a_create_that_fails_leaves_an_external_directory_alone(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    let directory = x.directory();
    std::fs::create_dir(&directory)?;
    std::fs::write(directory.join("file"), "theirs")?;
    let answer = race
        .fail(A, &x.create_external(&directory), "create.inserted")
        .await?;
    ensure!(
        answer.status >= 400,
        "a create that failed was answered {}",
        answer.status
    );
    race.facts().await?.never_was(&x)?;
    ensure!(std::fs::read_to_string(directory.join("file"))? == "theirs");
    Ok(())
}

/// InnoDB gives all who waited for a name a shared lock on it at once when its creator rolls back, and all but one of
/// them deadlock. That is no client's business.
async fn r_create_8_many_who_wait_for_one_name_all_get_an_answer(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    // Without retries of updates: those of deadlocks have a budget of their own. It waits where A is: no wait spans two
    // nodes.
    let crowd = race
        .start(A, &["--database-connections-max", "40", "--occ-retries-max", "0"])
        .await?;
    let a = race.hold(A, &x.create(), "create.inserted").await?;
    let others: Vec<Meanwhile> = (0..31)
        .map(|_| race.meanwhile_on(&crowd, B, &x.create()))
        .collect();
    race.shows_waiting(&crowd, 31).await?;
    for other in &others {
        ensure!(!other.is_answered(), "one of those who wait was answered");
    }
    race.kill(A).await?;
    a.ends_cut().await?;
    let mut created = Vec::new();
    for other in others {
        let answer = other.answers().await?;
        if answer.status == 200 {
            created.push(answer);
        } else {
            answer.refused(409, 1004)?;
        }
    }
    let [created] = created.as_slice() else {
        anyhow::bail!("{} creators were told that they created it", created.len());
    };
    let facts = race.facts().await?;
    facts.is_the_only_one(&x, BY_B)?;
    facts.is_as_answered(&x, created)
}

//! Section 3 of the list: two writers of one row.

use anyhow::{Result, ensure};
use treeline_core::Kind;

use crate::holds::{BY_A, BY_B};
use crate::lab::Backend;
use crate::race::{A, B, Held, Race, dropped};
use crate::rows::{CREATED, RENAMED, rows};

rows! {
    r_update_1_two_changes_of_one_row_both_count of CREATED,
    r_update_2_the_last_writer_of_one_property_wins of CREATED,
    r_update_3_a_value_that_came_back_is_still_a_change of CREATED,
    r_update_4_a_pinned_version_that_moved_is_refused of CREATED,
    r_update_5_a_writer_waits_for_the_writer_before_it of CREATED,
    r_update_6_a_change_that_changes_nothing_writes_nothing of CREATED,
    r_update_7_a_row_that_was_dropped_is_missing of CREATED,
    r_update_8_a_successor_of_the_name_is_left_alone of CREATED,
    r_update_9_a_row_that_was_renamed_is_missing_under_its_old_name of RENAMED,
    r_update_10_a_drop_waits_for_the_writer_and_takes_what_it_wrote of CREATED,
    r_update_11_sixty_four_writers_of_one_row_lose_nothing of &[Kind::Schema],
    r_update_12_attempts_are_bounded of CREATED,
    r_update_14_a_second_attempt_holds_the_row of CREATED,
    r_update_15_a_second_attempt_does_not_hold_up_children of &[Kind::Catalog, Kind::Schema, Kind::Fileset, Kind::Model],
}

async fn r_update_1_two_changes_of_one_row_both_count(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let a = race.hold(A, &x.set("p", "1"), "update.read").await?;
    race.done(B, &x.set("q", "2")).await?;
    let altered = a.goes_on().await?.ok()?;
    let facts = race.facts().await?;
    facts.has(&x, &[("p", Some("1")), ("q", Some("2"))])?;
    facts.has_version(&x, 3)?;
    facts.is_as_answered(&x, &altered)
}

async fn r_update_2_the_last_writer_of_one_property_wins(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let a = race.hold(A, &x.set("p", "1"), "update.read").await?;
    race.done(B, &x.set("p", "2")).await?;
    a.goes_on().await?.ok()?;
    let facts = race.facts().await?;
    facts.has(&x, &[("p", Some("1"))])?;
    facts.has_version(&x, 3)?;
    let by = &facts.live(&x)?["updated_by"];
    ensure!(by == BY_A, "the last writer is {by}");
    Ok(())
}

/// What A read is there again, byte by byte; only the version tells.
async fn r_update_3_a_value_that_came_back_is_still_a_change(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    race.done(B, &x.set("p", "0")).await?;
    let a = race.hold(A, &x.set("q", "1"), "update.read").await?;
    race.done(B, &x.set("p", "2")).await?;
    race.done(B, &x.set("p", "0")).await?;
    a.goes_on().await?.ok()?;
    let facts = race.facts().await?;
    facts.has(&x, &[("q", Some("1")), ("p", Some("0"))])?;
    facts.has_version(&x, 5)?;
    let operations = ["create", "alter", "alter", "alter", "alter"];
    facts.feed_says(facts.live(&x)?, &operations)
}

async fn r_update_4_a_pinned_version_that_moved_is_refused(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let pinned = race.done(A, &x.load()).await?.tag()?;
    let a = race
        .hold(A, &x.set("p", "1").if_match(pinned), "update.read")
        .await?;
    let altered = race.done(B, &x.set("q", "2")).await?;
    let refused = a.goes_on().await?;
    refused.refused(412, 1012)?;
    let sides = (&refused.json["expected"], &refused.json["actual"]);
    let (expected, actual) = (pinned.to_string(), altered.tag()?.to_string());
    ensure!(
        sides.0.to_string().contains(&expected) && sides.1.to_string().contains(&actual),
        "the two versions are not in {}",
        refused.text
    );
    let facts = race.facts().await?;
    facts.has(&x, &[("p", None), ("q", Some("2"))])?;
    facts.is_as_answered(&x, &altered)?;
    facts.has_version(&x, 2)
}

async fn r_update_5_a_writer_waits_for_the_writer_before_it(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let a = race.hold(A, &x.set("p", "1"), "update.written").await?;
    let b = race.meanwhile(B, &x.set("q", "2"));
    let (_, first, second) = race.meet(a, b).await?.in_order();
    first.ok()?;
    let altered = second.ok()?;
    let facts = race.facts().await?;
    facts.has(&x, &[("p", Some("1")), ("q", Some("2"))])?;
    facts.has_version(&x, 3)?;
    facts.is_as_answered(&x, &altered)
}

async fn r_update_6_a_change_that_changes_nothing_writes_nothing(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    race.done(B, &x.set("p", "1")).await?;
    let a = race.hold(A, &x.set("p", "1"), "update.read").await?;
    race.done(B, &x.set("q", "2")).await?;
    a.goes_on().await?.ok()?;
    let facts = race.facts().await?;
    facts.has(&x, &[("p", Some("1")), ("q", Some("2"))])?;
    facts.has_version(&x, 3)?;
    let by = &facts.live(&x)?["updated_by"];
    ensure!(by == BY_B, "the last writer is {by}");
    Ok(())
}

async fn r_update_7_a_row_that_was_dropped_is_missing(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let a = race.hold(A, &x.set("p", "1"), "update.read").await?;
    race.done(B, &x.drop()).await?;
    a.goes_on().await?.refused(404, 1003)?;
    let facts = race.facts().await?;
    facts.was_dropped_once(&x, BY_B)?;
    facts.feed_says(facts.all(&x)[0], &["create", "drop"])
}

async fn r_update_8_a_successor_of_the_name_is_left_alone(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let a = race.hold(A, &x.set("p", "1"), "update.read").await?;
    race.done(B, &x.drop()).await?;
    let successor = race.done(B, &x.create()).await?;
    a.goes_on().await?.refused(404, 1003)?;
    let facts = race.facts().await?;
    facts.has(&x, &[("p", None)])?;
    facts.has_version(&x, 1)?;
    facts.is_as_answered(&x, &successor)
}

async fn r_update_9_a_row_that_was_renamed_is_missing_under_its_old_name(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let y = x.sibling(race.name("y"));
    let a = race.hold(A, &x.set("p", "1"), "update.read").await?;
    race.done(B, &x.rename(&y)).await?;
    let refused = a.goes_on().await?;
    refused.refused(404, 1003)?;
    ensure!(refused.text.contains(x.name()), "{} names another", refused.text);
    let facts = race.facts().await?;
    facts.is_not_live(&x)?;
    facts.has(&y, &[("p", None)])?;
    facts.has_version(&y, 2)
}

async fn r_update_10_a_drop_waits_for_the_writer_and_takes_what_it_wrote(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let a = race.hold(A, &x.set("p", "1"), "update.written").await?;
    let b = race.meanwhile(B, &x.drop());
    let met = race.meet(a, b).await?;
    dropped(&met.b, true)?;
    let facts = race.facts().await?;
    facts.was_dropped_once(&x, BY_B)?;
    match met.first {
        A => {
            met.a.ok()?;
            facts.feed_says(facts.all(&x)[0], &["create", "alter", "drop"])
        }
        B => {
            met.a.refused(404, 1003)?;
            facts.feed_says(facts.all(&x)[0], &["create", "drop"])
        }
    }
}

/// None deadlocks on the way either, which only MariaDB would, were it to lock the row through another index first. On a
/// cluster each that loses to the other node is run again.
async fn r_update_11_sixty_four_writers_of_one_row_lose_nothing(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let retries = race.retries().await?;
    let keys: Vec<String> = (0..64).map(|number| format!("p{number}")).collect();
    let sides = [A, B].into_iter().cycle();
    let writers: Vec<_> = keys
        .iter()
        .zip(sides)
        .map(|(key, side)| race.meanwhile(side, &x.set(key, "1")))
        .collect();
    for writer in writers {
        writer.answers().await?.ok()?;
    }
    let retried = race.retries().await? - retries;
    ensure!(
        retried == 0 || race.backend.has_two_primaries(),
        "{retried} transactions were run again"
    );
    let facts = race.facts().await?;
    for key in &keys {
        facts.has(&x, &[(key, Some("1"))])?;
    }
    facts.has_version(&x, 65)
}

async fn r_update_12_attempts_are_bounded(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let a = race.hold(A, &x.set("p", "1"), "update.read").await?;
    race.done(B, &x.set("q", "2")).await?;
    a.goes_on().await?.ok()?;
    race.facts().await?.has_version(&x, 3)?;

    let y = race.present("y").await?;
    let once = race.start(A, &["--occ-retries-max", "0"]).await?;
    let a = Held::at(&once, A, &y.set("p", "1"), "update.read").await?;
    race.done(B, &y.set("q", "2")).await?;
    let refused = a.goes_on().await?;
    refused.refused(409, 1012)?;
    ensure!(refused.headers.contains_key("retry-after"), "no Retry-After");
    ensure!(
        once.count("treeline_update_conflicts_total").await? == 1,
        "the conflict is not counted"
    );
    let exhausted = once.count("treeline_update_retries_exhausted_total").await?;
    ensure!(exhausted == 1, "the last attempt is not counted");
    let facts = race.facts().await?;
    facts.has(&y, &[("p", None), ("q", Some("2"))])?;
    facts.has_version(&y, 2)
}

/// A lost its first attempt to B, and has the row for the second: whoever comes now waits, or on a cluster takes it away.
async fn r_update_14_a_second_attempt_holds_the_row(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let mut a = race.hold(A, &x.set("p", "1"), "update.read").await?;
    race.done(B, &x.set("q", "2")).await?;
    a.goes_on_to("update.reread").await?;
    let b = race.meanwhile(B, &x.set("r", "3"));
    let (_, first, second) = race.meet(a, b).await?.in_order();
    first.ok()?;
    second.ok()?;
    let facts = race.facts().await?;
    facts.has(&x, &[("p", Some("1")), ("q", Some("2")), ("r", Some("3"))])?;
    facts.has_version(&x, 4)
}

/// On PostgreSQL the lock of a second attempt lets children come. InnoDB has one exclusive lock for every purpose, and
/// they wait for it.
async fn r_update_15_a_second_attempt_does_not_hold_up_children(race: &mut Race) -> Result<()> {
    let kind = race.kind;
    let x = race.make(kind.parent().unwrap_or(kind), "x").await?;
    let child = x.child(kind, race.name("child"));
    let mut a = race.hold(A, &x.set("p", "1"), "update.read").await?;
    race.done(B, &x.set("q", "2")).await?;
    a.goes_on_to("update.reread").await?;
    let mut b = race.meanwhile(B, &child.create());
    match race.backend {
        Backend::Postgres | Backend::Galera => {
            b.finishes().await?.ok()?;
            a.goes_on().await?.ok()?;
        }
        Backend::Sqlite | Backend::MariaDb | Backend::MySql => {
            b.waits().await?;
            a.goes_on().await?.ok()?;
            b.answers().await?.ok()?;
        }
    }
    let facts = race.facts().await?;
    facts.live(&child)?;
    facts.has(&x, &[("p", Some("1")), ("q", Some("2"))])?;
    facts.has_version(&x, 3)
}

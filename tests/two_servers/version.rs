//! Section 6 of the list: versions of a model, their numbers and their aliases.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use treeline_core::Kind;

use crate::entity::Entity;
use crate::holds::{BY_A, BY_B, Facts, text};
use crate::race::{A, B, Race, dropped, parent_is_missing};
use crate::retry::DEADLOCKS;
use crate::rows::rows;

const VERSIONS: &[Kind] = &[Kind::ModelVersion];

rows! {
    r_version_1_two_links_get_two_numbers of VERSIONS,
    r_version_2_one_alias_goes_to_one_link_and_no_number_is_lost of VERSIONS,
    r_version_3_nothing_is_linked_to_a_model_that_was_dropped of VERSIONS,
    r_version_4_a_version_goes_with_its_model of VERSIONS,
    r_version_5_a_link_and_a_change_of_the_model_both_count of VERSIONS,
    r_version_6_an_alias_is_moved_to_one_place of VERSIONS,
    r_version_7_an_alias_leaves_a_version_that_is_dropped of VERSIONS,
    r_version_8_a_version_is_dropped_once of VERSIONS,
    r_version_9_many_links_give_every_number_once of VERSIONS,
    r_version_10_an_alias_is_given_in_the_order_in_which_models_are_dropped of VERSIONS,
}

/// A model that is there, and the places of its first versions.
async fn model(race: &mut Race, name: &str) -> Result<(Entity, Vec<Entity>)> {
    let model = race.make(Kind::Model, name).await?;
    let versions = (0..4).map(|number| model.child(Kind::ModelVersion, number.to_string()));
    let versions = versions.collect();
    Ok((model, versions))
}

/// The versions that hold an alias now, as the side rows have it.
fn holders<'a>(facts: &'a Facts, model: &Entity, alias: &str) -> Result<Vec<&'a Value>> {
    let row = facts.live(model)?;
    let aliases = facts.side_rows("version_aliases", "model_id", row);
    let held = aliases.into_iter().filter(|side| side["alias"] == alias);
    Ok(held.map(|side| &side["version_id"]).collect())
}

fn is_held_by(facts: &Facts, alias: &str, version: &Entity) -> Result<()> {
    let model = version.parent().context("a version has a model")?;
    let holders = holders(facts, &model, alias)?;
    let id = &facts.live(version)?["id"];
    ensure!(holders == [id], "{alias} is held by {holders:?}, not by {id}");
    Ok(())
}

fn latest(facts: &Facts, model: &Entity) -> Result<i64> {
    let payload: Value = serde_json::from_str(text(&facts.live(model)?["payload"]))?;
    payload["latest_version"].as_i64().context("no latest version")
}

async fn r_version_1_two_links_get_two_numbers(race: &mut Race) -> Result<()> {
    for point in ["link.written", "link.resolved"] {
        let (model, versions) = model(race, if point == "link.written" { "m1" } else { "m2" }).await?;
        let a = race.hold(A, &versions[0].create(), point).await?;
        let b = race.meanwhile(B, &versions[0].create());
        let (of_a, of_b) = if point == "link.written" {
            let (first, of_first, of_second) = race.meet(a, b).await?.in_order();
            of_first.ok()?;
            of_second.ok()?;
            if first == A { (0, 1) } else { (1, 0) }
        } else {
            b.finishes().await?.ok()?;
            a.goes_on().await?.ok()?;
            (1, 0)
        };
        let facts = race.facts().await?;
        facts.is_the_only_one(&versions[of_a], BY_A)?;
        facts.is_the_only_one(&versions[of_b], BY_B)?;
        ensure!(facts.live_under(&model).len() == 2, "there are more versions");
        ensure!(
            latest(&facts, &model)? == 2,
            "the model does not count its versions"
        );
        facts.has_version(&model, 3)?;
    }
    Ok(())
}

async fn r_version_2_one_alias_goes_to_one_link_and_no_number_is_lost(race: &mut Race) -> Result<()> {
    let (_, versions) = model(race, "m").await?;
    let link = versions[0].link(&["best"]);
    let a = race.hold(A, &link, "link.written").await?;
    let b = race.meanwhile(B, &link);
    let (winner, linked, refused) = race.meet(a, b).await?.in_order();
    linked.ok()?;
    refused.refused(409, 1004)?;
    ensure!(
        refused.exception() == "ModelVersionAliasesAlreadyExistException",
        "{}",
        refused.text
    );
    let facts = race.facts().await?;
    facts.is_the_only_one(&versions[0], winner.principal())?;
    facts.never_was(&versions[1])?;
    is_held_by(&facts, "best", &versions[0])?;
    race.done(B, &versions[1].create()).await?;
    race.facts().await?.is_the_only_one(&versions[1], BY_B)
}

async fn r_version_3_nothing_is_linked_to_a_model_that_was_dropped(race: &mut Race) -> Result<()> {
    let (model, versions) = model(race, "m").await?;
    race.done(A, &versions[0].link(&["best"])).await?;
    let a = race
        .hold(A, &versions[1].link(&["next"]), "link.resolved")
        .await?;
    dropped(&race.done(B, &model.drop()).await?, true)?;
    parent_is_missing(&a.goes_on().await?, race.kind)?;
    let facts = race.facts().await?;
    facts.was_dropped_once(&versions[0], BY_B)?;
    facts.never_was(&versions[1])?;
    let row = facts.all(&model)[0];
    let left = facts.side_rows("version_aliases", "model_id", row);
    ensure!(left.is_empty(), "{left:?} are left");
    Ok(())
}

async fn r_version_4_a_version_goes_with_its_model(race: &mut Race) -> Result<()> {
    let (model, versions) = model(race, "m").await?;
    let a = race
        .hold(A, &versions[0].link(&["best"]), "link.model_locked")
        .await?;
    let b = race.meanwhile(B, &model.drop());
    let met = race.meet(a, b).await?;
    dropped(&met.b, true)?;
    let facts = race.facts().await?;
    facts.was_dropped_once(&model, BY_B)?;
    match met.first {
        A => {
            met.a.ok()?;
            facts.was_dropped_once(&versions[0], BY_B)?;
        }
        B => {
            parent_is_missing(&met.a, race.kind)?;
            facts.never_was(&versions[0])?;
        }
    }
    let left = facts.side_rows("version_aliases", "model_id", facts.all(&model)[0]);
    ensure!(left.is_empty(), "{left:?} are left");
    Ok(())
}

async fn r_version_5_a_link_and_a_change_of_the_model_both_count(race: &mut Race) -> Result<()> {
    let (model, versions) = model(race, "m").await?;
    let a = race.hold(A, &versions[0].create(), "link.model_locked").await?;
    let b = race.meanwhile(B, &model.set("p", "1"));
    let met = race.meet(a, b).await?;
    met.a.ok()?;
    met.b.ok()?;
    let facts = race.facts().await?;
    facts.has(&model, &[("p", Some("1"))])?;
    facts.has_version(&model, 3)?;
    ensure!(latest(&facts, &model)? == 1, "the number is lost");
    facts.is_the_only_one(&versions[0], BY_A)
}

/// The protocol changes the aliases of one version a request, so a move is two: off the old one, onto the new one.
/// Both clients get through the first, and one of them through the second.
async fn r_version_6_an_alias_is_moved_to_one_place(race: &mut Race) -> Result<()> {
    let (_, versions) = model(race, "m").await?;
    race.done(A, &versions[0].create()).await?;
    race.done(A, &versions[1].link(&["best"])).await?;
    race.done(A, &versions[2].create()).await?;
    race.done(A, &versions[3].create()).await?;

    let off = versions[1].aliases(&[], &["best"]);
    let a = race.hold(A, &off, "update.written").await?;
    let b = race.meanwhile(B, &off);
    let met = race.meet(a, b).await?;
    met.a.ok()?;
    met.b.ok()?;
    race.facts().await?.has_version(&versions[1], 2)?;

    let a = race
        .hold(A, &versions[2].aliases(&["best"], &[]), "update.written")
        .await?;
    let b = race.meanwhile(B, &versions[3].aliases(&["best"], &[]));
    let (winner, moved, refused) = race.meet(a, b).await?.in_order();
    moved.ok()?;
    refused.refused(409, 1004)?;
    let (holds, has_none) = match winner {
        A => (&versions[2], &versions[3]),
        B => (&versions[3], &versions[2]),
    };
    let facts = race.facts().await?;
    is_held_by(&facts, "best", holds)?;
    facts.has_version(has_none, 1)
}

/// A move is two requests: the first finds no version any more, and the second finds the alias free.
async fn r_version_7_an_alias_leaves_a_version_that_is_dropped(race: &mut Race) -> Result<()> {
    let (model, versions) = model(race, "m").await?;
    race.done(A, &versions[0].create()).await?;
    race.done(A, &versions[1].link(&["best"])).await?;
    race.done(A, &versions[2].create()).await?;
    let a = race.hold(A, &versions[1].drop(), "drop.locked").await?;
    let b = race.meanwhile(B, &versions[1].aliases(&[], &["best"]));
    let met = race.meet(a, b).await?;
    dropped(&met.a, true)?;
    match met.first {
        A => met.b.refused(404, 1003)?,
        B => met.b.ok().map(drop)?,
    }
    let facts = race.facts().await?;
    facts.was_dropped_once(&versions[1], BY_A)?;
    let held = holders(&facts, &model, "best")?;
    ensure!(held.is_empty(), "{held:?} hold the alias of a dropped version");
    race.done(B, &versions[2].aliases(&["best"], &[])).await?;
    is_held_by(&race.facts().await?, "best", &versions[2])
}

async fn r_version_8_a_version_is_dropped_once(race: &mut Race) -> Result<()> {
    let (_, versions) = model(race, "m").await?;
    race.done(A, &versions[0].create()).await?;
    race.done(A, &versions[1].create()).await?;
    let a = race.hold(A, &versions[1].drop(), "drop.locked").await?;
    let b = race.meanwhile(B, &versions[1].drop());
    let (first, of_first, of_second) = race.meet(a, b).await?.in_order();
    dropped(&of_first, true)?;
    dropped(&of_second, false)?;
    race.facts()
        .await?
        .was_dropped_once(&versions[1], first.principal())
}

async fn r_version_9_many_links_give_every_number_once(race: &mut Race) -> Result<()> {
    let (model, versions) = model(race, "m").await?;
    let sides = [A, B].into_iter().cycle();
    let links: Vec<_> = (0..200)
        .zip(sides)
        .map(|(number, side)| {
            let aliases: &[&str] = if number % 10 == 0 { &["best"] } else { &[] };
            race.meanwhile(side, &versions[0].link(aliases))
        })
        .collect();
    let (mut linked, mut refused) = (0, 0);
    for link in links {
        let answer = link.answers().await?;
        if answer.status == 200 {
            linked += 1;
        } else {
            answer.refused(409, 1004)?;
            refused += 1;
        }
    }
    ensure!(
        (linked, refused) == (181, 19),
        "{linked} linked, {refused} refused"
    );
    let facts = race.facts().await?;
    ensure!(latest(&facts, &model)? == 181, "numbers are lost");
    for number in 0..181 {
        facts.live(&model.child(Kind::ModelVersion, number.to_string()))?;
    }
    ensure!(facts.live_under(&model).len() == 181, "there are more versions");
    let held = holders(&facts, &model, "best")?;
    ensure!(held.len() == 1, "the alias is held by {held:?}");
    Ok(())
}

/// How many each server has met so far.
async fn deadlocks(race: &Race) -> Result<[u64; 2]> {
    Ok([
        race.node(A).count(DEADLOCKS).await?,
        race.node(B).count(DEADLOCKS).await?,
    ])
}

/// Both need the model and the version: the drop takes them from the top, and who came to them the other way round would be
/// waited for while it waits.
async fn r_version_10_an_alias_is_given_in_the_order_in_which_models_are_dropped(
    race: &mut Race,
) -> Result<()> {
    let (model, versions) = model(race, "m").await?;
    race.done(A, &versions[0].create()).await?;
    let before = deadlocks(race).await?;
    // The points of an update are known by the entity's own name, which is the number of a version.
    let a = race
        .hold(A, &versions[0].aliases(&["best"], &[]), "update.row_written")
        .await?;
    let b = race.meanwhile(B, &model.drop());
    let met = race.meet(a, b).await?;
    dropped(&met.b, true)?;
    match met.first {
        A => met.a.ok().map(drop)?,
        B => met.a.refused(404, 1003)?,
    }
    // A cluster says so too when it refuses a commit.
    if !race.backend.has_two_primaries() {
        let after = deadlocks(race).await?;
        ensure!(after == before, "deadlocks: {before:?} before, {after:?} now");
    }
    let facts = race.facts().await?;
    facts.was_dropped_once(&model, BY_B)?;
    facts.was_dropped_once(&versions[0], BY_B)?;
    let left = facts.side_rows("version_aliases", "model_id", facts.all(&model)[0]);
    ensure!(left.is_empty(), "{left:?} are left");
    Ok(())
}

//! Section 5 of the list: enabling, disabling, and what depends on it.

use anyhow::{Result, ensure};
use treeline_core::Kind;

use crate::entity::Entity;
use crate::holds::{BY_A, Facts};
use crate::lab::Backend;
use crate::race::{A, B, Race, dropped};
use crate::rows::rows;

const SWITCHED: &[Kind] = &[Kind::Metalake, Kind::Catalog];

rows! {
    r_inuse_1_what_was_enabled_meanwhile_is_not_dropped of SWITCHED,
    r_inuse_2_what_is_being_dropped_is_not_enabled of SWITCHED,
    r_inuse_3_nothing_is_created_under_what_was_disabled_meanwhile of SWITCHED,
    r_inuse_4_a_create_counts_as_before_or_after_the_switch of SWITCHED,
    r_inuse_5_two_switches_on_two_levels_have_an_order of &[Kind::Metalake],
    r_inuse_6_only_effective_switches_count of SWITCHED,
    r_inuse_7_levels_above_the_parent_are_a_gate_on_the_way_down of &[Kind::Metalake],
}

async fn disabled(race: &mut Race, name: &str) -> Result<Entity> {
    let x = race.present(name).await?;
    race.done(A, &x.disable()).await?;
    Ok(x)
}

fn child(race: &Race, of: &Entity) -> Entity {
    match race.kind {
        Kind::Metalake => of.child(Kind::Catalog, race.name("child")),
        _ => of.child(Kind::Schema, race.name("child")),
    }
}

/// The live row's flag.
fn is_enabled(facts: &Facts, entity: &Entity) -> Result<bool> {
    let flag = &facts.live(entity)?["in_use"];
    Ok(flag.as_bool().unwrap_or(flag == 1))
}

fn flag_is(facts: &Facts, entity: &Entity, expected: bool) -> Result<()> {
    ensure!(
        is_enabled(facts, entity)? == expected,
        "{} has the other flag",
        entity.path()
    );
    Ok(())
}

async fn r_inuse_1_what_was_enabled_meanwhile_is_not_dropped(race: &mut Race) -> Result<()> {
    let x = disabled(race, "x").await?;
    let a = race.hold(A, &x.drop_plainly(), "drop.resolved").await?;
    race.done(B, &x.enable()).await?;
    a.goes_on().await?.refused(409, 1010)?;
    let facts = race.facts().await?;
    flag_is(&facts, &x, true)?;
    facts.has_version(&x, 3)
}

async fn r_inuse_2_what_is_being_dropped_is_not_enabled(race: &mut Race) -> Result<()> {
    let x = disabled(race, "x").await?;
    let a = race.hold(A, &x.drop_plainly(), "drop.locked").await?;
    let b = race.meanwhile(B, &x.enable());
    let met = race.meet(a, b).await?;
    let facts = race.facts().await?;
    match met.first {
        A => {
            dropped(&met.a, true)?;
            met.b.refused(404, 1003)?;
            facts.was_dropped_once(&x, BY_A)?;
            facts.feed_says(facts.all(&x)[0], &["create", "alter", "drop"])
        }
        B => {
            met.b.ok()?;
            met.a.refused(409, 1010)?;
            flag_is(&facts, &x, true)?;
            facts.has_version(&x, 3)
        }
    }
}

async fn r_inuse_3_nothing_is_created_under_what_was_disabled_meanwhile(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let child = child(race, &x);
    let a = race.hold(A, &child.create(), "create.resolved").await?;
    race.done(B, &x.disable()).await?;
    a.goes_on().await?.refused(409, 1009)?;
    let facts = race.facts().await?;
    flag_is(&facts, &x, false)?;
    facts.never_was(&child)
}

/// On PostgreSQL a shared lock on the parent goes with a change of it that touches no key, so the create counts as
/// before the switch, and on a cluster it comes before it. Elsewhere it waits, sees the switch, and is refused.
async fn r_inuse_4_a_create_counts_as_before_or_after_the_switch(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let child = child(race, &x);
    let a = race.hold(A, &x.disable(), "update.written").await?;
    let mut b = race.meanwhile(B, &child.create());
    let before = matches!(race.backend, Backend::Postgres | Backend::Galera);
    if before {
        b.finishes().await?.ok()?;
        a.goes_on().await?.ok()?;
    } else {
        b.waits().await?;
        a.goes_on().await?.ok()?;
        b.answers().await?.refused(409, 1009)?;
    }
    let facts = race.facts().await?;
    flag_is(&facts, &x, false)?;
    if before {
        facts.live(&child).map(drop)
    } else {
        facts.never_was(&child)
    }
}

/// A catalog is switched without a lock on its metalake: the metalake's flag is a gate on the way down.
async fn r_inuse_5_two_switches_on_two_levels_have_an_order(race: &mut Race) -> Result<()> {
    let metalake = race.present("m").await?;
    let catalog = metalake.child(Kind::Catalog, race.name("c"));
    race.done(A, &catalog.create()).await?;
    race.done(A, &catalog.disable()).await?;
    let a = race.hold(A, &metalake.disable(), "update.written").await?;
    let mut b = race.meanwhile(B, &catalog.enable());
    let answer = if race.backend.has_one_writer() {
        b.waits().await?;
        a.goes_on().await?.ok()?;
        b.answers().await?
    } else {
        let answer = b.finishes().await?;
        a.goes_on().await?.ok()?;
        answer
    };
    answer.ok()?;
    let facts = race.facts().await?;
    flag_is(&facts, &metalake, false)?;
    flag_is(&facts, &catalog, true)?;
    facts.has_version(&catalog, 3)
}

async fn r_inuse_6_only_effective_switches_count(race: &mut Race) -> Result<()> {
    let x = disabled(race, "x").await?;
    let a = race.hold(A, &x.enable(), "update.read").await?;
    race.done(B, &x.disable()).await?;
    a.goes_on().await?.ok()?;
    let facts = race.facts().await?;
    flag_is(&facts, &x, true)?;
    facts.has_version(&x, 3)?;

    let y = race.present("y").await?;
    let a = race.hold(A, &y.enable(), "update.read").await?;
    race.done(B, &y.disable()).await?;
    a.goes_on().await?.ok()?;
    let facts = race.facts().await?;
    flag_is(&facts, &y, false)?;
    facts.has_version(&y, 2)
}

async fn r_inuse_7_levels_above_the_parent_are_a_gate_on_the_way_down(race: &mut Race) -> Result<()> {
    let metalake = race.present("m").await?;
    let catalog = metalake.child(Kind::Catalog, race.name("c"));
    race.done(A, &catalog.create()).await?;
    let schema = catalog.child(Kind::Schema, race.name("s"));
    let a = race.hold(A, &schema.create(), "create.resolved").await?;
    race.done(B, &metalake.disable()).await?;
    a.goes_on().await?.ok()?;
    let facts = race.facts().await?;
    flag_is(&facts, &metalake, false)?;
    facts.is_the_only_one(&schema, BY_A)
}

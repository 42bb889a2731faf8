//! Section 4 of the list: names that are given, taken and given up at once.

use anyhow::{Result, ensure};
use serde_json::Value;
use treeline_core::Kind;

use crate::entity::Entity;
use crate::holds::{BY_A, BY_B, Facts};
use crate::race::{A, B, Race, dropped, parent_is_missing};
use crate::rows::{LEAVES, RENAMED, rows};

rows! {
    r_rename_1_the_first_to_write_a_new_name_has_it of RENAMED,
    r_rename_2_the_first_to_commit_a_new_name_has_it of RENAMED,
    r_rename_3_a_rename_and_a_create_of_one_name_do_not_both_win of RENAMED,
    r_rename_4_two_renames_onto_each_other_queue_and_are_both_refused of RENAMED,
    r_rename_5_what_was_dropped_is_not_renamed of RENAMED,
    r_rename_6_a_drop_does_not_follow_a_rename of RENAMED,
    r_rename_7_a_rename_and_a_cascade_above_it of LEAVES,
    r_rename_8_nothing_is_created_under_a_name_that_is_given_up of &[Kind::Catalog],
    r_rename_9_a_rename_waits_for_a_child_and_takes_it_along of &[Kind::Catalog],
    r_rename_10_a_rename_at_the_top_writes_one_row of &[Kind::Metalake, Kind::Catalog],
    r_rename_11_one_rename_asked_for_twice of LEAVES,
}

/// Two that are there, and a name that is free.
async fn two(race: &mut Race) -> Result<(Entity, Entity, Entity)> {
    let (x, y) = (race.present("x").await?, race.present("y").await?);
    let z = x.sibling(race.name("z"));
    Ok((x, y, z))
}

async fn r_rename_1_the_first_to_write_a_new_name_has_it(race: &mut Race) -> Result<()> {
    let (x, y, z) = two(race).await?;
    let a = race.hold(A, &x.rename(&z), "rename.written").await?;
    let b = race.meanwhile(B, &y.rename(&z));
    let (winner, renamed, refused) = race.meet(a, b).await?.in_order();
    refused.refused(409, 1004)?;
    let (given_up, kept) = match winner {
        A => (&x, &y),
        B => (&y, &x),
    };
    let facts = race.facts().await?;
    facts.is_as_answered(&z, &renamed.ok()?)?;
    facts.is_not_live(given_up)?;
    facts.has_version(kept, 1)
}

async fn r_rename_2_the_first_to_commit_a_new_name_has_it(race: &mut Race) -> Result<()> {
    let (x, y, z) = two(race).await?;
    let a = race.hold(A, &x.rename(&z), "rename.resolved").await?;
    let renamed = race.done(B, &y.rename(&z)).await?;
    a.goes_on().await?.refused(409, 1004)?;
    let facts = race.facts().await?;
    facts.is_as_answered(&z, &renamed)?;
    facts.is_not_live(&y)?;
    facts.has_version(&x, 1)
}

async fn r_rename_3_a_rename_and_a_create_of_one_name_do_not_both_win(race: &mut Race) -> Result<()> {
    let (x, y, z) = two(race).await?;
    let a = race.hold(A, &x.rename(&z), "rename.written").await?;
    let b = race.meanwhile(B, &z.create());
    let (_, won, refused) = race.meet(a, b).await?.in_order();
    refused.refused(409, 1004)?;
    race.facts().await?.is_as_answered(&z, &won.ok()?)?;

    let w = y.sibling(race.name("w"));
    let a = race.hold(A, &y.rename(&w), "rename.resolved").await?;
    let created = race.done(B, &w.create()).await?;
    a.goes_on().await?.refused(409, 1004)?;
    let facts = race.facts().await?;
    facts.is_as_answered(&w, &created)?;
    facts.has_version(&y, 1)
}

/// Each wants the other's name and would wait for the other's row; the lock of their parent puts them in a queue.
async fn r_rename_4_two_renames_onto_each_other_queue_and_are_both_refused(race: &mut Race) -> Result<()> {
    let (x, y, _) = two(race).await?;
    let a = race.hold(A, &x.rename(&y), "rename.parents_locked").await?;
    let b = race.meanwhile(B, &y.rename(&x));
    let met = race.meet(a, b).await?;
    met.a.refused(409, 1004)?;
    met.b.refused(409, 1004)?;
    let facts = race.facts().await?;
    facts.has_version(&x, 1)?;
    facts.has_version(&y, 1)
}

async fn r_rename_5_what_was_dropped_is_not_renamed(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let z = x.sibling(race.name("z"));
    let a = race.hold(A, &x.rename(&z), "rename.resolved").await?;
    race.done(B, &x.drop()).await?;
    a.goes_on().await?.refused(404, 1003)?;
    let facts = race.facts().await?;
    facts.was_dropped_once(&x, BY_B)?;
    facts.never_was(&z)
}

/// B has resolved x and waits for its row; by the time that it has the lock the row is called otherwise.
async fn r_rename_6_a_drop_does_not_follow_a_rename(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let z = x.sibling(race.name("z"));
    let a = race.hold(A, &x.rename(&z), "rename.written").await?;
    let b = race.meanwhile(B, &x.drop());
    let met = race.meet(a, b).await?;
    let facts = race.facts().await?;
    match met.first {
        A => {
            dropped(&met.b, false)?;
            facts.is_as_answered(&z, &met.a.ok()?)
        }
        B => {
            dropped(&met.b, true)?;
            met.a.refused(404, 1003)?;
            facts.was_dropped_once(&x, BY_B)?;
            facts.never_was(&z)
        }
    }
}

async fn r_rename_7_a_rename_and_a_cascade_above_it(race: &mut Race) -> Result<()> {
    for point in ["rename.resolved", "rename.parents_locked"] {
        let waits = point == "rename.parents_locked";
        let schema = race.make(Kind::Schema, if waits { "s2" } else { "s1" }).await?;
        let x = schema.child(race.kind, race.name("x"));
        let z = x.sibling(race.name("z"));
        race.done(A, &x.create()).await?;
        let a = race.hold(A, &x.rename(&z), point).await?;
        let b = race.meanwhile(B, &schema.drop());
        if waits {
            let met = race.meet(a, b).await?;
            dropped(&met.b, true)?;
            match met.first {
                A => met.a.ok().map(drop)?,
                B => met.a.refused(404, 1003)?,
            }
        } else {
            dropped(&b.finishes().await?, true)?;
            a.goes_on().await?.refused(404, 1003)?;
        }
        let facts = race.facts().await?;
        facts.was_dropped_once(&schema, BY_B)?;
        ensure!(
            facts.live_under(&schema).is_empty(),
            "something lives under the schema"
        );
    }
    Ok(())
}

async fn r_rename_8_nothing_is_created_under_a_name_that_is_given_up(race: &mut Race) -> Result<()> {
    let c = race.present("c").await?;
    let d = c.sibling(race.name("d"));
    let schema = c.child(Kind::Schema, race.name("s"));
    let a = race.hold(A, &c.rename(&d), "rename.written").await?;
    let b = race.meanwhile(B, &schema.create());
    let met = race.meet(a, b).await?;
    met.a.ok()?;
    let facts = race.facts().await?;
    let catalog = facts.live(&d)?;
    match met.first {
        A => {
            parent_is_missing(&met.b, Kind::Schema)?;
            let text = met.b.text;
            ensure!(text.contains(c.name()), "{text} names another");
            facts.never_was(&schema)
        }
        B => {
            met.b.ok()?;
            // No key of a child has the parent's name in it.
            race.none_had_to_be_refused();
            facts.is_the_only_one(&schema, BY_B)?;
            is_under(&facts, &schema, catalog)
        }
    }
}

fn is_under(facts: &Facts, schema: &Entity, catalog: &Value) -> Result<()> {
    let schema = facts.live(schema)?;
    ensure!(schema["parent_id"] == catalog["id"], "{schema} went elsewhere");
    Ok(())
}

async fn r_rename_9_a_rename_waits_for_a_child_and_takes_it_along(race: &mut Race) -> Result<()> {
    let c = race.present("c").await?;
    let d = c.sibling(race.name("d"));
    let schema = c.child(Kind::Schema, race.name("s"));
    let a = race.hold(A, &schema.create(), "create.parent_locked").await?;
    let b = race.meanwhile(B, &c.rename(&d));
    let met = race.meet(a, b).await?;
    met.b.ok()?;
    if met.first == B {
        parent_is_missing(&met.a, Kind::Schema)?;
        let facts = race.facts().await?;
        facts.live(&d)?;
        return facts.never_was(&schema);
    }
    met.a.ok()?;
    race.done(A, &d.child(Kind::Schema, schema.name()).load()).await?;
    let facts = race.facts().await?;
    facts.is_the_only_one(&schema, BY_A)?;
    is_under(&facts, &schema, facts.live(&d)?)
}

/// Every reader sees the whole tree under one name, the old or the new, and no row below is touched.
async fn r_rename_10_a_rename_at_the_top_writes_one_row(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let z = x.sibling(race.name("z"));
    let catalog = match race.kind {
        Kind::Metalake => x.child(Kind::Catalog, race.name("c")),
        _ => x.clone(),
    };
    if race.kind == Kind::Metalake {
        race.done(A, &catalog.create()).await?;
    }
    let mut schemas = Vec::new();
    for number in 0..race.size(10_000, 200) / 100 {
        let schema = catalog.child(Kind::Schema, race.name(&format!("s{number}")));
        race.done(A, &schema.create()).await?;
        let leaves: Vec<Entity> = (0..99)
            .map(|number| schema.child(Kind::Fileset, race.name(&format!("f{number}"))))
            .collect();
        let sides = [A, B].into_iter().cycle();
        let creates = leaves.iter().zip(sides);
        let creates: Vec<_> = creates
            .map(|(leaf, side)| race.meanwhile(side, &leaf.create()))
            .collect();
        for create in creates {
            create.answers().await?.ok()?;
        }
        schemas.push(schema);
    }
    let below = |top: &Entity| {
        let catalog = match race.kind {
            Kind::Metalake => top.child(Kind::Catalog, catalog.name()),
            _ => top.clone(),
        };
        let schema = catalog.child(Kind::Schema, schemas[0].name());
        schema.child(Kind::Fileset, race.name("f7"))
    };
    let (old, new) = (below(&x), below(&z));
    let a = race.hold(A, &x.rename(&z), "rename.written").await?;
    race.done(B, &old.load()).await?;
    race.tell(B, &new.load()).await?.refused(404, 1003)?;
    a.goes_on().await?.ok()?;
    race.tell(B, &old.load()).await?.refused(404, 1003)?;
    race.done(B, &new.load()).await?;
    let facts = race.facts().await?;
    facts.has_version(&z, 2)?;
    for schema in &schemas {
        facts.has_version(schema, 1)?;
        let leaves = facts.live_under(schema);
        let written = leaves.iter().find(|leaf| leaf["version"] != 1);
        ensure!(leaves.len() == 99 && written.is_none(), "{written:?} was written");
    }
    Ok(())
}

async fn r_rename_11_one_rename_asked_for_twice(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let z = x.sibling(race.name("z"));
    let a = race.hold(A, &x.rename(&z), "rename.resolved").await?;
    let renamed = race.done(B, &x.rename(&z)).await?;
    a.goes_on().await?.refused(404, 1003)?;
    let facts = race.facts().await?;
    facts.is_as_answered(&z, &renamed)?;
    facts.has_version(&z, 2)
}

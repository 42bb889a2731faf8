//! Section 2 of the list: creating a child against dropping its parent. A row's kind is the child's.

use anyhow::{Result, ensure};
use treeline_core::Kind;
use treeline_tests::Answer;

use crate::entity::Entity;
use crate::holds::{BY_A, BY_B, Facts, is_live};
use crate::race::{A, B, Race, Side, dropped, parent_is_missing};
use crate::rows::{CHILDREN, LEAVES, PARENTS, rows};

rows! {
    r_parent_1_a_parent_that_went_before_the_lock_is_missing of CHILDREN,
    r_parent_2_a_plain_drop_waits_for_the_child_and_then_finds_it of LEAVES,
    r_parent_3_a_cascade_waits_for_the_child_and_takes_it_along of CHILDREN,
    r_parent_4_a_child_that_came_before_the_lock_is_found of CHILDREN,
    r_parent_5_a_child_waits_for_the_drop_and_then_has_no_parent of CHILDREN,
    r_parent_6_a_drop_that_dies_before_its_commit_has_dropped_nothing of CHILDREN,
    r_parent_7_a_cascade_holds_everything_below_it of LEAVES,
    r_parent_8_a_cascade_takes_along_what_came_below_a_level_not_yet_reached of &[Kind::Fileset],
    r_parent_9_a_schema_is_dropped_once_by_its_own_drop_or_by_its_metalakes of &[Kind::Schema],
    r_parent_10_a_drop_never_acts_on_a_successor_of_the_name of PARENTS,
    r_parent_11_a_cascade_holds_every_level_once_it_has_looked of &[Kind::Fileset],
    r_parent_12_a_cascade_waits_for_a_create_two_levels_down of &[Kind::Fileset],
}

pub(crate) fn both_live(facts: &Facts, parent: &Entity, child: &Entity) -> Result<()> {
    let (parent, child) = (facts.live(parent)?, facts.live(child)?);
    ensure!(
        child["parent_id"] == parent["id"],
        "{child} is not under {parent}"
    );
    Ok(())
}

async fn r_parent_1_a_parent_that_went_before_the_lock_is_missing(race: &mut Race) -> Result<()> {
    let (parent, child) = race.family("p").await?;
    let a = race.hold(A, &child.create(), "create.resolved").await?;
    race.done(B, &parent.drop()).await?;
    parent_is_missing(&a.goes_on().await?, race.kind)?;
    let facts = race.facts().await?;
    facts.was_dropped_once(&parent, BY_B)?;
    facts.never_was(&child)
}

/// The child's shared lock keeps the drop away from the parent; the drop looks for children after its lock, so it
/// finds the child that was committed meanwhile. On a cluster the drop finishes, and the child has no parent any more.
async fn r_parent_2_a_plain_drop_waits_for_the_child_and_then_finds_it(race: &mut Race) -> Result<()> {
    let (parent, child) = race.family("p").await?;
    let a = race.hold(A, &child.create(), "create.parent_locked").await?;
    let b = race.meanwhile(B, &parent.drop_plainly());
    let met = race.meet(a, b).await?;
    let facts = race.facts().await?;
    match met.first {
        A => {
            met.a.ok()?;
            met.b.refused(409, 1005)?;
            both_live(&facts, &parent, &child)
        }
        B => {
            dropped(&met.b, true)?;
            facts.was_dropped_once(&parent, BY_B)?;
            has_no_parent(&facts, &met.a, &child)
        }
    }
}

/// The child came too late, and left nothing.
fn has_no_parent(facts: &Facts, answer: &Answer, child: &Entity) -> Result<()> {
    let lives = facts.all(child).into_iter().find(|row| is_live(row));
    ensure!(lives.is_none(), "{lives:?} lives under a dropped parent");
    parent_is_missing(answer, child.kind)?;
    facts.never_was(child)
}

async fn r_parent_3_a_cascade_waits_for_the_child_and_takes_it_along(race: &mut Race) -> Result<()> {
    if race.backend.has_two_primaries() {
        return a_cascade_overtakes_the_child(race).await;
    }
    let (parent, child) = race.family("p").await?;
    let mut a = race.hold(A, &child.create(), "create.parent_locked").await?;
    let mut b = race.meanwhile(B, &parent.drop());
    b.waits().await?;
    a.goes_on_to("create.inserted").await?;
    b.waits().await?;
    a.goes_on().await?.ok()?;
    dropped(&b.answers().await?, true)?;
    let facts = race.facts().await?;
    facts.was_dropped_once(&parent, BY_B)?;
    facts.was_dropped_once(&child, BY_B)
}

/// The same at two nodes: the drop is through before the child is, at either point.
async fn a_cascade_overtakes_the_child(race: &mut Race) -> Result<()> {
    for (name, point) in [("p", "create.parent_locked"), ("q", "create.inserted")] {
        let (parent, child) = race.family(name).await?;
        let a = race.hold(A, &child.create(), point).await?;
        let b = race.meanwhile(B, &parent.drop());
        let met = race.meet(a, b).await?;
        dropped(&met.b, true)?;
        let facts = race.facts().await?;
        facts.was_dropped_once(&parent, BY_B)?;
        has_no_parent(&facts, &met.a, &child)?;
    }
    Ok(())
}

async fn r_parent_4_a_child_that_came_before_the_lock_is_found(race: &mut Race) -> Result<()> {
    if LEAVES.contains(&race.kind) {
        let (parent, child) = race.family("plain").await?;
        let a = race.hold(A, &parent.drop_plainly(), "drop.resolved").await?;
        race.done(B, &child.create()).await?;
        a.goes_on().await?.refused(409, 1005)?;
        both_live(&race.facts().await?, &parent, &child)?;
    }
    let (parent, child) = race.family("p").await?;
    let a = race.hold(A, &parent.drop(), "drop.resolved").await?;
    race.done(B, &child.create()).await?;
    dropped(&a.goes_on().await?, true)?;
    let facts = race.facts().await?;
    facts.was_dropped_once(&parent, BY_A)?;
    ensure!(facts.live_under(&parent).is_empty(), "the child lives on");
    Ok(())
}

/// From the lock to the commit, at every step. On a cluster the child is through first, and the drop takes it along.
async fn r_parent_5_a_child_waits_for_the_drop_and_then_has_no_parent(race: &mut Race) -> Result<()> {
    for (number, point) in ["drop.locked", "drop.children_checked", "drop.written"]
        .into_iter()
        .enumerate()
    {
        let (parent, child) = race.family(&format!("p{number}")).await?;
        let a = race.hold(A, &parent.drop(), point).await?;
        let b = race.meanwhile(B, &child.create());
        let met = race.meet(a, b).await?;
        if point == "drop.locked" {
            // It looks for children after that, and finds this one.
            race.none_had_to_be_refused();
        }
        dropped(&met.a, true)?;
        let facts = race.facts().await?;
        facts.was_dropped_once(&parent, BY_A)?;
        ensure!(facts.live_under(&parent).is_empty(), "the child lives on");
        comes_too_late_or_goes_along(&facts, met.first, &met.b, &child)?;
    }
    Ok(())
}

/// What becomes of something that B makes below what A drops.
fn comes_too_late_or_goes_along(facts: &Facts, first: Side, made: &Answer, entity: &Entity) -> Result<()> {
    match first {
        A => {
            parent_is_missing(made, entity.kind)?;
            facts.never_was(entity)
        }
        B => {
            ensure!(made.status == 200, "{}: {}", made.status, made.text);
            facts.was_dropped_once(entity, BY_A)
        }
    }
}

async fn r_parent_6_a_drop_that_dies_before_its_commit_has_dropped_nothing(race: &mut Race) -> Result<()> {
    let (parent, child) = race.family("p").await?;
    let a = race.hold(A, &parent.drop(), "drop.written").await?;
    let mut b = race.meanwhile(B, &child.create());
    b.waits_or_is_elsewhere().await?;
    race.kill(A).await?;
    a.ends_cut().await?;
    b.answers().await?.ok()?;
    let facts = race.facts().await?;
    both_live(&facts, &parent, &child)?;
    let operations: &[&str] = if race.kind == Kind::ModelVersion {
        &["create", "alter"]
    } else {
        &["create"]
    };
    facts.feed_says(facts.live(&parent)?, operations)
}

/// Two levels down too: a version is linked to a model that the cascade has found.
async fn r_parent_7_a_cascade_holds_everything_below_it(race: &mut Race) -> Result<()> {
    let (schema, _) = race.family("p").await?;
    let mut leaves = Vec::new();
    for number in 0..5 {
        let leaf = schema.child(race.kind, race.name(&format!("x{number}")));
        race.done(A, &leaf.create()).await?;
        for version in 0..4 {
            if race.kind == Kind::Model {
                let version = leaf.child(Kind::ModelVersion, version.to_string());
                race.done(A, &version.create()).await?;
            }
        }
        leaves.push(leaf);
    }
    let sixth = schema.child(race.kind, race.name("x5"));
    let fifth = leaves[2].child(Kind::ModelVersion, "4");
    let a = race.hold(A, &schema.drop(), "drop.children_checked").await?;
    let mut link = None;
    if race.kind == Kind::Model {
        let mut linking = race.meanwhile(B, &fifth.create());
        linking.waits_or_is_elsewhere().await?;
        link = Some(linking);
    }
    let waiting = 1 + u64::from(link.is_some());
    let b = race.meanwhile(B, &sixth.create());
    if !race.backend.has_two_primaries() {
        race.shows_waiting(race.node(B), waiting).await?;
    }
    let met = race.meet(a, b).await?;
    dropped(&met.a, true)?;
    let facts = race.facts().await?;
    facts.was_dropped_once(&schema, BY_A)?;
    comes_too_late_or_goes_along(&facts, met.first, &met.b, &sixth)?;
    if let Some(link) = link {
        comes_too_late_or_goes_along(&facts, met.first, &link.answers().await?, &fifth)?;
    }
    for leaf in &leaves {
        facts.was_dropped_once(leaf, BY_A)?;
        ensure!(facts.live_under(leaf).is_empty(), "versions live on");
    }
    Ok(())
}

/// A metalake with a catalog and a schema in it, and a fileset to be.
async fn deep_family(race: &mut Race, name: &str) -> Result<(Entity, Entity, Entity)> {
    let metalake = race.make(Kind::Metalake, name).await?;
    let catalog = metalake.child(Kind::Catalog, race.name("c"));
    race.done(A, &catalog.create()).await?;
    let schema = catalog.child(Kind::Schema, race.name("s"));
    race.done(A, &schema.create()).await?;
    let fileset = schema.child(Kind::Fileset, race.name(&format!("f_of_{name}")));
    Ok((metalake, schema, fileset))
}

/// A has locked the metalake and nothing below it, so B's create goes through, and the cascade finds it on its way.
async fn r_parent_8_a_cascade_takes_along_what_came_below_a_level_not_yet_reached(
    race: &mut Race,
) -> Result<()> {
    let (metalake, _, fileset) = deep_family(race, "m").await?;
    let a = race.hold(A, &metalake.drop(), "drop.locked").await?;
    let mut b = race.meanwhile(B, &fileset.create());
    if race.backend.has_one_writer() {
        b.waits().await?;
        dropped(&a.goes_on().await?, true)?;
        parent_is_missing(&b.answers().await?, race.kind)?;
        race.facts().await?.never_was(&fileset)?;
    } else {
        b.finishes().await?.ok()?;
        dropped(&a.goes_on().await?, true)?;
        race.facts().await?.was_dropped_once(&fileset, BY_A)?;
    }
    nothing_lives_in(race, &metalake).await
}

async fn nothing_lives_in(race: &Race, metalake: &Entity) -> Result<()> {
    let facts = race.facts().await?;
    let live = facts.live_in_metalake(metalake);
    ensure!(live.is_empty(), "{live:?} live on");
    Ok(())
}

async fn r_parent_9_a_schema_is_dropped_once_by_its_own_drop_or_by_its_metalakes(
    race: &mut Race,
) -> Result<()> {
    let (metalake, schema, fileset) = deep_family(race, "m").await?;
    race.done(A, &fileset.create()).await?;
    let a = race.hold(A, &metalake.drop(), "drop.children_checked").await?;
    // Once it waits it has resolved the schema; before that, the metalake may be gone by the time that it looks.
    let b = race.meanwhile(B, &schema.drop());
    let met = race.meet(a, b).await?;
    dropped(&met.a, true)?;
    let own = met.b.ok()?;
    let by = if own.json["dropped"] == true { BY_B } else { BY_A };
    let facts = race.facts().await?;
    facts.was_dropped_once(&metalake, BY_A)?;
    facts.was_dropped_once(&schema, by)?;
    facts.was_dropped_once(&fileset, by)?;
    nothing_lives_in(race, &metalake).await
}

/// B drops it and creates it again while A, which resolved the first one, has not locked it yet.
async fn r_parent_10_a_drop_never_acts_on_a_successor_of_the_name(race: &mut Race) -> Result<()> {
    for pinned in [false, true] {
        let x = race.present(if pinned { "pinned" } else { "x" }).await?;
        let tag = race.done(A, &x.load()).await?.tag()?;
        let drop = if pinned { x.drop().if_match(tag) } else { x.drop() };
        let a = race.hold(A, &drop, "drop.resolved").await?;
        race.done(B, &x.drop()).await?;
        let successor = race.done(B, &x.create()).await?;
        let answer = a.goes_on().await?;
        if pinned {
            answer.refused(412, 1012)?;
        } else {
            dropped(&answer, false)?;
        }
        let facts = race.facts().await?;
        facts.is_as_answered(&x, &successor)?;
        facts.feed_says(facts.all(&x)[0], &["create", "drop"])?;
        facts.feed_says(facts.live(&x)?, &["create"])?;
    }
    Ok(())
}

async fn r_parent_11_a_cascade_holds_every_level_once_it_has_looked(race: &mut Race) -> Result<()> {
    let (metalake, _, fileset) = deep_family(race, "m").await?;
    let a = race.hold(A, &metalake.drop(), "drop.children_checked").await?;
    let b = race.meanwhile(B, &fileset.create());
    let met = race.meet(a, b).await?;
    dropped(&met.a, true)?;
    comes_too_late_or_goes_along(&race.facts().await?, met.first, &met.b, &fileset)?;
    nothing_lives_in(race, &metalake).await
}

async fn r_parent_12_a_cascade_waits_for_a_create_two_levels_down(race: &mut Race) -> Result<()> {
    for (number, point) in ["create.parent_locked", "create.inserted"]
        .into_iter()
        .enumerate()
    {
        let (metalake, _, fileset) = deep_family(race, &format!("m{number}")).await?;
        let a = race.hold(A, &fileset.create(), point).await?;
        let b = race.meanwhile(B, &metalake.drop());
        let met = race.meet(a, b).await?;
        dropped(&met.b, true)?;
        let facts = race.facts().await?;
        match met.first {
            A => {
                met.a.ok()?;
                facts.was_dropped_once(&fileset, BY_B)?;
            }
            B => has_no_parent(&facts, &met.a, &fileset)?,
        }
        nothing_lives_in(race, &metalake).await?;
    }
    Ok(())
}

//! Section 8 of the list: one request under one key, wherever it is repeated. Keys belong to principals, so both sides
//! ask as one.

use anyhow::{Result, ensure};
use treeline_core::Kind;
use treeline_tests::eventually;

use crate::holds::BY_A;
use crate::race::{A, B, Race, dropped};
use crate::rows::{CREATED, rows};

const FILESETS: &[Kind] = &[Kind::Fileset];

rows! {
    r_idem_1_a_repeat_waits_for_the_first_and_has_its_answer of CREATED,
    r_idem_2_a_repeat_that_overtakes_the_first_is_the_only_one of CREATED,
    r_idem_3_a_key_stands_for_one_request of CREATED,
    r_idem_4_a_repeated_drop_leaves_the_successor_alone of CREATED,
    r_idem_5_a_key_goes_with_its_transaction of CREATED,
    r_idem_6_an_update_whose_answer_was_lost_is_not_done_twice of CREATED,
    r_idem_7_a_repeat_waits_for_the_directory_of_the_first of FILESETS,
    r_idem_8_a_create_that_is_undone_is_done_anew_by_its_repeat of FILESETS,
}

async fn r_idem_1_a_repeat_waits_for_the_first_and_has_its_answer(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    let create = x.create().keyed(&race.name("key"));
    let a = race.hold(A, &create, "create.inserted").await?;
    let b = race.meanwhile(B, &create);
    let (_, first, second) = race.meet(a, b).await?.in_order();
    let (first, second) = (first.ok()?.tag()?, second.ok()?.tag()?);
    ensure!(first == second, "{first} and {second} were answered");
    race.facts().await?.is_the_only_one(&x, BY_A)
}

async fn r_idem_2_a_repeat_that_overtakes_the_first_is_the_only_one(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    let key = race.name("key");
    let create = x.create().keyed(&key);
    let a = race
        .hold(A, &create.clone().at(&key), "idempotency.looked_up")
        .await?;
    let second = race.done(B, &create).await?.tag()?;
    let first = a.goes_on().await?.ok()?.tag()?;
    ensure!(first == second, "{first} and {second} were answered");
    race.facts().await?.is_the_only_one(&x, BY_A)
}

async fn r_idem_3_a_key_stands_for_one_request(race: &mut Race) -> Result<()> {
    let (x, y) = (race.place("x").await?, race.place("y").await?);
    let key = race.name("key");
    race.done(A, &x.create().keyed(&key)).await?;
    race.tell(B, &y.create().keyed(&key)).await?.refused(422, 1001)?;
    let facts = race.facts().await?;
    facts.is_the_only_one(&x, BY_A)?;
    facts.never_was(&y)
}

async fn r_idem_4_a_repeated_drop_leaves_the_successor_alone(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let drop = x.drop().keyed(&race.name("key"));
    dropped(&race.done(A, &drop).await?, true)?;
    let successor = race.done(B, &x.create()).await?;
    dropped(&race.done(B, &drop).await?, true)?;
    race.facts().await?.is_as_answered(&x, &successor)
}

async fn r_idem_5_a_key_goes_with_its_transaction(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    let create = x.create().keyed(&race.name("key"));
    let a = race.hold(A, &create, "create.inserted").await?;
    race.kill(A).await?;
    a.ends_cut().await?;
    let created = race.done(B, &create).await?;
    let facts = race.facts().await?;
    facts.is_the_only_one(&x, BY_A)?;
    facts.is_as_answered(&x, &created)
}

async fn r_idem_6_an_update_whose_answer_was_lost_is_not_done_twice(race: &mut Race) -> Result<()> {
    let x = race.present("x").await?;
    let set = x.set("p", "1").keyed(&race.name("key"));
    let a = race.hold(A, &set, "update.written").await?;
    a.ends_abandoned().await?;
    eventually("the update is carried through", async || {
        Ok(race.done(B, &x.load()).await?.tag()?.version.get() == 2)
    })
    .await?;
    race.done(B, &x.set("p", "2")).await?;
    let repeated = race.done(B, &set).await?;
    ensure!(
        repeated.tag()?.version.get() == 2,
        "the repeat was answered {}",
        repeated.tag()?
    );
    let facts = race.facts().await?;
    facts.has(&x, &[("p", Some("2"))])?;
    facts.has_version(&x, 3)
}

/// The first has committed, and may fail to make its directory yet.
async fn r_idem_7_a_repeat_waits_for_the_directory_of_the_first(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    let create = x.create().keyed(&race.name("key"));
    let a = race.hold(A, &create, "create.committed").await?;
    let b = race.hold(B, &create, "create.waits").await?;
    ensure!(!x.directory().exists(), "the directory is not B's to make");
    let first = a.goes_on().await?.ok()?.tag()?;
    let second = b.goes_on().await?.ok()?.tag()?;
    ensure!(first == second, "{first} and {second} were answered");
    ensure!(x.directory().is_dir(), "there is no directory");
    race.facts().await?.is_the_only_one(&x, BY_A)
}

/// What is in the way of A's directory is gone when B does the request anew.
async fn r_idem_8_a_create_that_is_undone_is_done_anew_by_its_repeat(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    let create = x.create().keyed(&race.name("key"));
    let mut a = race.hold(A, &create, "create.committed").await?;
    std::fs::write(x.directory(), "in the way")?;
    a.goes_on_to("undo.begun").await?;
    let b = race.hold(B, &create, "create.waits").await?;
    std::fs::remove_file(x.directory())?;
    a.goes_on().await?.refused(400, 1001)?;
    let anew = b.goes_on().await?.ok()?;
    ensure!(x.directory().is_dir(), "there is no directory");
    let facts = race.facts().await?;
    facts.is_as_answered(&x, &anew)?;
    let rows = facts.all(&x);
    ensure!(rows.len() == 2, "two were created: {rows:?}");
    facts.feed_says(rows[0], &["create", "drop"])?;
    facts.feed_says(rows[1], &["create"])
}

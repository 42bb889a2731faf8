//! Section 9 of the list: many clients on one or two names at once, and whether what they were told adds up.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use treeline_core::{EntityTag, Kind};
use treeline_tests::{Answer, Client, eventually};

use crate::churn::{Churn, adds_up};
use crate::entity::Call;
use crate::holds::is_live;
use crate::race::{A, B, Race, Side, dropped};
use crate::rows::{CREATED, LEAVES, rows};
use crate::tally::{Tally, ask};

rows! {
    r_churn_1_one_of_a_hundred_creators_wins_every_time of LEAVES,
    r_churn_2_a_hundred_creates_under_one_key_are_one of LEAVES,
    r_churn_3_flips_against_writers_on_one_server of LEAVES,
    r_churn_4_what_blind_writers_are_told_adds_up of LEAVES,
    r_churn_5_readers_see_nothing_or_one_whole_generation of LEAVES,
    r_churn_6_what_is_not_committed_is_not_there of CREATED,
    r_churn_7_creates_against_drops_of_their_parent_leave_no_orphan of
        &[Kind::Schema, Kind::Fileset, Kind::Model, Kind::ModelVersion],
    r_churn_8_two_names_renamed_created_and_dropped_at_once of &[Kind::Catalog, Kind::Model],
    r_churn_9_what_was_dropped_is_purged_whole of LEAVES,
}

/// How many ask at once.
const CROWD: usize = 100;

/// Clients that send one request each, all in the same moment.
struct Crowd(Vec<Client>);

impl Crowd {
    fn of(race: &Race, sides: &[Side], count: usize) -> Crowd {
        let clients = sides.iter().cycle().take(count);
        Crowd(clients.map(|side| race.client(*side)).collect())
    }

    /// All ask the same.
    async fn asks(&mut self, call: &Call) -> Result<Vec<Answer>> {
        self.ask(&vec![call; self.0.len()]).await
    }

    /// Each asks something of its own, and the answers are in that order.
    async fn ask(&mut self, calls: &[&Call]) -> Result<Vec<Answer>> {
        let together = Arc::new(Barrier::new(calls.len()));
        let mut asking = Vec::new();
        for (mut client, call) in self.0.drain(..).zip(calls) {
            let (together, call) = (Arc::clone(&together), (*call).clone());
            asking.push(tokio::spawn(async move {
                together.wait().await;
                let answer = ask(&mut client, &call).await?;
                anyhow::Ok((client, answer))
            }));
        }
        let mut answers = Vec::new();
        for asked in asking {
            let (client, answer) = asked.await??;
            self.0.push(client);
            answers.push(answer);
        }
        Ok(answers)
    }
}

/// First on one server, then on both.
async fn r_churn_1_one_of_a_hundred_creators_wins_every_time(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    let mut rounds = 0;
    for (sides, count) in [(&[A][..], race.size(1_000, 1)), (&[A, B], race.size(200, 2))] {
        let mut crowd = Crowd::of(race, sides, CROWD);
        for _ in 0..count {
            rounds += 1;
            let answers = crowd.asks(&x.create()).await?;
            let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
            for answer in &lost {
                answer.refused(409, 1004)?;
            }
            let [winner] = won.as_slice() else {
                anyhow::bail!("{} creators were told that they created it", won.len());
            };
            let there = race.done(B, &x.load()).await?;
            ensure!(
                there.tag()? == winner.tag()?,
                "another one than the winner's is there"
            );
            dropped(&race.tell(A, &x.drop()).await?, true)?;
        }
    }
    let rows = race.facts().await?.all(&x).len();
    ensure!(rows == rounds, "{rounds} winners, and {rows} rows ever");
    Ok(())
}

async fn r_churn_2_a_hundred_creates_under_one_key_are_one(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    let mut crowd = Crowd::of(race, &[A, B], CROWD);
    let rounds = race.size(100, 2);
    for round in 0..rounds {
        let key = race.name(&format!("key{round}"));
        let answers = crowd.asks(&x.create().keyed(&key)).await?;
        let mut tags: Vec<EntityTag> = Vec::new();
        for answer in answers {
            tags.push(answer.ok()?.tag()?);
        }
        tags.dedup();
        ensure!(tags.len() == 1, "one key has created {tags:?}");
        let there = race.done(B, &x.load()).await?;
        ensure!(there.tag()? == tags[0], "another one than was answered is there");
        dropped(&race.tell(A, &x.drop()).await?, true)?;
    }
    let facts = race.facts().await?;
    let rows = facts.all(&x);
    ensure!(
        rows.len() == rounds,
        "{rounds} keys have left {} rows",
        rows.len()
    );
    rows.iter()
        .try_for_each(|row| facts.feed_says(row, &["create", "drop"]))
}

async fn r_churn_3_flips_against_writers_on_one_server(race: &mut Race) -> Result<()> {
    let churn = Churn {
        flippers: vec![A],
        flips: race.size(5_000, 60),
        upserters: vec![A; 4],
        upserts: race.size(2_000, 20),
        readers: Vec::new(),
    };
    churn.run(race, "R-CHURN-3").await
}

/// Nobody looks first, and nobody tries again: each request is one operation, whatever becomes of it.
async fn r_churn_4_what_blind_writers_are_told_adds_up(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    let (flips, overwrites) = (race.size(5_000, 60), race.size(2_000, 30));
    let mut writers = JoinSet::new();
    let (mut client, create, drop) = (race.client(A), x.create(), x.drop());
    writers.spawn(async move {
        let mut tally = Tally::default();
        for _ in 0..flips {
            tally.create(&mut client, &create).await?;
            tally.drop(&mut client, &drop).await?;
        }
        anyhow::Ok(tally)
    });
    for writer in 0..4 {
        let (mut client, x) = (race.client(B), x.clone());
        writers.spawn(async move {
            let mut tally = Tally::default();
            for number in 0..overwrites {
                let (key, value) = (format!("writer{writer}"), number.to_string());
                if tally.set(&mut client, &x.set(&key, &value)).await? {
                    tally.wrote(&key, &value);
                }
            }
            anyhow::Ok(tally)
        });
    }
    let tally = Tally::of(writers).await?;
    ensure!(
        tally.answers() == 2 * flips + 4 * overwrites,
        "an answer is missing"
    );
    adds_up(race, &x, &tally).await?;
    race.says("R-CHURN-4", &tally.times.summary());
    Ok(())
}

/// Whoever writes, writes one mark into three places at once, and a reader never sees two.
async fn r_churn_5_readers_see_nothing_or_one_whole_generation(race: &mut Race) -> Result<()> {
    let churn = Churn {
        flippers: vec![A, B],
        flips: race.size(5_000, 40),
        upserters: [A, B].repeat(8),
        upserts: race.size(2_000, 8),
        readers: [A, B].repeat(4),
    };
    churn.run(race, "R-CHURN-5").await
}

/// What a request has written and not committed is neither loaded nor listed nor dropped, and its name is taken.
async fn r_churn_6_what_is_not_committed_is_not_there(race: &mut Race) -> Result<()> {
    for (number, point) in ["create.parent_locked", "create.inserted"]
        .into_iter()
        .enumerate()
    {
        let x = race.place(&format!("x{number}")).await?;
        let a = race.hold(A, &x.create(), point).await?;
        race.tell(B, &x.load()).await?.refused(404, 1003)?;
        let listed = race.done(B, &x.list()).await?;
        ensure!(!listed.text.contains(x.name()), "it is listed: {}", listed.text);
        dropped(&race.tell(B, &x.drop()).await?, false)?;
        // Until A has written the name, another create may have it; on a cluster, until A has committed it.
        let is_taken = point == "create.inserted" && !race.backend.has_two_primaries();
        if is_taken || race.backend.has_one_writer() {
            let mut b = race.meanwhile(B, &x.create());
            b.waits().await?;
            let created = a.goes_on().await?.ok()?;
            b.answers().await?.refused(409, 1004)?;
            race.facts().await?.is_as_answered(&x, &created)?;
        } else {
            let created = race.done(B, &x.create()).await?;
            a.goes_on().await?.refused(409, 1004)?;
            race.facts().await?.is_as_answered(&x, &created)?;
        }
    }
    let x = race.place("x2").await?;
    let a = race.hold(A, &x.create(), "create.committed").await?;
    let loaded = race.done(B, &x.load()).await?;
    race.tell(B, &x.create()).await?.refused(409, 1004)?;
    let created = a.goes_on().await?.ok()?;
    ensure!(created.tag()? == loaded.tag()?, "another one was seen");
    Ok(())
}

/// A child is created in the moment in which its parent is dropped, time and again, by a cascade and by a plain drop. In a
/// soak each of the two comes first at least once, or the row has shown nothing.
async fn r_churn_7_creates_against_drops_of_their_parent_leave_no_orphan(race: &mut Race) -> Result<()> {
    let kind = race.kind;
    let parent = race
        .spot(kind.parent().context("a child has a parent")?, "p")
        .await?;
    let child = race.child_of(&parent, "p");
    let mut client = race.client(A);
    let mut both = Crowd::of(race, &[A, B], 2);
    let (mut won, rounds) = (0, race.size(1_000, 24));
    for round in 0..rounds {
        // A plain drop of a catalog is about its flag, and a model's always takes its versions along.
        let is_plain = parent.kind == Kind::Schema && round % 2 == 1;
        ask(&mut client, &parent.create()).await?.ok()?;
        let drop = if is_plain {
            parent.drop_plainly()
        } else {
            parent.drop()
        };
        let answers = both.ask(&[&child.create(), &drop]).await?;
        let [created, dropping] = answers.as_slice() else {
            anyhow::bail!("{} answers to two requests", answers.len());
        };
        let is_first = created.status == 200;
        won += usize::from(is_first);
        if !is_first {
            created.refused(404, 1003)?;
        }
        if is_plain && is_first {
            dropping.refused(409, 1005)?;
            dropped(&ask(&mut client, &parent.drop()).await?, true)?;
        } else {
            dropped(dropping, true)?;
        }
    }
    race.says("R-CHURN-7", &format!("{won} of {rounds} creates came first"));
    let met = (1..rounds).contains(&won);
    ensure!(met || !race.is_whole(), "{won} of {rounds} creates came first");
    let facts = race.facts().await?;
    facts.is_not_live(&parent)?;
    let orphans = facts.live_under(&parent);
    ensure!(orphans.is_empty(), "orphans: {orphans:?}");
    Ok(())
}

async fn r_churn_8_two_names_renamed_created_and_dropped_at_once(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    let y = x.sibling(race.name("y"));
    let rounds = race.size(5_000, 60);
    let mut writers = JoinSet::new();
    let flips = [(A, x.create(), y.drop()), (B, y.create(), x.drop())];
    for (side, create, drop) in flips {
        let mut client = race.client(side);
        writers.spawn(async move {
            let mut tally = Tally::default();
            for _ in 0..rounds {
                tally.create(&mut client, &create).await?;
                tally.drop(&mut client, &drop).await?;
            }
            anyhow::Ok(tally)
        });
    }
    for (side, rename) in [(A, x.rename(&y)), (B, y.rename(&x))] {
        let mut client = race.client(side);
        writers.spawn(async move {
            let mut tally = Tally::default();
            for _ in 0..rounds {
                tally.rename(&mut client, &rename).await?;
            }
            anyhow::Ok(tally)
        });
    }
    let tally = Tally::of(writers).await?;
    let facts = race.facts().await?;
    let rows: Vec<_> = [&x, &y].into_iter().flat_map(|name| facts.all(name)).collect();
    for name in [&x, &y] {
        let live = facts.all(name).into_iter().filter(|row| is_live(row)).count();
        ensure!(live <= 1, "{live} are called {}", name.name());
    }
    tally.agrees_with(&rows)
}

/// Purged with a retention of nothing, a name that was flipped leaves no row, no task and no directory; the feed stays.
async fn r_churn_9_what_was_dropped_is_purged_whole(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    let mut client = race.client(A);
    let (mut tally, rounds) = (Tally::default(), race.size(5_000, 40));
    for _ in 0..rounds {
        tally.create(&mut client, &x.create()).await?;
        tally.drop(&mut client, &x.drop()).await?;
    }
    ensure!(
        tally.created == rounds && tally.dropped == rounds,
        "of {rounds}, {} were created and {} dropped",
        tally.created,
        tally.dropped
    );
    let ids: BTreeSet<i64> = tally.written.iter().map(|tag| tag.id.get()).collect();
    ensure!(
        ids.len() == rounds,
        "{rounds} creates have made {} ids",
        ids.len()
    );
    let names_one = |row: &serde_json::Value, columns: &[&str]| {
        let named = columns.iter().filter_map(|column| row[*column].as_i64());
        named.into_iter().any(|id| ids.contains(&id))
    };
    eventually("nothing but the feed names what was dropped", async || {
        let purged = race.pair.bed.run(&["gc", "--retention-ms", "0"]).await?;
        ensure!(purged.code == Some(0), "{}", purged.text());
        let rows = race.pair.rows().await?;
        let left = [
            ("entities", &["id", "parent_id"][..]),
            ("locations", &["entity_id"]),
            ("version_aliases", &["model_id"]),
            ("reconcile_tasks", &["entity_id", "cause_id"]),
        ];
        Ok(left
            .into_iter()
            .all(|(table, columns)| !rows.of(table).any(|row| names_one(row, columns))))
    })
    .await?;
    ensure!(!x.directory().exists(), "its directory is there still");
    race.facts().await?.feed_says_of(&ids, &["create", "drop"])
}

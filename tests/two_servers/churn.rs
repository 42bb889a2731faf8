//! The rows of section 7 in which one name is created and dropped without a pause, on both servers at once.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use treeline_core::{EntityTag, Kind};
use treeline_tests::{Answer, Client};

use crate::entity::{Call, Entity};
use crate::holds::is_live;
use crate::race::{A, B, Race};
use crate::rows::{CREATED, rows};

/// No operation may take longer, however many others there are.
const OPERATION_MAX: Duration = Duration::from_secs(5);

rows! {
    r_drop_2_one_name_flipped_on_both_servers of CREATED,
    r_drop_3_flips_against_writers_and_readers of &[Kind::Fileset],
}

/// What one client was told, added up.
#[derive(Debug, Default)]
struct Tally {
    created: usize,
    dropped: usize,
    /// Each state that a client was told it had written.
    written: Vec<EntityTag>,
}

async fn ask(client: &mut Client, call: &Call) -> Result<Answer> {
    let begun = Instant::now();
    let answer = client
        .send(call.method.clone(), &call.path, &[], &call.body)
        .await?;
    let took = begun.elapsed();
    ensure!(
        took <= OPERATION_MAX,
        "{} {} took {took:?}",
        call.method,
        call.path
    );
    Ok(answer)
}

impl Tally {
    async fn create(&mut self, client: &mut Client, call: &Call) -> Result<bool> {
        let answer = ask(client, call).await?;
        if answer.status == 200 {
            self.created += 1;
            self.written.push(answer.tag()?);
            return Ok(true);
        }
        answer.refused(409, 1004)?;
        Ok(false)
    }

    async fn drop(&mut self, client: &mut Client, call: &Call) -> Result<()> {
        let answer = ask(client, call).await?.ok()?;
        self.dropped += usize::from(answer.json["dropped"] == true);
        Ok(())
    }

    /// Whether it was there to be set.
    async fn set(&mut self, client: &mut Client, call: &Call) -> Result<bool> {
        let answer = ask(client, call).await?;
        if answer.status == 200 {
            self.written.push(answer.tag()?);
            return Ok(true);
        }
        answer.refused(404, 1003)?;
        Ok(false)
    }

    fn add(&mut self, other: Tally) {
        self.created += other.created;
        self.dropped += other.dropped;
        self.written.extend(other.written);
    }
}

/// What the clients were told is what the rows say.
async fn adds_up(race: &Race, x: &Entity, tally: &Tally) -> Result<()> {
    let facts = race.facts().await?;
    let rows = facts.all(x);
    let live = rows.iter().filter(|row| is_live(row)).count();
    ensure!(live <= 1, "{live} are live");
    ensure!(
        tally.created == rows.len() && tally.created == tally.dropped + live,
        "created {}, dropped {}, rows {}, live {live}",
        tally.created,
        tally.dropped,
        rows.len()
    );
    let told: BTreeSet<(i64, i64)> = tally
        .written
        .iter()
        .map(|tag| (tag.id.get(), tag.version.get()))
        .collect();
    ensure!(told.len() == tally.written.len(), "one state was written twice");
    let mut versions = 0;
    for row in &rows {
        let version = row["version"].as_i64().context("a version")?;
        versions += version - i64::from(!is_live(row));
    }
    let told = i64::try_from(told.len())?;
    ensure!(
        told == versions,
        "{told} writes were acknowledged, {versions} are there"
    );
    Ok(())
}

/// Two drops of one name in one millisecond too: no key of a dropped row is in the way of another.
async fn r_drop_2_one_name_flipped_on_both_servers(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    let rounds = race.size(2_000, 100);
    let mut flippers = JoinSet::new();
    for side in [A, B] {
        let (mut client, create, drop) = (race.client(side), x.create(), x.drop());
        flippers.spawn(async move {
            let mut tally = Tally::default();
            for _ in 0..rounds {
                tally.drop(&mut client, &drop).await?;
                tally.create(&mut client, &create).await?;
            }
            Ok(tally)
        });
    }
    let mut tally = Tally::default();
    while let Some(flipped) = flippers.join_next().await {
        let flipped: Result<Tally> = flipped?;
        tally.add(flipped?);
    }
    adds_up(race, &x, &tally).await
}

/// Creates, or sets on "taken", and begins anew on "missing".
async fn upsert(tally: &mut Tally, client: &mut Client, create: &Call, set: &Call) -> Result<()> {
    const ATTEMPTS_MAX: usize = 10_000;
    for _ in 0..ATTEMPTS_MAX {
        if tally.create(client, create).await? || tally.set(client, set).await? {
            return Ok(());
        }
    }
    bail!("neither created nor set in {ATTEMPTS_MAX} attempts")
}

/// What a reader has seen of one name.
#[derive(Debug, Default)]
struct Sight {
    last: Option<EntityTag>,
    gone: BTreeMap<i64, i64>,
}

impl Sight {
    fn sees(&mut self, tag: EntityTag) -> Result<()> {
        let (id, version) = (tag.id.get(), tag.version.get());
        ensure!(!self.gone.contains_key(&id), "{tag} came back");
        if let Some(last) = self.last {
            if last.id == tag.id {
                ensure!(version >= last.version.get(), "{last} went back to {tag}");
            } else {
                self.gone.insert(last.id.get(), last.version.get());
            }
        }
        self.last = Some(tag);
        Ok(())
    }
}

async fn read(mut client: Client, load: Call, list: Call, name: String, stop: Stop) -> Result<()> {
    let mut sight = Sight::default();
    while !stop.is_set() {
        let answer = ask(&mut client, &load).await?;
        if answer.status == 200 {
            sight.sees(answer.tag()?)?;
        } else {
            answer.refused(404, 1003)?;
        }
        let listed = ask(&mut client, &list).await?.ok()?;
        let named = listed.json["identifiers"].as_array().into_iter().flatten();
        let named = named
            .filter(|identifier| identifier["name"] == name.as_str())
            .count();
        ensure!(named <= 1, "{named} of one name are listed");
    }
    Ok(())
}

/// Tells readers that the writers are done.
#[derive(Clone, Debug, Default)]
struct Stop(std::sync::Arc<std::sync::atomic::AtomicBool>);

impl Stop {
    fn set(&self) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }

    fn is_set(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}

async fn r_drop_3_flips_against_writers_and_readers(race: &mut Race) -> Result<()> {
    let x = race.place("x").await?;
    let (flips, upserts) = (race.size(5_000, 100), race.size(2_000, 40));
    let stop = Stop::default();
    let mut readers = JoinSet::new();
    for number in 0..8 {
        let client = race.client(if number % 2 == 0 { A } else { B });
        readers.spawn(read(
            client,
            x.load(),
            x.list(),
            x.name().to_owned(),
            stop.clone(),
        ));
    }
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
        let (mut client, create) = (race.client(B), x.create());
        let x = x.clone();
        writers.spawn(async move {
            let mut tally = Tally::default();
            for number in 0..upserts {
                let set = x.set(&format!("writer{writer}"), &number.to_string());
                upsert(&mut tally, &mut client, &create, &set).await?;
            }
            anyhow::Ok(tally)
        });
    }
    let mut tally = Tally::default();
    while let Some(written) = writers.join_next().await {
        tally.add(written??);
    }
    stop.set();
    while let Some(read) = readers.join_next().await {
        read??;
    }
    adds_up(race, &x, &tally).await
}

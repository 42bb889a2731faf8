//! The rows of section 7 in which one name is created and dropped without a pause, on both servers at once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use tokio::task::JoinSet;
use treeline_core::{EntityTag, Kind};
use treeline_tests::{Answer, Client};

use crate::entity::{Call, Entity};
use crate::holds::is_live;
use crate::race::{A, B, Race, Side};
use crate::rows::{CREATED, rows};

/// No operation may take longer, however many others there are.
const OPERATION_MAX: Duration = Duration::from_secs(5);

rows! {
    r_drop_2_one_name_flipped_on_both_servers of CREATED,
    r_drop_3_flips_against_writers_and_readers of &[Kind::Fileset],
}

/// What one client was told, added up.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) created: usize,
    dropped: usize,
    /// Drops that found nothing, and whatever was refused.
    in_vain: usize,
    /// Each state that a client was told it had written.
    pub(crate) written: Vec<EntityTag>,
}

/// Sends a request and takes its time.
pub(crate) async fn ask(client: &mut Client, call: &Call) -> Result<Answer> {
    let begun = Instant::now();
    let headers: Vec<(&str, &str)> = call
        .headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let answer = client
        .send(call.method.clone(), &call.path, &headers, &call.body)
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
    /// Whether it was free.
    pub(crate) async fn create(&mut self, client: &mut Client, call: &Call) -> Result<bool> {
        let answer = ask(client, call).await?;
        if answer.status == 200 {
            self.created += 1;
            self.written.push(answer.tag()?);
            return Ok(true);
        }
        answer.refused(409, 1004)?;
        self.in_vain += 1;
        Ok(false)
    }

    pub(crate) async fn drop(&mut self, client: &mut Client, call: &Call) -> Result<()> {
        let answer = ask(client, call).await?.ok()?;
        let dropped = answer.json["dropped"] == true;
        self.dropped += usize::from(dropped);
        self.in_vain += usize::from(!dropped);
        Ok(())
    }

    /// To a name that may be taken, of something that may not be there.
    pub(crate) async fn rename(&mut self, client: &mut Client, call: &Call) -> Result<()> {
        let answer = ask(client, call).await?;
        match answer.status {
            200 => self.written.push(answer.tag()?),
            409 => answer.refused(409, 1004)?,
            _ => answer.refused(404, 1003)?,
        }
        self.in_vain += usize::from(answer.status != 200);
        Ok(())
    }

    /// Whether it was there to be set.
    pub(crate) async fn set(&mut self, client: &mut Client, call: &Call) -> Result<bool> {
        let answer = ask(client, call).await?;
        if answer.status == 200 {
            self.written.push(answer.tag()?);
            return Ok(true);
        }
        answer.refused(404, 1003)?;
        self.in_vain += 1;
        Ok(false)
    }

    /// Waits for all of them, and adds up what they were told.
    pub(crate) async fn of(mut clients: JoinSet<Result<Tally>>) -> Result<Tally> {
        let mut tally = Tally::default();
        while let Some(told) = clients.join_next().await {
            tally.add(told??);
        }
        Ok(tally)
    }

    fn add(&mut self, other: Tally) {
        self.created += other.created;
        self.dropped += other.dropped;
        self.in_vain += other.in_vain;
        self.written.extend(other.written);
    }

    /// How many requests were answered in all.
    pub(crate) fn answers(&self) -> usize {
        self.written.len() + self.dropped + self.in_vain
    }

    /// Everything that was acknowledged is in the rows, and nothing else.
    pub(crate) fn agrees_with(&self, rows: &[&Value]) -> Result<()> {
        let live = rows.iter().filter(|row| is_live(row)).count();
        ensure!(
            self.created == rows.len() && self.created == self.dropped + live,
            "created {}, dropped {}, rows {}, live {live}",
            self.created,
            self.dropped,
            rows.len()
        );
        let told: BTreeSet<(i64, i64)> = self
            .written
            .iter()
            .map(|tag| (tag.id.get(), tag.version.get()))
            .collect();
        ensure!(told.len() == self.written.len(), "one state was written twice");
        let mut versions = 0;
        for row in rows {
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
}

/// What the clients were told is what the rows of the one name say.
pub(crate) async fn adds_up(race: &Race, x: &Entity, tally: &Tally) -> Result<()> {
    let facts = race.facts().await?;
    let rows = facts.all(x);
    let live = rows.iter().filter(|row| is_live(row)).count();
    ensure!(live <= 1, "{live} are live");
    tally.agrees_with(&rows)
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
    adds_up(race, &x, &Tally::of(flippers).await?).await
}

/// Creates, or sets on "taken", and begins anew on "missing". How often is up to chance, and to nobody's favour (ADR 0008).
async fn upsert(tally: &mut Tally, client: &mut Client, create: &Call, set: &Call) -> Result<()> {
    const ATTEMPTS_MAX: usize = 100;
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

/// Reads one name until the writers are done: it is there once or not at all, never older than before, and whole.
async fn read(mut client: Client, x: Entity, stop: Stop) -> Result<()> {
    let mut sight = Sight::default();
    while !stop.is_set() {
        let answer = ask(&mut client, &x.load()).await?;
        if answer.status == 200 {
            sight.sees(answer.tag()?)?;
            x.is_of_one_mark(&answer)?;
        } else {
            answer.refused(404, 1003)?;
        }
        let listed = ask(&mut client, &x.list()).await?.ok()?;
        let named = listed.json["identifiers"].as_array().into_iter().flatten();
        let named = named.filter(|identifier| identifier["name"] == x.name()).count();
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

/// One name that some create and drop without a pause, others write, and others read, all at once.
pub(crate) struct Churn {
    pub(crate) flippers: Vec<Side>,
    /// A create and a drop, each flipper.
    pub(crate) flips: usize,
    pub(crate) upserters: Vec<Side>,
    /// Writes that succeed, each upserter.
    pub(crate) upserts: usize,
    pub(crate) readers: Vec<Side>,
}

impl Churn {
    /// Plays it, and adds up what everybody was told.
    pub(crate) async fn run(&self, race: &mut Race) -> Result<()> {
        let x = race.place("x").await?;
        let stop = Stop::default();
        let mut readers = JoinSet::new();
        for side in &self.readers {
            readers.spawn(read(race.client(*side), x.clone(), stop.clone()));
        }
        let mut writers = JoinSet::new();
        for (flipper, side) in self.flippers.iter().enumerate() {
            let (mut client, x, flips) = (race.client(*side), x.clone(), self.flips);
            writers.spawn(async move {
                let mut tally = Tally::default();
                for flip in 0..flips {
                    let create = x.create_marked(&format!("flip {flip} of {flipper}"));
                    tally.create(&mut client, &create).await?;
                    tally.drop(&mut client, &x.drop()).await?;
                }
                anyhow::Ok(tally)
            });
        }
        for (upserter, side) in self.upserters.iter().enumerate() {
            let (mut client, x, upserts) = (race.client(*side), x.clone(), self.upserts);
            writers.spawn(async move {
                let mut tally = Tally::default();
                for number in 0..upserts {
                    let mark = format!("write {number} of {upserter}");
                    upsert(&mut tally, &mut client, &x.create_marked(&mark), &x.mark(&mark)).await?;
                }
                anyhow::Ok(tally)
            });
        }
        let tally = Tally::of(writers).await?;
        stop.set();
        while let Some(read) = readers.join_next().await {
            read??;
        }
        adds_up(race, &x, &tally).await
    }
}

async fn r_drop_3_flips_against_writers_and_readers(race: &mut Race) -> Result<()> {
    let churn = Churn {
        flippers: vec![A],
        flips: race.size(5_000, 100),
        upserters: vec![B; 4],
        upserts: race.size(2_000, 40),
        readers: [A, B].repeat(4),
    };
    churn.run(race).await
}

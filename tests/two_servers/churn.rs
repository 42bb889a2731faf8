//! The rows of section 7 in which one name is created and dropped without a pause, on both servers at once.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use tokio::task::JoinSet;
use treeline_core::{EntityTag, Kind};
use treeline_tests::Client;

use crate::entity::{Call, Entity};
use crate::holds::is_live;
use crate::race::{A, B, Race, Side};
use crate::rows::{CREATED, rows};
use crate::tally::{Tally, Times};

/// The property that is looked at in the end.
const MARK: &str = "left";

rows! {
    r_drop_2_one_name_flipped_on_both_servers of CREATED,
    r_drop_3_flips_against_writers_and_readers of &[Kind::Fileset],
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
    for attempt in 1..=ATTEMPTS_MAX {
        if tally.create(client, create).await? || tally.set(client, set).await? {
            tally.attempts_max = tally.attempts_max.max(attempt);
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
async fn read(mut client: Client, x: Entity, stop: Stop) -> Result<Times> {
    let (mut sight, mut times) = (Sight::default(), Times::default());
    while !stop.is_set() {
        let answer = times.ask(&mut client, &x.load()).await?;
        if answer.status == 200 {
            sight.sees(answer.tag()?)?;
            x.is_of_one_mark(&answer)?;
        } else {
            answer.refused(404, 1003)?;
        }
        let listed = times.ask(&mut client, &x.list()).await?.ok()?;
        let named = listed.json["identifiers"].as_array().into_iter().flatten();
        let named = named.filter(|identifier| identifier["name"] == x.name()).count();
        ensure!(named <= 1, "{named} of one name are listed");
    }
    Ok(times)
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
    /// Has the servers open their connections to the database. Every pair of a run begins at once, and how long that takes on
    /// two cores is none of the row's business.
    async fn connect(&self, race: &Race, x: &Entity) -> Result<()> {
        let sides = [&self.flippers, &self.upserters, &self.readers];
        let clients = sides.into_iter().flatten().map(|side| race.client(*side));
        let loaded = Client::all_get(clients, &x.path()).await?;
        loaded.iter().try_for_each(|answer| answer.refused(404, 1003))
    }

    /// Plays it for a row, and adds up what everybody was told.
    pub(crate) async fn run(&self, race: &mut Race, row: &str) -> Result<()> {
        let x = race.place("x").await?;
        self.connect(race, &x).await?;
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
                    let mark = format!("flip {flip} of {flipper}");
                    if tally.create(&mut client, &x.create_marked(&mark)).await? {
                        tally.wrote(MARK, &mark);
                    }
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
                    tally.wrote(MARK, &mark);
                }
                anyhow::Ok(tally)
            });
        }
        let tally = Tally::of(writers).await?;
        stop.set();
        let mut reads = Times::default();
        while let Some(read) = readers.join_next().await {
            reads.add(read??);
        }
        adds_up(race, &x, &tally).await?;
        let (reads, writes, attempts) = (reads.summary(), tally.times.summary(), tally.attempts_max);
        let figures = format!("readers: {reads}; writers: {writes}; at most {attempts} attempts an upsert");
        race.says(row, &figures);
        Ok(())
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
    churn.run(race, "R-DROP-3").await
}

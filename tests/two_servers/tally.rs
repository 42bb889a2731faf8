//! What many clients were told, and whether it adds up to what the database holds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::task::JoinSet;
use treeline_core::EntityTag;
use treeline_tests::{Answer, Client};

use crate::entity::Call;
use crate::holds::{is_live, properties};

/// No operation may take longer, however many others there are.
const OPERATION_MAX: Duration = Duration::from_secs(5);

/// What one client was told, added up.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) created: usize,
    pub(crate) dropped: usize,
    /// Drops that found nothing, and whatever was refused.
    in_vain: usize,
    /// Each state that a client was told it had written.
    pub(crate) written: Vec<EntityTag>,
    /// What each client was told last that it had written, if it says what that was.
    last: Vec<Write>,
    /// The most attempts that one upsert took.
    pub(crate) attempts_max: usize,
    pub(crate) times: Times,
}

/// A state that was acknowledged, and what it came of.
#[derive(Debug)]
struct Write {
    tag: EntityTag,
    /// The property that was set.
    key: String,
    value: String,
}

/// Sends a request and takes its time.
pub(crate) async fn ask(client: &mut Client, call: &Call) -> Result<Answer> {
    Times::default().ask(client, call).await
}

/// How long answers took, in microseconds.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<u32>);

impl Times {
    pub(crate) async fn ask(&mut self, client: &mut Client, call: &Call) -> Result<Answer> {
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
        self.0.push(u32::try_from(took.as_micros())?);
        Ok(answer)
    }

    pub(crate) fn add(&mut self, other: Times) {
        self.0.extend(other.0);
    }

    /// How many there were, the median, the slowest but a hundredth, and the slowest.
    pub(crate) fn summary(mut self) -> String {
        self.0.sort_unstable();
        let at = |hundredths: usize| {
            let index = (self.0.len() * hundredths / 100).min(self.0.len().saturating_sub(1));
            f64::from(self.0.get(index).copied().unwrap_or_default()) / 1_000.0
        };
        let (median, most, all) = (at(50), at(99), at(100));
        format!(
            "{} answers, p50 {median:.1} ms, p99 {most:.1} ms, max {all:.1} ms",
            self.0.len()
        )
    }
}

impl Tally {
    /// Whether it was free.
    pub(crate) async fn create(&mut self, client: &mut Client, call: &Call) -> Result<bool> {
        let answer = self.times.ask(client, call).await?;
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
        let answer = self.times.ask(client, call).await?.ok()?;
        let dropped = answer.json["dropped"] == true;
        self.dropped += usize::from(dropped);
        self.in_vain += usize::from(!dropped);
        Ok(())
    }

    /// To a name that may be taken, of something that may not be there.
    pub(crate) async fn rename(&mut self, client: &mut Client, call: &Call) -> Result<()> {
        let answer = self.times.ask(client, call).await?;
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
        let answer = self.times.ask(client, call).await?;
        if answer.status == 200 {
            self.written.push(answer.tag()?);
            return Ok(true);
        }
        answer.refused(404, 1003)?;
        self.in_vain += 1;
        Ok(false)
    }

    /// Says what the client's last acknowledged write was: this value of that property.
    pub(crate) fn wrote(&mut self, key: &str, value: &str) {
        let (key, value) = (key.to_owned(), value.to_owned());
        let write = |tag: &EntityTag| Write {
            tag: *tag,
            key,
            value,
        };
        self.last = self.written.last().map(write).into_iter().collect();
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
        self.last.extend(other.last);
        self.attempts_max = self.attempts_max.max(other.attempts_max);
        self.times.add(other.times);
    }

    /// How many requests were answered in all.
    pub(crate) fn answers(&self) -> usize {
        self.written.len() + self.dropped + self.in_vain
    }

    /// Everything that was acknowledged is in the rows, and nothing else.
    pub(crate) fn agrees_with(&self, rows: &[&Value]) -> Result<()> {
        let live: Vec<&&Value> = rows.iter().filter(|row| is_live(row)).collect();
        ensure!(
            self.created == rows.len() && self.created == self.dropped + live.len(),
            "created {}, dropped {}, rows {}, live {}",
            self.created,
            self.dropped,
            rows.len(),
            live.len()
        );
        let told: BTreeSet<(i64, i64)> = self
            .written
            .iter()
            .map(|tag| (tag.id.get(), tag.version.get()))
            .collect();
        ensure!(told.len() == self.written.len(), "one state was written twice");
        let mut versions = 0;
        for row in rows {
            let id = row["id"].as_i64().context("an id")?;
            let version = row["version"].as_i64().context("a version")?;
            let last = version - i64::from(!is_live(row));
            let of_row = told.range((id, 0)..=(id, i64::MAX));
            ensure!(
                of_row.map(|(_, version)| *version).eq(1..=last),
                "not all the writes were acknowledged that have led to {row}, or others"
            );
            versions += last;
        }
        let told = i64::try_from(told.len())?;
        ensure!(
            told == versions,
            "{told} writes were acknowledged, {versions} are there"
        );
        live.into_iter().try_for_each(|row| self.is_shown_by(row))
    }

    /// A live row has of each property the value of the last acknowledged write, and none that nobody was told of.
    ///
    /// Each client waits for its answers and never comes back to a row that was dropped, so of a live row's writes the
    /// last one of each property is the last one of its client.
    fn is_shown_by(&self, row: &Value) -> Result<()> {
        let mut expected: BTreeMap<&str, (i64, &str)> = BTreeMap::new();
        let of_row = |write: &&Write| row["id"] == write.tag.id.get();
        for write in self.last.iter().filter(of_row) {
            let version = write.tag.version.get();
            let newest = expected.entry(&write.key).or_default();
            *newest = (version, write.value.as_str()).max(*newest);
        }
        let found = properties(row)?;
        let keys: BTreeSet<&str> = self.last.iter().map(|write| write.key.as_str()).collect();
        for key in keys {
            let expected = expected.get(key).map(|(_, value)| *value);
            ensure!(
                found[key].as_str() == expected,
                "{key} was last set to {expected:?}: {row}"
            );
        }
        Ok(())
    }
}

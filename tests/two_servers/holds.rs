//! What a database holds after a row, live and dropped, and whether its feed tells the same story.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use treeline_core::Kind;
use treeline_tests::{Answer, Rows};

use crate::entity::Entity;

/// Every row of the database, at one moment.
pub(crate) struct Facts {
    rows: Rows,
}

/// Who wrote a row: each side has a principal of its own.
pub(crate) type Principal = &'static str;
pub(crate) const BY_A: Principal = "a";
pub(crate) const BY_B: Principal = "b";

impl Facts {
    pub(crate) fn new(rows: Rows) -> Facts {
        Facts { rows }
    }

    /// Every row that the name ever had, the oldest first.
    pub(crate) fn all(&self, entity: &Entity) -> Vec<&Value> {
        let named = |entity: &Entity| -> Vec<&Value> {
            let rows = self.rows.entities(entity.kind.as_str());
            rows.filter(|row| row["name"] == entity.name()).collect()
        };
        let mut rows = named(entity);
        // The names of this suite are unique in a database, but for versions, which are numbered in each model.
        if entity.kind == Kind::ModelVersion
            && let Some(model) = entity.parent()
        {
            let models = named(&model);
            rows.retain(|row| models.iter().any(|model| model["id"] == row["parent_id"]));
        }
        rows
    }

    /// The one live row of the name.
    pub(crate) fn live(&self, entity: &Entity) -> Result<&Value> {
        let live = self.all(entity).into_iter().filter(|row| is_live(row));
        match live.collect::<Vec<_>>().as_slice() {
            [row] => Ok(row),
            rows => Err(anyhow::anyhow!(
                "{} has {} live rows instead of one: {rows:?}",
                entity.path(),
                rows.len()
            )),
        }
    }

    /// Nothing of that name is live.
    pub(crate) fn is_not_live(&self, entity: &Entity) -> Result<()> {
        let live = self.all(entity).into_iter().find(|row| is_live(row));
        ensure!(live.is_none(), "{} is live: {live:?}", entity.path());
        Ok(())
    }

    /// The name never had a row.
    pub(crate) fn never_was(&self, entity: &Entity) -> Result<()> {
        let rows = self.all(entity);
        ensure!(rows.is_empty(), "{} left a trace: {rows:?}", entity.path());
        Ok(())
    }

    /// The name had one row ever, which is live, was made by this side, and has one line in the feed.
    pub(crate) fn is_the_only_one(&self, entity: &Entity, by: Principal) -> Result<()> {
        let row = self.live(entity)?;
        let rows = self.all(entity);
        ensure!(rows.len() == 1, "{} has more rows: {rows:?}", entity.path());
        ensure!(
            row["created_by"] == by,
            "{} was made by {}",
            entity.path(),
            row["created_by"]
        );
        self.feed_says(row, &["create"])
    }

    /// The name had one row ever, which is dropped, and dropped once.
    pub(crate) fn was_dropped_once(&self, entity: &Entity, by: Principal) -> Result<()> {
        let rows = self.all(entity);
        let [row] = rows.as_slice() else {
            anyhow::bail!("{} has not one row: {rows:?}", entity.path());
        };
        ensure!(!is_live(row), "{} is live: {row}", entity.path());
        ensure!(
            row["dropped_by"] == by,
            "{} was dropped by {}",
            entity.path(),
            row["dropped_by"]
        );
        let drops = self
            .feed_of(row)
            .filter(|line| line["operation"] == "drop")
            .count();
        ensure!(drops == 1, "the feed drops {} {drops} times", entity.path());
        Ok(())
    }

    /// The operations of a row, in the feed's order.
    pub(crate) fn feed_says(&self, row: &Value, operations: &[&str]) -> Result<()> {
        let said: Vec<&str> = self.feed_of(row).map(|line| text(&line["operation"])).collect();
        ensure!(said == operations, "the feed says {said:?} of {row}");
        Ok(())
    }

    /// The same of many ids, whether they have rows still or not.
    pub(crate) fn feed_says_of(&self, ids: &BTreeSet<i64>, operations: &[&str]) -> Result<()> {
        let mut said: BTreeMap<i64, Vec<&str>> = ids.iter().map(|id| (*id, Vec::new())).collect();
        for line in self.rows.of("feed") {
            let of_one = line["entity_id"].as_i64().and_then(|id| said.get_mut(&id));
            of_one
                .into_iter()
                .for_each(|said| said.push(text(&line["operation"])));
        }
        for (id, said) in said {
            ensure!(said == operations, "the feed says {said:?} of {id}");
        }
        Ok(())
    }

    fn feed_of<'a>(&'a self, row: &'a Value) -> impl Iterator<Item = &'a Value> {
        self.rows
            .of("feed")
            .filter(move |line| line["entity_id"] == row["id"])
    }

    /// A property of the live row.
    pub(crate) fn property(&self, entity: &Entity, key: &str) -> Result<Option<String>> {
        let properties = properties(self.live(entity)?)?;
        Ok(properties[key].as_str().map(str::to_owned))
    }

    /// The properties of the live row are these, as far as they are named.
    pub(crate) fn has(&self, entity: &Entity, properties: &[(&str, Option<&str>)]) -> Result<()> {
        for (key, expected) in properties {
            let found = self.property(entity, key)?;
            ensure!(
                found.as_deref() == *expected,
                "{key} of {} is {found:?}, not {expected:?}",
                entity.path()
            );
        }
        Ok(())
    }

    /// The live row has this version.
    pub(crate) fn has_version(&self, entity: &Entity, expected: i64) -> Result<()> {
        let found = self.live(entity)?["version"].as_i64();
        ensure!(
            found == Some(expected),
            "{} is at version {found:?}, not {expected}",
            entity.path()
        );
        Ok(())
    }

    /// The live row is the one that this answer tells of, in the same state.
    pub(crate) fn is_as_answered(&self, entity: &Entity, answer: &Answer) -> Result<()> {
        let (row, tag) = (self.live(entity)?, answer.tag()?);
        let found = format!("{}-{}", row["id"], row["version"]);
        ensure!(
            found == tag.to_string(),
            "{} is {found}, and {tag} was answered",
            entity.path()
        );
        Ok(())
    }

    /// The live rows directly under the rows that ever had this name.
    pub(crate) fn live_under(&self, entity: &Entity) -> Vec<&Value> {
        let parents: Vec<&Value> = self.all(entity).iter().map(|row| &row["id"]).collect();
        let live = self.rows.of("entities").filter(|row| is_live(row));
        live.filter(|row| parents.contains(&&row["parent_id"])).collect()
    }

    /// The live entities of the metalakes of that name, however deep.
    pub(crate) fn live_in_metalake(&self, metalake: &Entity) -> Vec<&Value> {
        let lakes: Vec<&Value> = self.all(metalake).iter().map(|row| &row["id"]).collect();
        let live = self.rows.of("entities").filter(|row| is_live(row));
        live.filter(|row| lakes.contains(&&row["metalake_id"])).collect()
    }

    /// The rows of a side table that name this row.
    pub(crate) fn side_rows<'a>(&'a self, table: &'a str, column: &str, row: &Value) -> Vec<&'a Value> {
        let rows = self.rows.of(table);
        rows.filter(|side| side[column] == row["id"]).collect()
    }

    /// What holds after every row: nothing names an id that has no row, and replaying the feed gives what is live.
    pub(crate) fn hold_together(&self, token: &str) -> Result<()> {
        self.nothing_names_a_lost_id()?;
        let lakes: BTreeSet<i64> = self
            .rows
            .entities("metalake")
            .filter(|row| text(&row["name"]).ends_with(token))
            .filter_map(|row| row["id"].as_i64())
            .collect();
        let rows: Vec<&Value> = self
            .rows
            .of("entities")
            .filter(|row| row["metalake_id"].as_i64().is_some_and(|id| lakes.contains(&id)))
            .collect();
        self.replay(&rows).context("replaying the feed")
    }

    /// What was dropped and purged is named by the feed alone, and by what is still to be done on disk.
    fn nothing_names_a_lost_id(&self) -> Result<()> {
        let ids =
            |table, column: &'static str| self.rows.of(table).filter_map(move |row| row[column].as_i64());
        let known: BTreeSet<i64> = ids("entities", "id").collect();
        let drops = self.rows.of("feed").filter(|line| line["operation"] == "drop");
        let dropped: BTreeSet<i64> = drops.filter_map(|line| line["entity_id"].as_i64()).collect();
        let lost = ids("feed", "entity_id").find(|id| !known.contains(id) && !dropped.contains(id));
        ensure!(lost.is_none(), "the feed names a lost id {lost:?}");
        let known_or_dropped: BTreeSet<i64> = known.union(&dropped).copied().collect();
        let naming = [
            ("locations", "entity_id", &known),
            ("reconcile_tasks", "entity_id", &known_or_dropped),
            ("reconcile_tasks", "cause_id", &known_or_dropped),
            ("version_aliases", "model_id", &known),
            ("version_aliases", "version_id", &known),
        ];
        for (table, column, ids) in naming {
            let is_lost = |row: &&Value| row[column].as_i64().is_some_and(|id| !ids.contains(&id));
            let lost = self.rows.of(table).find(is_lost);
            ensure!(lost.is_none(), "a lost id is named by {lost:?}");
        }
        Ok(())
    }

    /// One line for each effective write, in an order that makes sense at every step.
    fn replay(&self, rows: &[&Value]) -> Result<()> {
        let by_id: BTreeMap<i64, &Value> = rows
            .iter()
            .filter_map(|row| Some((row["id"].as_i64()?, *row)))
            .collect();
        let mut lines: Vec<&Value> = self.rows.of("feed").collect();
        lines.sort_by_key(|line| line["seq"].as_i64());
        let mut live = Live::default();
        for line in lines {
            if let Some(row) = line["entity_id"].as_i64().and_then(|id| by_id.get(&id)) {
                live.apply(line, row).with_context(|| format!("at {line}"))?;
            }
        }
        let told: BTreeMap<i64, (String, i64)> = live.by_id;
        let found = rows
            .iter()
            .filter(|row| is_live(row))
            .filter_map(|row| {
                Some((
                    row["id"].as_i64()?,
                    (text(&row["name"]).to_owned(), row["version"].as_i64()?),
                ))
            })
            .collect();
        ensure!(told == found, "the feed tells of {told:?}; live are {found:?}");
        Ok(())
    }
}

/// The live entities as the feed tells of them: name and version by id, and who holds which name.
#[derive(Default)]
struct Live {
    by_id: BTreeMap<i64, (String, i64)>,
    by_name: BTreeMap<(i64, String, String), i64>,
}

impl Live {
    fn apply(&mut self, line: &Value, row: &Value) -> Result<()> {
        let id = row["id"].as_i64().context("an id")?;
        let parent = row["parent_id"].as_i64().context("a parent")?;
        let version = line["version"].as_i64().context("a version")?;
        let names: Vec<String> = serde_json::from_str(text(&line["path"]))?;
        let name = names.last().context("a name")?.clone();
        let key = |name: &str| (parent, text(&row["kind"]).to_owned(), name.to_owned());
        let before = self.by_id.remove(&id);
        if let Some((name, _)) = &before {
            self.by_name.remove(&key(name));
        }
        let operation = text(&line["operation"]);
        match (operation, &before) {
            ("create", None) => {
                ensure!(version == 1, "it begins at version {version}");
                let below_the_root = names.len() == 1;
                ensure!(
                    below_the_root || self.by_id.contains_key(&parent),
                    "its parent is not live"
                );
            }
            (_, Some((_, last))) => ensure!(version == last + 1, "it was at version {last}"),
            (_, None) => anyhow::bail!("it is not live"),
        }
        if operation == "drop" {
            let mut children = self.by_name.keys();
            let child = children.find(|(parent, _, _)| *parent == id);
            ensure!(child.is_none(), "{child:?} is live below it");
            return Ok(());
        }
        let holder = self.by_name.insert(key(&name), id);
        ensure!(holder.is_none(), "{holder:?} holds the name");
        self.by_id.insert(id, (name, version));
        Ok(())
    }
}

/// Whether a row of an entity is live.
pub(crate) fn is_live(row: &Value) -> bool {
    row["tombstone"] == 0
}

/// The properties in a row of an entity.
pub(crate) fn properties(row: &Value) -> Result<Value> {
    let mut payload: Value = serde_json::from_str(text(&row["payload"]))?;
    Ok(payload["properties"].take())
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

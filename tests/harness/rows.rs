//! The rows of a database, as `treeline check --dump` prints them.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// Every row, dropped ones too.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    rows: Vec<Value>,
}

impl Rows {
    /// Reads one JSON object a line, each naming its table.
    pub(crate) fn parse(text: &str) -> Result<Rows> {
        let parse = |line: &str| serde_json::from_str(line).with_context(|| format!("`{line}` is no JSON"));
        let rows = text
            .lines()
            .filter(|line| line.starts_with('{'))
            .map(parse)
            .collect::<Result<Vec<Value>>>()?;
        ensure!(!rows.is_empty(), "there are no rows, not even the root");
        Ok(Rows { rows })
    }

    /// What only one of the two has, for people: the first few of each.
    pub fn difference(&self, other: &Rows) -> String {
        const SHOWN_MAX: usize = 5;
        let only = |sign: &'static str, one: &Rows, other: &Rows| -> Vec<String> {
            let only = one.rows.iter().filter(|row| !other.rows.contains(row));
            only.take(SHOWN_MAX).map(|row| format!("{sign} {row}")).collect()
        };
        [only("-", self, other), only("+", other, self)]
            .concat()
            .join("\n")
    }

    /// The rows of one table.
    pub fn of<'a>(&'a self, table: &'a str) -> impl Iterator<Item = &'a Value> {
        self.rows.iter().filter(move |row| row["table"] == table)
    }

    /// The entities of a kind, live and dropped.
    pub fn entities<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.of("entities").filter(move |row| row["kind"] == kind)
    }

    /// The entities of a kind that are live.
    pub fn live<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.entities(kind).filter(|row| row["tombstone"] == 0)
    }

    /// The entities of a kind and name, live and dropped.
    pub fn named<'a>(&'a self, kind: &'a str, name: &'a str) -> Vec<&'a Value> {
        self.entities(kind).filter(|row| row["name"] == name).collect()
    }

    /// The feed of one entity, in its order.
    pub fn feed_of<'a>(&'a self, entity: &'a Value) -> Vec<&'a Value> {
        self.of("feed")
            .filter(|row| row["entity_id"] == entity["id"])
            .collect()
    }
}

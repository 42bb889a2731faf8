//! Every row of every table as JSON lines: for tests, and for people with a question.

use async_trait::async_trait;

use crate::failure::Failure;
use crate::sql::{Statement, check};
use crate::transaction::{Transaction, Work};
use crate::value::Value;

/// The columns of one table's dump, in the order of its statement.
struct Dump {
    table: &'static str,
    statement: &'static Statement,
    columns: &'static [&'static str],
}

const DUMPS: &[Dump] = &[
    Dump {
        table: "entities",
        statement: &check::DUMP_ENTITIES,
        columns: &[
            "id",
            "kind",
            "parent_id",
            "parent_tombstone",
            "metalake_id",
            "name",
            "version",
            "tombstone",
            "in_use",
            "provider",
            "payload",
            "created_by",
            "created_at",
            "updated_by",
            "updated_at",
            "dropped_by",
            "dropped_at",
        ],
    },
    Dump {
        table: "version_aliases",
        statement: &check::DUMP_ALIASES,
        columns: &[
            "model_id",
            "model_tombstone",
            "alias",
            "version_id",
            "version_tombstone",
        ],
    },
    Dump {
        table: "locations",
        statement: &check::DUMP_LOCATIONS,
        columns: &["entity_id", "entity_tombstone", "name", "location", "on_drop"],
    },
    Dump {
        table: "reconcile_tasks",
        statement: &check::DUMP_TASKS,
        columns: &[
            "id",
            "kind",
            "entity_id",
            "cause_id",
            "location",
            "claimed_by",
            "claimed_until",
            "attempts",
            "not_before",
            "last_error",
            "created_at",
        ],
    },
    Dump {
        table: "feed",
        statement: &check::DUMP_FEED,
        columns: &[
            "seq",
            "entity_id",
            "kind",
            "path",
            "operation",
            "version",
            "actor",
            "request_id",
            "at",
        ],
    },
];

/// Reads every row of every table, as of one moment, as JSON lines.
pub(crate) struct DumpAll;

#[async_trait]
impl Work for DumpAll {
    type Output = String;
    const NAME: &'static str = "dump";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<String, Failure> {
        let mut lines = String::new();
        for dump in DUMPS {
            for row in transaction.rows(dump.statement, &[]).await? {
                let mut object = serde_json::Map::new();
                object.insert("table".to_owned(), dump.table.into());
                for (column, value) in dump.columns.iter().zip(row.0) {
                    object.insert((*column).to_owned(), json(value));
                }
                lines.push_str(&serde_json::Value::Object(object).to_string());
                lines.push('\n');
            }
        }
        Ok(lines)
    }
}

fn json(value: Value) -> serde_json::Value {
    match value {
        Value::Int(number) => number.into(),
        Value::Text(text) => text.into(),
        Value::Null => serde_json::Value::Null,
    }
}

//! Rules that can be switched off in the texts of statements, in test builds only.
//!
//! A predicate that is switched off stays bound (`OR 1 = 1`), so that the statement keeps its shape and parameters.

use std::sync::{Arc, OnceLock};

use crate::failure::Failure;
use crate::hooks::mutant;
use crate::network::NetworkOptions;
use crate::sql::Statement;
use crate::value::Value;

/// Where the rule that a feed row belongs to its change's transaction is broken: a connection beside it.
pub(crate) static BESIDE: OnceLock<NetworkOptions> = OnceLock::new();

/// Runs a statement by itself, outside every transaction. Only a database server can: SQLite has one writer.
pub(crate) async fn run_beside(sql: &Arc<str>, values: &[Value]) -> Result<(), Failure> {
    let Some(options) = BESIDE.get() else {
        return Err(Failure::Broken(
            "there is no database server beside this one".to_owned(),
        ));
    };
    let (mut connection, _term) = options.connector.connect(options).await?;
    connection.session().run(sql, values).await.map(drop)
}

/// The text of a statement with the rules of `TREELINE_MUTANTS` switched off, before fragments are filled in.
pub(crate) fn mutate(statement: &Statement) -> String {
    let mut text = statement.text.to_owned();
    let name = statement.name;
    let updates = matches!(name, "update_entity" | "rename_entity" | "fused_update");
    let drops = matches!(name, "drop_entities" | "lock_row_drop" | "lock_rows_drop");
    if mutant("m-parent-lock") && (name.starts_with("lock_parent") || name.starts_with("fused_create")) {
        let locks = ["{lock_shared} OF e3", "{lock_shared}", "{lock_alter}"];
        text = locks.iter().fold(text, |text, lock| text.replace(lock, ""));
    }
    if mutant("m-version-predicate") && updates {
        text = text.replace("AND version = ?", "AND (version = ? OR 1 = 1)");
    }
    if mutant("m-live-predicate") && (updates || drops) {
        text = text.replace("AND tombstone = 0", "AND (tombstone = 0 OR 1 = 1)");
    }
    if mutant("m-bump") && updates {
        text = text.replace("version = version + 1", "version = version + 0");
    }
    if mutant("m-reread-lock") && name == "lock_row_alter" {
        text = text.replace("{lock_alter}", "");
    }
    if mutant("m-index-hint") {
        text = text.replace("{by_id}", "");
    }
    if mutant("m-alter-lock") && name == "lock_row_alter" {
        text = text.replace("{lock_alter}", "{lock_drop}");
    }
    if mutant("m-lock-then-look") && name == "lock_row_drop" {
        text = text.replace(
            "in_use FROM entities",
            "in_use, (SELECT COUNT(*) FROM entities c WHERE c.parent_id = entities.id AND c.parent_tombstone = 0)
             FROM entities",
        );
    }
    if mutant("m-cascade-top-down") && name == "lock_rows_drop" {
        // The levels below the first are locked by their own drop, after what hangs below them was looked for.
        text = text.replace("{lock_drop}", "");
    }
    if mutant("m-tombstone-time") && name == "drop_entities" {
        // The clock, frozen, so that two drops of one name always meet. The check that would refuse the first is gone.
        text = text.replace("tombstone = id", "tombstone = 1");
    }
    text
}

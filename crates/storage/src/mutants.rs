//! Rules that can be switched off in the texts of statements, in test builds only.
//!
//! A predicate that is switched off stays bound (`OR 1 = 1`), so that the statement keeps its shape and parameters.

use crate::hooks::mutant;
use crate::sql::Statement;

/// The text of a statement with the rules of `TREELINE_MUTANTS` switched off, before fragments are filled in.
pub(crate) fn mutate(statement: &Statement) -> String {
    let mut text = statement.text.to_owned();
    let name = statement.name;
    let updates = matches!(name, "update_entity" | "rename_entity");
    let drops = matches!(name, "drop_entities" | "lock_row_drop" | "lock_rows_drop");
    if mutant("m-parent-lock") && name.starts_with("lock_parent") {
        text = text.replace("{lock_shared}", "").replace("{lock_alter}", "");
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
    if mutant("m-tombstone-time") && name == "drop_entities" {
        // The clock, frozen, so that two drops of one name always meet.
        text = text.replace("tombstone = id", "tombstone = 1");
    }
    text
}

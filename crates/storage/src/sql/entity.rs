//! Statements on `entities`: one table for every named thing.

use super::statements;

statements! {
    /// The parent of a create: shared, by id. A drop or a rename of it waits, and so do we for theirs (P1).
    LOCK_PARENT_SHARED = "lock_parent_shared", "
        SELECT kind, name, in_use, provider, {now_ms} FROM entities {by_id}
        WHERE id = ? AND tombstone = 0 {lock_shared}";
    /// The parent of a rename (P4).
    LOCK_PARENT_ALTER = "lock_parent_alter", "
        SELECT kind, name, in_use, provider, {now_ms} FROM entities {by_id}
        WHERE id = ? AND tombstone = 0 {lock_alter}";
    /// A row that is altered under its lock: a second attempt (P2), a model that a version is linked to.
    LOCK_ROW_ALTER = "lock_row_alter", "
        SELECT id, kind, version, name, in_use, provider, payload, created_by, created_at, updated_by, updated_at
        FROM entities {by_id} WHERE id = ? AND tombstone = 0 {lock_alter}";
    /// A row that is dropped (P3).
    LOCK_ROW_DROP = "lock_row_drop", "
        SELECT parent_id, name, version, in_use FROM entities {by_id} WHERE id = ? AND tombstone = 0 {lock_drop}";
    /// The rows of one level of a cascade, after a plain select has found their ids.
    LOCK_ROWS_DROP = "lock_rows_drop", "
        SELECT id, kind, parent_id, name, version FROM entities {by_id}
        WHERE id IN ({ids}) AND tombstone = 0 ORDER BY id {lock_drop}";
    /// Strict: a clash on the name is the answer (P1, INV-2).
    INSERT_ENTITY = "insert_entity", "
        INSERT INTO entities (id, kind, parent_id, parent_tombstone, metalake_id, name, version, tombstone, in_use,
            provider, payload, created_by, created_at)
        VALUES (?, ?, ?, 0, ?, ?, 1, 0, 1, ?, ?, ?, ?)";
    /// Under the version that was read, or not at all (INV-4).
    UPDATE_ENTITY = "update_entity", "
        UPDATE entities {by_id}
        SET in_use = ?, payload = ?, version = version + 1, updated_by = ?, updated_at = {now_ms}
        WHERE id = ? AND version = ? AND tombstone = 0";
    /// The same with another name; apart, because the name is part of keys that a plain update leaves alone.
    RENAME_ENTITY = "rename_entity", "
        UPDATE entities {by_id}
        SET name = ?, in_use = ?, payload = ?, version = version + 1, updated_by = ?, updated_at = {now_ms}
        WHERE id = ? AND version = ? AND tombstone = 0";
    /// When the update just made was made.
    UPDATED_AT = "updated_at", "SELECT updated_at FROM entities WHERE id = ?";
    /// A row that an update missed: is it there, under which name and version?
    PROBE_ROW = "probe_row", "SELECT name, version FROM entities WHERE id = ? AND tombstone = 0";
    /// Marks one level of a drop, from the bottom up; raises the version too (P3).
    DROP_ENTITIES = "drop_entities", "
        UPDATE entities {by_id}
        SET tombstone = id, parent_tombstone = NULL, version = version + 1, dropped_by = ?, dropped_at = {now_ms}
        WHERE id IN ({ids}) AND tombstone = 0";
    /// After the row's lock, in a statement of its own: a look folded into the locking statement would miss a child
    /// that was committed while it waited (P3).
    FIND_CHILD = "find_child", "SELECT id FROM entities WHERE parent_id = ? AND parent_tombstone = 0 LIMIT 1";
    /// One level of a cascade, plainly.
    FIND_CHILDREN = "find_children", "
        SELECT id FROM entities WHERE parent_id IN ({ids}) AND parent_tombstone = 0 ORDER BY id";
    /// Names only: one range of the unique key, and no payload is touched.
    LIST_NAMES = "list_names", "
        SELECT name FROM entities WHERE parent_id = ? AND kind = ? AND tombstone = 0 ORDER BY name";
    /// Whole rows.
    LIST_ENTITIES = "list_entities", "
        SELECT id, kind, version, name, in_use, provider, payload, created_by, created_at, updated_by, updated_at
        FROM entities WHERE parent_id = ? AND kind = ? AND tombstone = 0 ORDER BY name";
    /// Dropped rows past retention (P13 c), a bounded batch of them.
    FIND_PURGEABLE = "find_purgeable", "
        SELECT id FROM entities WHERE dropped_at < {statement_ms} - ? ORDER BY dropped_at LIMIT 64";
    /// Removes dropped rows for good. The second condition cannot be false; it is what keeps a live row safe from a
    /// mistake in the first.
    PURGE_ENTITIES = "purge_entities", "DELETE FROM entities WHERE id IN ({ids}) AND tombstone <> 0";
}

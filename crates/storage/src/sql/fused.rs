//! Whole protocols in one statement, for PostgreSQL: one round trip where the portable form takes five.
//!
//! The portable form stays the reference, and both pass the same suites. A fused create is safe, because a lock that
//! had to wait for a drop or a rename is followed by a look at the row's new version: then nothing is inserted, and the
//! portable form finds out why. A feed row is appended by the same statement, so it is committed with the change.

use super::statements;

statements! {
    /// P1, for an entity without side rows.
    FUSED_CREATE = "fused_create", "
        WITH parent AS (
            SELECT id FROM entities WHERE id = ? AND name = ? AND in_use = 1 AND tombstone = 0 {lock_shared}
        ), entity AS (
            INSERT INTO entities (id, kind, parent_id, parent_tombstone, metalake_id, name, version, tombstone, in_use,
                provider, payload, created_by, created_at)
            SELECT ?, ?, parent.id, 0, ?, ?, 1, 0, 1, ?, ?, ?, {now_ms} FROM parent
            RETURNING id, kind, created_by, created_at
        ), noted AS (
            INSERT INTO feed (entity_id, kind, path, operation, version, actor, request_id, at)
            SELECT entity.id, entity.kind, ?, 'create', 1, entity.created_by, ?, entity.created_at FROM entity
        )
        SELECT created_at FROM entity";
    /// P1, for an entity without side rows that lies in a schema, whose whole way down is looked up by the statement
    /// itself. The schema's row is locked; what the levels above are is looked at on the way down only, as ever.
    FUSED_CREATE_AT = "fused_create_at", "
        WITH parent AS (
            SELECT e3.id, e3.metalake_id
            FROM entities e1
            JOIN entities e2 ON e2.parent_id = e1.id AND e2.kind = 'catalog' AND e2.name = ? AND e2.tombstone = 0
            JOIN entities e3 ON e3.parent_id = e2.id AND e3.kind = 'schema' AND e3.name = ? AND e3.tombstone = 0
            WHERE e1.parent_id = 1 AND e1.kind = 'metalake' AND e1.name = ? AND e1.tombstone = 0
                AND e1.in_use = 1 AND e2.in_use = 1 AND e3.in_use = 1 AND e2.provider = ?
            {lock_shared} OF e3
        ), entity AS (
            INSERT INTO entities (id, kind, parent_id, parent_tombstone, metalake_id, name, version, tombstone, in_use,
                provider, payload, created_by, created_at)
            SELECT ?, ?, parent.id, 0, parent.metalake_id, ?, 1, 0, 1, NULL, ?, ?, {now_ms} FROM parent
            RETURNING id, kind, created_by, created_at
        ), noted AS (
            INSERT INTO feed (entity_id, kind, path, operation, version, actor, request_id, at)
            SELECT entity.id, entity.kind, ?, 'create', 1, entity.created_by, ?, entity.created_at FROM entity
        )
        SELECT created_at FROM entity";
    /// P2, for a change of neither name nor side rows.
    FUSED_UPDATE = "fused_update", "
        WITH entity AS (
            UPDATE entities {by_id}
            SET in_use = ?, payload = ?, version = version + 1, updated_by = ?, updated_at = {now_ms}
            WHERE id = ? AND version = ? AND tombstone = 0
            RETURNING id, kind, version, updated_by, updated_at
        ), noted AS (
            INSERT INTO feed (entity_id, kind, path, operation, version, actor, request_id, at)
            SELECT entity.id, entity.kind, ?, 'alter', entity.version, entity.updated_by, ?, entity.updated_at
            FROM entity
        )
        SELECT updated_at FROM entity";
}

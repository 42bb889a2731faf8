//! Statements on `feed`: one row for each committed change, in the change's own transaction.

use super::statements;

statements! {
    /// After the row locks, so that `seq` is the order of commits for each entity (P12).
    INSERT_FEED = "insert_feed", "
        INSERT INTO feed (entity_id, kind, path, operation, version, actor, request_id, at)
        VALUES (?, ?, ?, ?, ?, ?, ?, {now_ms})";
    /// Whether a write of this request took effect, after its commit was not answered (INV-12).
    FIND_PROOF = "find_proof", "
        SELECT seq FROM feed WHERE entity_id = ? AND version = ? AND request_id = ? ORDER BY seq LIMIT 1";
}

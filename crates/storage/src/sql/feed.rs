//! Statements on `feed`: one row for each committed change, in the change's own transaction.

use super::statements;

statements! {
    /// After the row locks, so that `seq` is the order of commits for each entity (P12).
    INSERT_FEED = "insert_feed", "
        INSERT INTO feed (entity_id, kind, path, operation, version, actor, request_id, at)
        VALUES (?, ?, ?, ?, ?, ?, ?, {now_ms})";
}

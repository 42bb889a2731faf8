//! Statements on `idempotency`: what a client's key has already done (P11).

use super::statements;

statements! {
    /// The first insert of a keyed write: a second one under the key waits for it, and then finds it.
    INSERT_KEY = "insert_key", "
        INSERT INTO idempotency (principal, request_key, fingerprint, created_at) VALUES (?, ?, ?, {now_ms})";
    /// The last statement of a keyed write.
    FILL_OUTCOME = "fill_outcome", "
        UPDATE idempotency SET outcome = ? WHERE principal = ? AND request_key = ?";
    /// What a key has done.
    FIND_KEY = "find_key", "
        SELECT fingerprint, outcome FROM idempotency WHERE principal = ? AND request_key = ?";
    /// What a key keeps of a create, and how far its directories are: nothing where all are made, 0 where one is due and
    /// nobody makes it, 1 where all that are left are being made or wait to be tried again. One statement, since an undo
    /// between two would look like directories that are made.
    FIND_KEPT_CREATE = "find_kept_create", "
        SELECT outcome,
            (SELECT MIN(CASE WHEN claimed_until < {statement_ms} AND not_before <= {statement_ms} THEN 0 ELSE 1 END)
                FROM reconcile_tasks WHERE entity_id = ? AND kind = 'make_directory')
        FROM idempotency WHERE principal = ? AND request_key = ?";
    /// Keys past their time, a bounded batch of them at a time.
    FIND_OLD_KEYS = "find_old_keys", "
        SELECT principal, request_key FROM idempotency WHERE created_at < {statement_ms} - ? ORDER BY created_at LIMIT 64";
    /// Forgets one of them.
    FORGET_KEY = "forget_key", "DELETE FROM idempotency WHERE principal = ? AND request_key = ?";
}

//! Statements on `reconcile_tasks`: work that outlives the request that asked for it.

use super::statements;

statements! {
    /// A task, claimed from the start (by the request that will do it) or free.
    INSERT_TASK = "insert_task", "
        INSERT INTO reconcile_tasks (id, kind, entity_id, cause_id, location, claimed_by, claimed_until, created_at)
        VALUES (?, ?, ?, ?, ?, ?, {now_ms} + ?, {now_ms})";
    /// Free tasks whose time has come, oldest first.
    FIND_DUE = "find_due_tasks", "
        SELECT id, kind, entity_id, cause_id, location, attempts FROM reconcile_tasks
        WHERE not_before <= {statement_ms} AND claimed_until < {statement_ms} ORDER BY not_before, id LIMIT ?";
    /// Free tasks that one create or drop asked for.
    FIND_CAUSED = "find_caused_tasks", "
        SELECT id, kind, entity_id, cause_id, location, attempts FROM reconcile_tasks
        WHERE cause_id = ? AND claimed_until < {statement_ms} ORDER BY id LIMIT ?";
    /// Removals of a tree at a place, below it, or at one of the places above it, and whether each is claimed now. Then
    /// those of an empty directory at the place itself that somebody has claimed, even if the claim has run out: the first
    /// parameter is the place, once more.
    FIND_REMOVALS_OVERLAPPING = "find_removals_overlapping", "
        SELECT id, kind, entity_id, cause_id, location, attempts,
            CASE WHEN kind <> 'remove_tree' OR claimed_until >= {now_ms} THEN 1 ELSE 0 END
        FROM reconcile_tasks
        WHERE (kind = 'remove_tree'
                OR (kind = 'remove_empty_directory' AND location = ? AND claimed_by IS NOT NULL))
            AND (location = ? OR (location >= ? AND location < ?) OR location IN ({places}))
        ORDER BY CASE WHEN kind = 'remove_tree' THEN 0 ELSE 1 END, id LIMIT 64";
    /// Whether a tree at or below a place is still to be removed.
    FIND_REMOVAL_INSIDE = "find_removal_inside", "
        SELECT id FROM reconcile_tasks
        WHERE kind = 'remove_tree' AND (location = ? OR (location >= ? AND location < ?)) LIMIT 1";
    /// Whether somebody is making a directory at or below a place right now.
    FIND_MAKING_INSIDE = "find_making_inside", "
        SELECT id FROM reconcile_tasks
        WHERE kind = 'make_directory' AND claimed_until >= {now_ms}
            AND (location = ? OR (location >= ? AND location < ?)) LIMIT 1";
    /// Takes a task that is free (compare-and-set); the claim runs out by itself.
    CLAIM_TASK = "claim_task", "
        UPDATE reconcile_tasks SET claimed_by = ?, claimed_until = {now_ms} + ?, attempts = attempts + 1
        WHERE id = ? AND claimed_until < {now_ms}";
    /// Work that has to wait for other work comes after it.
    POSTPONE_TASK = "postpone_task", "
        UPDATE reconcile_tasks SET not_before = {now_ms} + ? WHERE id = ? AND claimed_until < {now_ms}";
    /// Keeps a claim for longer.
    EXTEND_TASK = "extend_task", "
        UPDATE reconcile_tasks SET claimed_until = {now_ms} + ? WHERE id = ? AND claimed_by = ?";
    /// The work is done, by whoever still holds the claim.
    SETTLE_TASK = "settle_task", "DELETE FROM reconcile_tasks WHERE id = ? AND claimed_by = ?";
    /// The work failed; it is free again after a while.
    RELEASE_TASK = "release_task", "
        UPDATE reconcile_tasks SET claimed_by = NULL, claimed_until = 0, not_before = {now_ms} + ?, last_error = ?
        WHERE id = ? AND claimed_by = ?";
    /// A directory that nobody has begun to make need not be made for a dropped fileset.
    FORGET_MAKING = "forget_making", "
        DELETE FROM reconcile_tasks
        WHERE entity_id IN ({ids}) AND kind = 'make_directory' AND claimed_until < {now_ms}";
    /// The directories that a fileset still lacks, whoever makes them.
    FIND_MAKING_FOR = "find_making_for", "
        SELECT id FROM reconcile_tasks WHERE entity_id = ? AND kind = 'make_directory' ORDER BY id";
    /// Keeps whoever has claimed a task from ending it, if it is there still.
    LOCK_TASK = "lock_task", "SELECT id FROM reconcile_tasks {by_id} WHERE id = ? {lock_drop}";
    /// Whether the entity that a task is for is live.
    TASK_ENTITY_LIVE = "task_entity_live", "SELECT id FROM entities WHERE id = ? AND tombstone = 0";
}

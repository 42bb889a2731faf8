//! Path resolution: one round trip whatever the depth, and the missing level is known.
//!
//! A chain of left joins, one unique-key look-up a level. Each level answers its id, flag and provider; the leaf
//! answers its row. `…_WITH_PAYLOADS` also answers what the levels above keep, for requests that depend on it.
//! Parameters: kind and name of level 2, of level 3, …, then the name of level 1, which is always a metalake.

use super::{Statement, statements};

statements! {
    /// 1 level.
    RESOLVE_1 = "resolve_1", "
        SELECT e1.id, e1.in_use, e1.provider,
            e1.kind, e1.version, e1.name, e1.payload, e1.created_by, e1.created_at, e1.updated_by, e1.updated_at
        FROM entities e1
        WHERE e1.parent_id = 1 AND e1.kind = 'metalake' AND e1.name = ? AND e1.tombstone = 0";
    /// 2 levels.
    RESOLVE_2 = "resolve_2", "
        SELECT e1.id, e1.in_use, e1.provider, e2.id, e2.in_use, e2.provider,
            e2.kind, e2.version, e2.name, e2.payload, e2.created_by, e2.created_at, e2.updated_by, e2.updated_at
        FROM entities e1
        LEFT JOIN entities e2 ON e2.parent_id = e1.id AND e2.kind = ? AND e2.name = ? AND e2.tombstone = 0
        WHERE e1.parent_id = 1 AND e1.kind = 'metalake' AND e1.name = ? AND e1.tombstone = 0";
    /// 3 levels.
    RESOLVE_3 = "resolve_3", "
        SELECT e1.id, e1.in_use, e1.provider, e2.id, e2.in_use, e2.provider, e3.id, e3.in_use, e3.provider,
            e3.kind, e3.version, e3.name, e3.payload, e3.created_by, e3.created_at, e3.updated_by, e3.updated_at
        FROM entities e1
        LEFT JOIN entities e2 ON e2.parent_id = e1.id AND e2.kind = ? AND e2.name = ? AND e2.tombstone = 0
        LEFT JOIN entities e3 ON e3.parent_id = e2.id AND e3.kind = ? AND e3.name = ? AND e3.tombstone = 0
        WHERE e1.parent_id = 1 AND e1.kind = 'metalake' AND e1.name = ? AND e1.tombstone = 0";
    /// 4 levels.
    RESOLVE_4 = "resolve_4", "
        SELECT e1.id, e1.in_use, e1.provider, e2.id, e2.in_use, e2.provider, e3.id, e3.in_use,
            e3.provider, e4.id, e4.in_use, e4.provider,
            e4.kind, e4.version, e4.name, e4.payload, e4.created_by, e4.created_at, e4.updated_by, e4.updated_at
        FROM entities e1
        LEFT JOIN entities e2 ON e2.parent_id = e1.id AND e2.kind = ? AND e2.name = ? AND e2.tombstone = 0
        LEFT JOIN entities e3 ON e3.parent_id = e2.id AND e3.kind = ? AND e3.name = ? AND e3.tombstone = 0
        LEFT JOIN entities e4 ON e4.parent_id = e3.id AND e4.kind = ? AND e4.name = ? AND e4.tombstone = 0
        WHERE e1.parent_id = 1 AND e1.kind = 'metalake' AND e1.name = ? AND e1.tombstone = 0";
    /// 5 levels.
    RESOLVE_5 = "resolve_5", "
        SELECT e1.id, e1.in_use, e1.provider, e2.id, e2.in_use, e2.provider, e3.id, e3.in_use,
            e3.provider, e4.id, e4.in_use, e4.provider, e5.id, e5.in_use, e5.provider,
            e5.kind, e5.version, e5.name, e5.payload, e5.created_by, e5.created_at, e5.updated_by, e5.updated_at
        FROM entities e1
        LEFT JOIN entities e2 ON e2.parent_id = e1.id AND e2.kind = ? AND e2.name = ? AND e2.tombstone = 0
        LEFT JOIN entities e3 ON e3.parent_id = e2.id AND e3.kind = ? AND e3.name = ? AND e3.tombstone = 0
        LEFT JOIN entities e4 ON e4.parent_id = e3.id AND e4.kind = ? AND e4.name = ? AND e4.tombstone = 0
        LEFT JOIN entities e5 ON e5.parent_id = e4.id AND e5.kind = ? AND e5.name = ? AND e5.tombstone = 0
        WHERE e1.parent_id = 1 AND e1.kind = 'metalake' AND e1.name = ? AND e1.tombstone = 0";
    /// 2 levels, with payloads.
    RESOLVE_2_WITH_PAYLOADS = "resolve_2_with_payloads", "
        SELECT e1.id, e1.in_use, e1.provider, e1.payload, e2.id, e2.in_use, e2.provider,
            e2.kind, e2.version, e2.name, e2.payload, e2.created_by, e2.created_at, e2.updated_by, e2.updated_at
        FROM entities e1
        LEFT JOIN entities e2 ON e2.parent_id = e1.id AND e2.kind = ? AND e2.name = ? AND e2.tombstone = 0
        WHERE e1.parent_id = 1 AND e1.kind = 'metalake' AND e1.name = ? AND e1.tombstone = 0";
    /// 3 levels, with payloads.
    RESOLVE_3_WITH_PAYLOADS = "resolve_3_with_payloads", "
        SELECT e1.id, e1.in_use, e1.provider, e1.payload, e2.id, e2.in_use, e2.provider, e2.payload,
            e3.id, e3.in_use, e3.provider,
            e3.kind, e3.version, e3.name, e3.payload, e3.created_by, e3.created_at, e3.updated_by, e3.updated_at
        FROM entities e1
        LEFT JOIN entities e2 ON e2.parent_id = e1.id AND e2.kind = ? AND e2.name = ? AND e2.tombstone = 0
        LEFT JOIN entities e3 ON e3.parent_id = e2.id AND e3.kind = ? AND e3.name = ? AND e3.tombstone = 0
        WHERE e1.parent_id = 1 AND e1.kind = 'metalake' AND e1.name = ? AND e1.tombstone = 0";
    /// 4 levels, with payloads.
    RESOLVE_4_WITH_PAYLOADS = "resolve_4_with_payloads", "
        SELECT e1.id, e1.in_use, e1.provider, e1.payload, e2.id, e2.in_use, e2.provider, e2.payload,
            e3.id, e3.in_use, e3.provider, e3.payload,
            e4.id, e4.in_use, e4.provider,
            e4.kind, e4.version, e4.name, e4.payload, e4.created_by, e4.created_at, e4.updated_by, e4.updated_at
        FROM entities e1
        LEFT JOIN entities e2 ON e2.parent_id = e1.id AND e2.kind = ? AND e2.name = ? AND e2.tombstone = 0
        LEFT JOIN entities e3 ON e3.parent_id = e2.id AND e3.kind = ? AND e3.name = ? AND e3.tombstone = 0
        LEFT JOIN entities e4 ON e4.parent_id = e3.id AND e4.kind = ? AND e4.name = ? AND e4.tombstone = 0
        WHERE e1.parent_id = 1 AND e1.kind = 'metalake' AND e1.name = ? AND e1.tombstone = 0";
    /// 5 levels, with payloads.
    RESOLVE_5_WITH_PAYLOADS = "resolve_5_with_payloads", "
        SELECT e1.id, e1.in_use, e1.provider, e1.payload, e2.id, e2.in_use, e2.provider, e2.payload,
            e3.id, e3.in_use, e3.provider, e3.payload,
            e4.id, e4.in_use, e4.provider, e4.payload,
            e5.id, e5.in_use, e5.provider,
            e5.kind, e5.version, e5.name, e5.payload, e5.created_by, e5.created_at, e5.updated_by, e5.updated_at
        FROM entities e1
        LEFT JOIN entities e2 ON e2.parent_id = e1.id AND e2.kind = ? AND e2.name = ? AND e2.tombstone = 0
        LEFT JOIN entities e3 ON e3.parent_id = e2.id AND e3.kind = ? AND e3.name = ? AND e3.tombstone = 0
        LEFT JOIN entities e4 ON e4.parent_id = e3.id AND e4.kind = ? AND e4.name = ? AND e4.tombstone = 0
        LEFT JOIN entities e5 ON e5.parent_id = e4.id AND e5.kind = ? AND e5.name = ? AND e5.tombstone = 0
        WHERE e1.parent_id = 1 AND e1.kind = 'metalake' AND e1.name = ? AND e1.tombstone = 0";
}

/// The statement for that many levels. One level has nothing above it, so it has one form.
///
/// # Panics
/// If no kind lies that deep.
pub(crate) fn resolve(levels: usize, with_payloads: bool) -> &'static Statement {
    match (levels, with_payloads) {
        (1, _) => &RESOLVE_1,
        (2, false) => &RESOLVE_2,
        (3, false) => &RESOLVE_3,
        (4, false) => &RESOLVE_4,
        (5, false) => &RESOLVE_5,
        (2, true) => &RESOLVE_2_WITH_PAYLOADS,
        (3, true) => &RESOLVE_3_WITH_PAYLOADS,
        (4, true) => &RESOLVE_4_WITH_PAYLOADS,
        (5, true) => &RESOLVE_5_WITH_PAYLOADS,
        _ => unreachable!("no path has {levels} levels"),
    }
}

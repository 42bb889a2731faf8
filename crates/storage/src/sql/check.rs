//! Statements of the audit, of the dump and of migrations. They read; only the last group writes.

use super::statements;

statements! {
    /// INV-1 by hand: a live row whose parent is not live, or is not there.
    CHECK_ORPHANS = "check_orphans", "
        SELECT c.id, c.kind, c.name, c.parent_id FROM entities c
        LEFT JOIN entities p ON p.id = c.parent_id AND p.tombstone = 0
        WHERE c.tombstone = 0 AND p.id IS NULL ORDER BY c.id LIMIT 1000";
    /// INV-2 by hand, should the unique key ever be gone.
    CHECK_DOUBLE_NAMES = "check_double_names", "
        SELECT parent_id, kind, name, COUNT(*) FROM entities WHERE tombstone = 0
        GROUP BY parent_id, kind, name HAVING COUNT(*) > 1 ORDER BY parent_id, kind, name LIMIT 1000";
    /// A row that is neither live nor dropped.
    CHECK_STATES = "check_states", "
        SELECT id, tombstone, parent_tombstone FROM entities
        WHERE NOT ((tombstone = 0 AND parent_tombstone IS NOT NULL AND parent_tombstone = 0)
            OR (tombstone = id AND parent_tombstone IS NULL)) ORDER BY id LIMIT 1000";
    /// INV-7: an alias whose version is not a live version of its model.
    CHECK_ALIASES = "check_aliases", "
        SELECT a.model_id, a.alias, a.version_id FROM version_aliases a
        LEFT JOIN entities v ON v.id = a.version_id AND v.tombstone = 0 AND v.kind = 'model_version'
            AND v.parent_id = a.model_id
        WHERE v.id IS NULL ORDER BY a.model_id, a.alias LIMIT 1000";
    /// A place whose fileset is not live.
    CHECK_LOCATIONS = "check_locations", "
        SELECT l.entity_id, l.name FROM locations l
        LEFT JOIN entities f ON f.id = l.entity_id AND f.tombstone = 0 AND f.kind = 'fileset'
        WHERE f.id IS NULL ORDER BY l.entity_id, l.name LIMIT 1000";
    /// INV-3: the versions in the feed of a row rise by one up to the row's version.
    CHECK_FEED_GAPS = "check_feed_gaps", "
        SELECT e.id, e.kind, e.name, e.version, COUNT(f.seq), MIN(f.version), MAX(f.version)
        FROM entities e LEFT JOIN feed f ON f.entity_id = e.id
        WHERE e.kind <> 'root'
        GROUP BY e.id, e.kind, e.name, e.version
        HAVING COUNT(f.seq) = 0 OR MAX(f.version) <> e.version OR MIN(f.version) <> 1 OR COUNT(f.seq) <> e.version
        ORDER BY e.id LIMIT 1000";
    /// P12: the feed's order is the order of versions for each row.
    CHECK_FEED_ORDER = "check_feed_order", "
        SELECT later.entity_id, later.version FROM feed later
        JOIN feed earlier ON earlier.entity_id = later.entity_id AND earlier.version = later.version - 1
        WHERE earlier.seq > later.seq ORDER BY later.entity_id LIMIT 1000";
    /// Every live row, in the order of ids, a page at a time: for what only the payload can tell.
    CHECK_PAYLOADS = "check_payloads", "
        SELECT id, kind, version, name, in_use, provider, payload, created_by, created_at, updated_by, updated_at
        FROM entities WHERE tombstone = 0 AND kind <> 'root' AND id > ? ORDER BY id LIMIT 1000";
    /// The aliases of a version, as its side rows say.
    ALIASES_OF = "aliases_of", "SELECT alias FROM version_aliases WHERE version_id = ? ORDER BY alias";
    /// The places of a fileset, as its side rows say.
    LOCATIONS_OF = "locations_of", "SELECT name, location FROM locations WHERE entity_id = ? ORDER BY name";
    /// The numbers of a model's live versions.
    NUMBERS_OF = "numbers_of", "
        SELECT name FROM entities WHERE parent_id = ? AND kind = 'model_version' AND tombstone = 0";

    /// The dump: entities, live and dropped.
    DUMP_ENTITIES = "dump_entities", "
        SELECT id, kind, parent_id, parent_tombstone, metalake_id, name, version, tombstone, in_use, provider, payload,
            created_by, created_at, updated_by, updated_at, dropped_by, dropped_at
        FROM entities ORDER BY id";
    /// The dump: aliases.
    DUMP_ALIASES = "dump_version_aliases", "
        SELECT model_id, model_tombstone, alias, version_id, version_tombstone FROM version_aliases
        ORDER BY model_id, alias";
    /// The dump: places of files.
    DUMP_LOCATIONS = "dump_locations", "
        SELECT entity_id, entity_tombstone, name, location, on_drop FROM locations ORDER BY entity_id, name";
    /// The dump: work to do.
    DUMP_TASKS = "dump_reconcile_tasks", "
        SELECT id, kind, entity_id, cause_id, location, claimed_by, claimed_until, attempts, not_before, last_error,
            created_at
        FROM reconcile_tasks ORDER BY id";
    /// The dump: the feed.
    DUMP_FEED = "dump_feed", "
        SELECT seq, entity_id, kind, path, operation, version, actor, request_id, at FROM feed ORDER BY seq";

    /// Writes nothing, but only where something could be written.
    PROBE_WRITE = "probe_write", "UPDATE entities SET version = version WHERE id = 0";
    /// Which migrations the database has had.
    SCHEMA_VERSION = "schema_version", "SELECT MAX(version) FROM schema_migrations";
    /// One more.
    RECORD_MIGRATION = "record_migration", "
        INSERT INTO schema_migrations (version, name, applied_at) VALUES (?, ?, {now_ms})";
    /// Where a cluster's schema is being migrated; version 0 is no migration.
    FIND_MIGRATING_NODE = "find_migrating_node", "SELECT name FROM schema_migrations WHERE version = 0";
    /// It is done, or has failed.
    FORGET_MIGRATING_NODE = "forget_migrating_node", "DELETE FROM schema_migrations WHERE version = 0 AND name = ?";

    /// Sessions of this database that wait for a row lock; tests ask.
    COUNT_BLOCKED = "count_blocked", "{count_blocked}";
}

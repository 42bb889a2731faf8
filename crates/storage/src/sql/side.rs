//! Statements on the side rows of an entity: aliases of versions, and the places of files.

use super::statements;

statements! {
    /// Strict: an alias that another version of the model holds is the answer (INV-7).
    INSERT_ALIAS = "insert_alias", "
        INSERT INTO version_aliases (model_id, alias, version_id) VALUES (?, ?, ?)";
    /// Detaches one alias of a version.
    DETACH_ALIAS = "detach_alias", "
        DELETE FROM version_aliases WHERE model_id = ? AND alias = ? AND version_id = ?";
    /// Detaches every alias of dropped versions.
    DETACH_ALIASES = "detach_aliases", "DELETE FROM version_aliases WHERE version_id IN ({ids})";
    /// Which version an alias names: its number.
    FIND_ALIAS = "find_alias", "
        SELECT v.name FROM version_aliases a JOIN entities v ON v.id = a.version_id AND v.tombstone = 0
        WHERE a.model_id = ? AND a.alias = ?";
    /// Where a fileset keeps its files.
    INSERT_LOCATION = "insert_location", "
        INSERT INTO locations (entity_id, name, location, on_drop) VALUES (?, ?, ?, ?)";
    /// The directories that go with dropped filesets.
    FIND_REMOVABLE_LOCATIONS = "find_removable_locations", "
        SELECT entity_id, location FROM locations WHERE entity_id IN ({ids}) AND on_drop = 'remove'";
    /// Detaches the places of dropped filesets.
    DETACH_LOCATIONS = "detach_locations", "DELETE FROM locations WHERE entity_id IN ({ids})";
    /// Whether a live fileset keeps files at or below a place. `0` is the character after `/`, so the range is
    /// exactly what begins with the place and a slash.
    FIND_LOCATION_INSIDE = "find_location_inside", "
        SELECT entity_id FROM locations WHERE location = ? OR (location >= ? AND location < ?) LIMIT 1";
}

-- A model read by its path, then written under the version that was read, with its feed row, in one statement. Each
-- client has rows of its own. The text goes back as it came, since the script cannot change it: it is as long as a
-- changed one, and the database does not look.
\set row :client_id + :clients * random(0, :rows / :clients - 1)
\set counter :counter + 1
SELECT e1.id, e1.in_use, e1.provider, e2.id, e2.in_use, e2.provider, e3.id, e3.in_use,
    e3.provider, e4.id, e4.in_use, e4.provider,
    e4.kind, e4.version, e4.name, e4.payload, e4.created_by, e4.created_at, e4.updated_by, e4.updated_at
FROM entities e1
LEFT JOIN entities e2 ON e2.parent_id = e1.id AND e2.kind = 'catalog' AND e2.name = 'models' AND e2.tombstone = 0
LEFT JOIN entities e3 ON e3.parent_id = e2.id AND e3.kind = 'schema' AND e3.name = 's' AND e3.tombstone = 0
LEFT JOIN entities e4 ON e4.parent_id = e3.id AND e4.kind = 'model' AND e4.name = 'm' || :row AND e4.tombstone = 0
WHERE e1.parent_id = 1 AND e1.kind = 'metalake' AND e1.name = :metalake AND e1.tombstone = 0
\gset
WITH model AS (
    UPDATE entities
    SET in_use = 1, payload = :payload, version = version + 1, updated_by = 'raw',
        updated_at = CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)
    WHERE id = :id AND version = :version AND tombstone = 0
    RETURNING id, name, version, updated_at
)
INSERT INTO feed (entity_id, kind, path, operation, version, actor, request_id, at)
SELECT id, 'model', '["' || :metalake || '","models","s","' || name || '"]', 'alter', version, 'raw',
    :tag || '-' || :client_id || '-' || :counter, updated_at
FROM model
RETURNING seq, at
\gset

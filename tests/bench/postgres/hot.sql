-- One model for all clients: its row is locked at once, then written with its feed row. Whoever waits for the lock
-- is given the row as it is by then, so every one succeeds.
\set counter :counter + 1
BEGIN;
SELECT e4.id, e4.version, e4.payload
FROM entities e1
JOIN entities e2 ON e2.parent_id = e1.id AND e2.kind = 'catalog' AND e2.name = 'models' AND e2.tombstone = 0
JOIN entities e3 ON e3.parent_id = e2.id AND e3.kind = 'schema' AND e3.name = 's' AND e3.tombstone = 0
JOIN entities e4 ON e4.parent_id = e3.id AND e4.kind = 'model' AND e4.name = 'hot' AND e4.tombstone = 0
WHERE e1.parent_id = 1 AND e1.kind = 'metalake' AND e1.name = :metalake AND e1.tombstone = 0
FOR NO KEY UPDATE OF e4
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
COMMIT;

-- A model of a new name under one schema, in one statement: the schema by its path, locked against a drop and a
-- rename, the row, and its feed row. The lock re-checks the schema's row once it is held, so nothing is inserted
-- under one that is gone by then.
\set counter :counter + 1
WITH parent AS (
    SELECT e3.id, e3.metalake_id, CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now_ms
    FROM entities e1
    JOIN entities e2 ON e2.parent_id = e1.id AND e2.kind = 'catalog' AND e2.name = 'models' AND e2.tombstone = 0
    JOIN entities e3 ON e3.parent_id = e2.id AND e3.kind = 'schema' AND e3.name = 's' AND e3.tombstone = 0
    WHERE e1.parent_id = 1 AND e1.kind = 'metalake' AND e1.name = :metalake AND e1.tombstone = 0
        AND e1.in_use = 1 AND e2.in_use = 1 AND e3.in_use = 1
    FOR KEY SHARE OF e3
), model AS (
    INSERT INTO entities (id, kind, parent_id, parent_tombstone, metalake_id, name, version, tombstone, in_use,
        provider, payload, created_by, created_at)
    SELECT ((now_ms - 1704067200000) << 22) | (CAST(:client_id AS BIGINT) << 12) | (CAST(:counter AS BIGINT) % 4096),
        'model', id, 0, metalake_id, :tag || '-' || :client_id || '-' || :counter, 1, 0, 1,
        NULL, :payload, 'raw', now_ms
    FROM parent
    RETURNING id, name, created_at
)
INSERT INTO feed (entity_id, kind, path, operation, version, actor, request_id, at)
SELECT id, 'model', '["' || :metalake || '","models","s","' || name || '"]', 'create', 1, 'raw', name, created_at
FROM model
RETURNING seq, at
\gset

-- A model by its path of four names: the statement that the store runs.
\set row :client_id + :clients * random(0, :rows / :clients - 1)
SELECT e1.id, e1.in_use, e1.provider, e2.id, e2.in_use, e2.provider, e3.id, e3.in_use,
    e3.provider, e4.id, e4.in_use, e4.provider,
    e4.kind, e4.version, e4.name, e4.payload, e4.created_by, e4.created_at, e4.updated_by, e4.updated_at
FROM entities e1
LEFT JOIN entities e2 ON e2.parent_id = e1.id AND e2.kind = 'catalog' AND e2.name = 'models' AND e2.tombstone = 0
LEFT JOIN entities e3 ON e3.parent_id = e2.id AND e3.kind = 'schema' AND e3.name = 's' AND e3.tombstone = 0
LEFT JOIN entities e4 ON e4.parent_id = e3.id AND e4.kind = 'model' AND e4.name = 'm' || :row AND e4.tombstone = 0
WHERE e1.parent_id = 1 AND e1.kind = 'metalake' AND e1.name = :metalake AND e1.tombstone = 0;

-- Text compares byte by byte (COLLATE "C"), as on the other databases.
-- The managed tree: every named thing, the aliases of model versions, the places of files, the feed, and work to do.

CREATE TABLE entities (
    id               BIGINT  NOT NULL,
    kind             TEXT    NOT NULL,
    parent_id        BIGINT  NOT NULL,
    parent_tombstone BIGINT ,                      -- 0 while this row is live, NULL once dropped
    metalake_id      BIGINT  NOT NULL,
    name             TEXT    COLLATE "C" NOT NULL,
    version          BIGINT  NOT NULL,
    tombstone        BIGINT  NOT NULL DEFAULT 0,   -- 0 while live, the row's own id once dropped
    in_use           BIGINT  NOT NULL DEFAULT 1,
    provider         TEXT,
    payload          TEXT    NOT NULL,             -- the serde text of the kind's struct, byte by byte as we wrote it
    created_by       TEXT    NOT NULL,
    created_at       BIGINT  NOT NULL,             -- milliseconds since 1970, as all times here
    updated_by       TEXT,
    updated_at       BIGINT ,
    dropped_by       TEXT,
    dropped_at       BIGINT ,
    CONSTRAINT entities_id     PRIMARY KEY (id),
    CONSTRAINT entities_name   UNIQUE (parent_id, kind, name, tombstone),
    CONSTRAINT entities_alive  UNIQUE (id, tombstone),
    CONSTRAINT entities_parent FOREIGN KEY (parent_id, parent_tombstone) REFERENCES entities (id, tombstone)
        ON UPDATE NO ACTION ON DELETE NO ACTION,
    CONSTRAINT entities_state  CHECK (
        (tombstone = 0 AND parent_tombstone IS NOT NULL AND parent_tombstone = 0)
        OR (tombstone = id AND parent_tombstone IS NULL))
);
CREATE INDEX entities_children ON entities (parent_id, parent_tombstone);
CREATE INDEX entities_dropped ON entities (dropped_at);

CREATE TABLE version_aliases (
    model_id          BIGINT  NOT NULL,
    model_tombstone   BIGINT  NOT NULL DEFAULT 0 CHECK (model_tombstone = 0),
    alias             TEXT    COLLATE "C" NOT NULL,
    version_id        BIGINT  NOT NULL,
    version_tombstone BIGINT  NOT NULL DEFAULT 0 CHECK (version_tombstone = 0),
    CONSTRAINT version_aliases_alias   PRIMARY KEY (model_id, alias),
    CONSTRAINT version_aliases_model   FOREIGN KEY (model_id, model_tombstone) REFERENCES entities (id, tombstone)
        ON UPDATE NO ACTION ON DELETE NO ACTION,
    CONSTRAINT version_aliases_version FOREIGN KEY (version_id, version_tombstone) REFERENCES entities (id, tombstone)
        ON UPDATE NO ACTION ON DELETE NO ACTION
);
CREATE INDEX version_aliases_models ON version_aliases (model_id, model_tombstone);
CREATE INDEX version_aliases_versions ON version_aliases (version_id, version_tombstone);

CREATE TABLE locations (
    entity_id        BIGINT  NOT NULL,
    entity_tombstone BIGINT  NOT NULL DEFAULT 0 CHECK (entity_tombstone = 0),
    name             TEXT    COLLATE "C" NOT NULL,
    location         TEXT    COLLATE "C" NOT NULL,
    on_drop          TEXT    NOT NULL,             -- remove: the directory is ours; keep: it is not
    CONSTRAINT locations_name   PRIMARY KEY (entity_id, name),
    CONSTRAINT locations_entity FOREIGN KEY (entity_id, entity_tombstone) REFERENCES entities (id, tombstone)
        ON UPDATE NO ACTION ON DELETE NO ACTION
);
CREATE INDEX locations_location ON locations (location);
CREATE INDEX locations_entities ON locations (entity_id, entity_tombstone);

CREATE TABLE reconcile_tasks (
    id            BIGINT  NOT NULL CONSTRAINT reconcile_tasks_id PRIMARY KEY,
    kind          TEXT    NOT NULL,
    entity_id     BIGINT  NOT NULL,                -- whose directory it is
    cause_id      BIGINT  NOT NULL,                -- the entity whose create or drop asked for the work
    location      TEXT    COLLATE "C" NOT NULL,
    claimed_by    TEXT,
    claimed_until BIGINT  NOT NULL DEFAULT 0,
    attempts      BIGINT  NOT NULL DEFAULT 0,
    not_before    BIGINT  NOT NULL DEFAULT 0,
    last_error    TEXT,
    created_at    BIGINT  NOT NULL
);
CREATE INDEX reconcile_tasks_cause ON reconcile_tasks (cause_id);
CREATE INDEX reconcile_tasks_entity ON reconcile_tasks (entity_id);
CREATE INDEX reconcile_tasks_location ON reconcile_tasks (location);
CREATE INDEX reconcile_tasks_due ON reconcile_tasks (not_before, id);

CREATE TABLE feed (
    seq        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    entity_id  BIGINT  NOT NULL,
    kind       TEXT    NOT NULL,
    path       TEXT    NOT NULL,                   -- a JSON array of names, top first, as they were then
    operation  TEXT    NOT NULL,
    version    BIGINT  NOT NULL,
    actor      TEXT    NOT NULL,
    request_id TEXT    NOT NULL,
    at         BIGINT  NOT NULL
);
CREATE INDEX feed_entity ON feed (entity_id, version);

CREATE TABLE idempotency (
    principal   TEXT    NOT NULL,
    request_key TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,                  -- of the request; another request under the same key is refused
    outcome     TEXT,                              -- what was answered; filled in last, in the same transaction
    created_at  BIGINT  NOT NULL,
    CONSTRAINT idempotency_key PRIMARY KEY (principal, request_key)
);
CREATE INDEX idempotency_age ON idempotency (created_at);

INSERT INTO entities (id, kind, parent_id, parent_tombstone, metalake_id, name, version, payload, created_by, created_at)
VALUES (1, 'root', 1, 0, 1, 'root', 1, '{}', 'treeline', 0);

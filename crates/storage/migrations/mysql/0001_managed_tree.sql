-- The managed tree: every named thing, the aliases of model versions, the places of files, the feed, and work to do.
-- Statements commit one by one here, so each can be run again after a server was killed in the middle.

CREATE TABLE IF NOT EXISTS entities (
    id               BIGINT        NOT NULL,
    kind             VARCHAR(32)   NOT NULL,
    parent_id        BIGINT        NOT NULL,
    parent_tombstone BIGINT,                       -- 0 while this row is live, NULL once dropped
    metalake_id      BIGINT        NOT NULL,
    name             VARCHAR(256)  NOT NULL,
    version          BIGINT        NOT NULL,
    tombstone        BIGINT        NOT NULL DEFAULT 0, -- 0 while live, the row's own id once dropped
    in_use           BIGINT        NOT NULL DEFAULT 1,
    provider         VARCHAR(64),
    payload          MEDIUMTEXT    NOT NULL,       -- the serde text of the kind's struct, byte by byte as we wrote it
    created_by       VARCHAR(1024) NOT NULL,
    created_at       BIGINT        NOT NULL,       -- milliseconds since 1970, as all times here
    updated_by       VARCHAR(1024),
    updated_at       BIGINT,
    dropped_by       VARCHAR(1024),
    dropped_at       BIGINT,
    PRIMARY KEY (id),
    UNIQUE KEY entities_name (parent_id, kind, name, tombstone),
    UNIQUE KEY entities_alive (id, tombstone),
    KEY entities_children (parent_id, parent_tombstone),
    KEY entities_dropped (dropped_at),
    CONSTRAINT entities_parent FOREIGN KEY (parent_id, parent_tombstone) REFERENCES entities (id, tombstone)
        ON UPDATE NO ACTION ON DELETE NO ACTION,
    CONSTRAINT entities_state CHECK (
        (tombstone = 0 AND parent_tombstone IS NOT NULL AND parent_tombstone = 0)
        OR (tombstone = id AND parent_tombstone IS NULL))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS version_aliases (
    model_id          BIGINT       NOT NULL,
    model_tombstone   BIGINT       NOT NULL DEFAULT 0,
    alias             VARCHAR(256) NOT NULL,
    version_id        BIGINT       NOT NULL,
    version_tombstone BIGINT       NOT NULL DEFAULT 0,
    UNIQUE KEY version_aliases_alias (model_id, alias),
    KEY version_aliases_models (model_id, model_tombstone),
    KEY version_aliases_versions (version_id, version_tombstone),
    CONSTRAINT version_aliases_model FOREIGN KEY (model_id, model_tombstone) REFERENCES entities (id, tombstone)
        ON UPDATE NO ACTION ON DELETE NO ACTION,
    CONSTRAINT version_aliases_version FOREIGN KEY (version_id, version_tombstone) REFERENCES entities (id, tombstone)
        ON UPDATE NO ACTION ON DELETE NO ACTION,
    CONSTRAINT version_aliases_live CHECK (model_tombstone = 0 AND version_tombstone = 0)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS locations (
    entity_id        BIGINT        NOT NULL,
    entity_tombstone BIGINT        NOT NULL DEFAULT 0,
    name             VARCHAR(256)  NOT NULL,
    location         VARCHAR(2048) NOT NULL,
    on_drop          VARCHAR(16)   NOT NULL,       -- remove: the directory is ours; keep: it is not
    UNIQUE KEY locations_name (entity_id, name),
    KEY locations_location (location(512)),
    KEY locations_entities (entity_id, entity_tombstone),
    CONSTRAINT locations_entity FOREIGN KEY (entity_id, entity_tombstone) REFERENCES entities (id, tombstone)
        ON UPDATE NO ACTION ON DELETE NO ACTION,
    CONSTRAINT locations_live CHECK (entity_tombstone = 0)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS reconcile_tasks (
    id            BIGINT        NOT NULL,
    kind          VARCHAR(32)   NOT NULL,
    entity_id     BIGINT        NOT NULL,          -- whose directory it is
    cause_id      BIGINT        NOT NULL,          -- the entity whose create or drop asked for the work
    location      VARCHAR(2048) NOT NULL,
    claimed_by    VARCHAR(64),
    claimed_until BIGINT        NOT NULL DEFAULT 0,
    attempts      BIGINT        NOT NULL DEFAULT 0,
    not_before    BIGINT        NOT NULL DEFAULT 0,
    last_error    TEXT,
    created_at    BIGINT        NOT NULL,
    PRIMARY KEY (id),
    KEY reconcile_tasks_cause (cause_id),
    KEY reconcile_tasks_entity (entity_id),
    KEY reconcile_tasks_location (location(512)),
    KEY reconcile_tasks_due (not_before, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS feed (
    seq        BIGINT        NOT NULL AUTO_INCREMENT,
    entity_id  BIGINT        NOT NULL,
    kind       VARCHAR(32)   NOT NULL,
    path       TEXT          NOT NULL,             -- a JSON array of names, top first, as they were then
    operation  VARCHAR(16)   NOT NULL,
    version    BIGINT        NOT NULL,
    actor      VARCHAR(1024) NOT NULL,
    request_id VARCHAR(256)  NOT NULL,
    at         BIGINT        NOT NULL,
    PRIMARY KEY (seq),
    KEY feed_entity (entity_id, version)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS idempotency (
    principal   VARCHAR(256) NOT NULL,
    request_key       VARCHAR(256) NOT NULL,
    fingerprint VARCHAR(128) NOT NULL,             -- of the request; another request under the same key is refused
    outcome     MEDIUMTEXT,                        -- what was answered; filled in last, in the same transaction
    created_at  BIGINT       NOT NULL,
    UNIQUE KEY idempotency_key (principal, request_key),
    KEY idempotency_age (created_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

INSERT IGNORE INTO entities
    (id, kind, parent_id, parent_tombstone, metalake_id, name, version, payload, created_by, created_at)
VALUES (1, 'root', 1, 0, 1, 'root', 1, '{}', 'treeline', 0);

-- The ledger, the registrar's own record, the records of all families, and views for reading them.

-- One row: the present epoch and era. How far tokens, time and the ledger have come in it is in the last
-- event, so that an ordinary commit need not write here.
CREATE TABLE authority (
    only_row       INTEGER PRIMARY KEY CHECK (only_row = 1),
    epoch          INTEGER NOT NULL,
    era            INTEGER NOT NULL,
    era_first_tick INTEGER NOT NULL,
    boot_id        TEXT    NOT NULL,
    identity       TEXT    NOT NULL,
    rate           INTEGER NOT NULL,
    key_changes    INTEGER NOT NULL, -- how often a key was enrolled or retired, so that writers notice
    families       TEXT    NOT NULL, -- JSON: the version of every family that the ledger may have events of
    outage         TEXT              -- JSON: the last time in this era in which the registrar was down
) STRICT;

-- Ended runs of the clock, so that leases from before a reboot can be given what they had left.
CREATE TABLE eras (
    number     INTEGER PRIMARY KEY,
    boot_id    TEXT    NOT NULL,
    first_tick INTEGER NOT NULL,
    last_tick  INTEGER NOT NULL,
    rate       INTEGER NOT NULL
) STRICT;

-- The keys that sealed the ledger, or do. Public halves only; the private ones are beside the file.
CREATE TABLE keys (
    public_key     BLOB    NOT NULL PRIMARY KEY,
    number         INTEGER NOT NULL UNIQUE, -- in the order of enrolment
    enrolled_at_ns INTEGER NOT NULL,
    enrolled_by    TEXT    NOT NULL,
    vouched_by     BLOB    NOT NULL, -- the public key of whoever vouches for it; empty: nobody
    voucher        BLOB    NOT NULL,
    reason         TEXT    NOT NULL,
    retired_at_ns  INTEGER,
    retired_by     TEXT,
    retire_reason  TEXT
) STRICT, WITHOUT ROWID;

-- The history: append-only, each entry's hash covers the one before it. The columns beside `body` repeat
-- parts of it, for queries; `body` is what counts.
CREATE TABLE events (
    position   INTEGER PRIMARY KEY,
    type       TEXT    NOT NULL, -- up to the dot, the family it belongs to
    at_ns      INTEGER NOT NULL,
    tenant     TEXT,
    lease_id   TEXT,
    resource   TEXT,
    holder     TEXT,
    token      INTEGER,
    request    TEXT,
    tick       INTEGER NOT NULL,
    remembered INTEGER NOT NULL, -- whether a retry has to find it by its request
    counter    INTEGER NOT NULL, -- how many tokens of its epoch had been given out when it was committed
    body       TEXT    NOT NULL,
    hash       BLOB    NOT NULL,
    seal       BLOB -- over a commit, in its last entry: eight bytes that name the key, then 64 of Ed25519
) STRICT;

CREATE INDEX events_by_request  ON events (request)
    WHERE remembered = 1 AND request IS NOT NULL;
CREATE INDEX events_by_resource ON events (resource)
    WHERE resource IS NOT NULL;
-- Events of other families that concern a lease.
CREATE INDEX events_by_lease    ON events (lease_id)
    WHERE lease_id IS NOT NULL AND resource IS NULL;
-- Renewals of several leases in one entry; finding one of them means looking into its holder's few.
CREATE INDEX events_of_batches  ON events (tenant, holder)
    WHERE type = 'lease.renewed' AND lease_id IS NULL;

-- What stands for entries of the ledger that were pruned: one row. `state` is everything that the removed
-- entries had led to, as JSON; the entry at `position` has its digest.
CREATE TABLE checkpoints (
    position INTEGER PRIMARY KEY,
    state    BLOB NOT NULL
) STRICT;

-- Every lease, as the ledger says it is. Made for reading with plain SQL; written by leasehold only.
CREATE TABLE leases (
    lease_id           TEXT    NOT NULL PRIMARY KEY,
    tenant             TEXT    NOT NULL,
    resource           TEXT    NOT NULL,
    holder             TEXT    NOT NULL,
    status             TEXT    NOT NULL
        CHECK (status IN ('pending', 'active', 'released', 'expired', 'revoked', 'failed')),
    mode               TEXT    NOT NULL CHECK (mode IN ('exclusive', 'shared')),
    token              INTEGER NOT NULL,
    ttl_ns             INTEGER NOT NULL,
    issued_tick        INTEGER,
    expires_tick       INTEGER,
    tick_era           INTEGER,
    tick_rate          INTEGER,
    issued_at_ns       INTEGER NOT NULL,
    expires_at_ns      INTEGER NOT NULL,
    renewal_count      INTEGER NOT NULL,
    max_renewals       INTEGER NOT NULL,
    last_renewed_at_ns INTEGER,
    terminated_at_ns   INTEGER,
    release_reason     TEXT,
    ended_by           TEXT,
    end_reason         TEXT,
    end_request        TEXT,
    adopted_from       TEXT,
    bound_to_boot      INTEGER NOT NULL,
    signature          BLOB    NOT NULL,
    metadata           TEXT    NOT NULL,
    config_version     TEXT    NOT NULL,
    zone_version       TEXT    NOT NULL,
    version            INTEGER NOT NULL,
    lock_delay_ns      INTEGER NOT NULL DEFAULT 0,
    delayed_for        TEXT    NOT NULL DEFAULT '', -- who may come back to a resource that is kept closed
    parent             TEXT, -- what the lease was derived from
    delegation         TEXT, -- JSON: scope, budget, ancestors, spent, delegated, orphaned; NULL: a plain lease
    ticket             TEXT, -- JSON, while the lease is pending or not confirmed yet, or is to be upgraded
    -- The order in which those are served who wait; NULL for everybody else. '~': waits to be alone, before
    -- the queue.
    place              TEXT,
    glob_prefix        TEXT -- of a pattern, what it begins with up to its first special character
) STRICT;

-- The law that holds even against a stray SQL client: one exclusive lease per resource.
CREATE UNIQUE INDEX leases_exclusive ON leases (tenant, resource)
    WHERE status = 'active' AND mode = 'exclusive';
CREATE INDEX leases_shared ON leases (tenant, resource)
    WHERE status = 'active' AND mode = 'shared';
CREATE INDEX leases_by_holder ON leases (tenant, holder)
    WHERE status = 'active';
CREATE INDEX leases_by_expiry ON leases (tick_era, expires_tick)
    WHERE status = 'active';
CREATE INDEX leases_by_parent ON leases (parent)
    WHERE status = 'active' AND parent IS NOT NULL;
-- Ended leases with more children than were ended in the same commit.
CREATE INDEX leases_orphaned ON leases (lease_id)
    WHERE delegation IS NOT NULL AND delegation ->> '$.orphaned';
-- One queue per resource and mode, in order. All that have a place wait for something.
CREATE INDEX leases_waiting ON leases (tenant, resource, mode, place)
    WHERE place IS NOT NULL;
CREATE INDEX leases_waiting_of_holder ON leases (tenant, holder)
    WHERE place IS NOT NULL;
CREATE INDEX leases_waiting_by_expiry ON leases (tick_era, expires_tick)
    WHERE status = 'pending';
-- Patterns, by what they begin with: few of many can match what somebody claims.
CREATE INDEX leases_patterns_held ON leases (tenant, glob_prefix, mode, resource)
    WHERE glob_prefix IS NOT NULL AND status = 'active';
CREATE INDEX leases_patterns_awaited ON leases (tenant, glob_prefix, mode, place)
    WHERE glob_prefix IS NOT NULL AND place IS NOT NULL;

-- The records of all other families. A key is its parts, joined by char(1), and is compared byte by byte;
-- whole numbers in it are sixteen hexadecimal digits of n + 2^63.
CREATE TABLE documents (
    family   TEXT NOT NULL,
    key      TEXT NOT NULL,
    tenant   TEXT NOT NULL, -- the first part of the key
    due_era  INTEGER,
    due_tick INTEGER,       -- when time has something to do with it; NULL: never
    body     TEXT NOT NULL, -- JSON
    PRIMARY KEY (family, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX documents_by_due ON documents (due_era, due_tick)
    WHERE due_tick IS NOT NULL;

-- What can be lost without harm, such as heartbeats. No event, and not part of any replay.
CREATE TABLE soft_state (
    family TEXT    NOT NULL,
    key    TEXT    NOT NULL,
    value  BLOB    NOT NULL,
    at_ns  INTEGER NOT NULL,
    PRIMARY KEY (family, key)
) STRICT, WITHOUT ROWID;

-- From here on, views under the names that the contract of file leases gives them; times are Unix seconds.

-- Leases on paths, and on virtual names such as service://db. A revoked lease shows as released.
CREATE VIEW file_leases AS
SELECT
    lease_id AS id,
    resource AS file_path,
    holder AS agent_id,
    issued_at_ns / 1000000000 AS created_at,
    expires_at_ns / 1000000000 AS expires_at,
    ttl_ns / 1000000000 AS ttl_seconds,
    CASE status WHEN 'revoked' THEN 'released' ELSE status END AS status,
    renewal_count,
    max_renewals,
    max(issued_at_ns, coalesce(last_renewed_at_ns, 0), coalesce(terminated_at_ns, 0)) / 1000000000
        AS updated_at,
    tenant
FROM leases
WHERE (substr(resource, 1, 1) = '/' OR instr(resource, '://') > 0);

-- Other leases are in none of these, and cost nothing more.
CREATE INDEX file_leases_by_path ON leases
    (resource, CASE status WHEN 'revoked' THEN 'released' ELSE status END)
    WHERE (substr(resource, 1, 1) = '/' OR instr(resource, '://') > 0);
CREATE INDEX file_leases_by_agent ON leases
    (holder, CASE status WHEN 'revoked' THEN 'released' ELSE status END)
    WHERE (substr(resource, 1, 1) = '/' OR instr(resource, '://') > 0);
CREATE INDEX file_leases_by_expiry ON leases (expires_at_ns / 1000000000)
    WHERE (substr(resource, 1, 1) = '/' OR instr(resource, '://') > 0);

-- What happened to each lease, of any kind: acquired, renewed, released, expired, or failed, which is a wait
-- that ended without the lease. How often it had been renewed by then is counted back from its row, so that
-- it is right also where older history was pruned.
CREATE VIEW lease_history AS
WITH happened AS (
    SELECT position, '' AS suffix, type, at_ns, tenant, lease_id, resource, holder, body
    FROM events
    WHERE resource IS NOT NULL AND type IN (
        'lease.issued', 'lease.renewed', 'lease.released', 'lease.revoked', 'lease.expired', 'lease.left'
    )
    UNION ALL
    -- Which leases were renewed together only their entry says, so all of these are looked into.
    SELECT events.position, '.' || renewal.id, events.type, events.at_ns, events.tenant, renewal.key,
        (SELECT resource FROM leases WHERE leases.lease_id = renewal.key), events.holder, events.body
    FROM events INDEXED BY events_of_batches, json_each(events.body, '$.renewals') AS renewal
    WHERE events.type = 'lease.renewed' AND events.lease_id IS NULL
)
SELECT
    happened.position || happened.suffix AS id,
    happened.lease_id AS lease_id,
    happened.holder AS agent_id,
    happened.resource AS file_path,
    CASE happened.type
        WHEN 'lease.issued' THEN 'acquired'
        WHEN 'lease.renewed' THEN 'renewed'
        WHEN 'lease.expired' THEN 'expired'
        WHEN 'lease.left' THEN 'failed'
        ELSE 'released'
    END AS event_type,
    CASE happened.type
        WHEN 'lease.issued' THEN iif(happened.body ->> '$.claim_window_ns' > 0, 'pending', NULL)
        WHEN 'lease.left' THEN 'pending'
        ELSE 'active'
    END AS status_before,
    CASE happened.type
        WHEN 'lease.expired' THEN 'expired'
        WHEN 'lease.left' THEN 'failed'
        WHEN 'lease.released' THEN 'released'
        WHEN 'lease.revoked' THEN 'released'
        ELSE 'active'
    END AS status_after,
    max(0, coalesce(leases.renewal_count, 0) - (
        SELECT count(*) FROM events AS later
        WHERE later.resource = leases.resource AND later.type = 'lease.renewed'
            AND later.lease_id = leases.lease_id AND later.position > happened.position
    ) - (
        SELECT count(*) FROM events AS later
        WHERE later.tenant = leases.tenant AND later.holder = leases.holder
            AND later.type = 'lease.renewed' AND later.lease_id IS NULL
            AND later.position > happened.position
            AND json_type(later.body, '$.renewals."' || leases.lease_id || '"') IS NOT NULL
    )) AS renewal_count,
    happened.at_ns / 1000000000 AS event_at,
    happened.body ->> '$.reason' AS reason,
    happened.tenant AS tenant
FROM happened LEFT JOIN leases ON leases.lease_id = happened.lease_id;

-- Every setting that is in force: first as the catalog has it, then what single tenants and resources have.
CREATE VIEW lease_configs AS
WITH catalog (config_key, default_value, value_type, description, tenant) AS (VALUES
    ('default_ttl_seconds', '3600', 'int',
        'how long a file lease lasts if its request does not say', 'default'),
    ('max_renewals', '-1', 'int',
        'how often a file lease can be renewed if its request does not say; -1: no limit', 'default'),
    ('acquisition_timeout_ms', '30000', 'int',
        'how long a blocking request waits for a file if it does not say', 'default'),
    ('blocking_mode_enabled', 'true', 'bool',
        'whether a request may wait for a file; if not, it is answered at once', 'default'),
    ('auto_expire_enabled', 'true', 'bool',
        'whether expiries are recorded in the background; expired leases never block anybody', ''),
    ('cleanup_interval_seconds', '300', 'int',
        'how often every process that is connected records expiries in the background', ''),
    ('keep_history', 'true', 'bool',
        'whether history is kept for history_retention_days; if not, for an hour', ''),
    ('history_retention_days', '30', 'int',
        'how many days of history are kept; older entries are pruned once a day', '')
),
changed AS (
    SELECT key, tenant, body ->> '$.key' AS config_key, coalesce(body ->> '$.resource', '') AS resource_id,
        body -> '$.value' AS config_value, (body ->> '$.changed_at_ns') / 1000000000 AS changed_at
    FROM documents WHERE family = 'settings'
),
made AS (SELECT applied_at FROM migrations WHERE version = 1)
SELECT
    catalog.config_key AS id,
    catalog.config_key AS config_key,
    coalesce(changed.config_value, catalog.default_value) AS config_value,
    catalog.value_type AS value_type,
    catalog.description AS description,
    'global' AS scope,
    NULL AS resource_id,
    0 AS requires_restart,
    made.applied_at AS created_at,
    coalesce(changed.changed_at, made.applied_at) AS updated_at,
    catalog.tenant AS tenant
FROM catalog, made LEFT JOIN changed
    ON changed.key = catalog.tenant || char(1) || char(1) || catalog.config_key
UNION ALL
SELECT
    replace(changed.key, char(1), '/'), changed.config_key, changed.config_value, catalog.value_type,
    catalog.description, iif(changed.resource_id = '', 'global', 'resource'),
    nullif(changed.resource_id, ''), 0, changed.changed_at, changed.changed_at, changed.tenant
FROM changed JOIN catalog ON catalog.config_key = changed.config_key
WHERE changed.resource_id <> '' OR changed.tenant <> catalog.tenant;

CREATE TRIGGER lease_configs_are_changed_by_command INSTEAD OF UPDATE ON lease_configs BEGIN
    SELECT RAISE(ABORT, 'settings are not changed by SQL: use `leasehold config set KEY VALUE`');
END;
CREATE TRIGGER lease_configs_are_added_by_command INSTEAD OF INSERT ON lease_configs BEGIN
    SELECT RAISE(ABORT, 'settings are not changed by SQL: use `leasehold config set KEY VALUE`');
END;
CREATE TRIGGER lease_configs_are_removed_by_command INSTEAD OF DELETE ON lease_configs BEGIN
    SELECT RAISE(ABORT, 'settings are not changed by SQL: use `leasehold config reset KEY`');
END;

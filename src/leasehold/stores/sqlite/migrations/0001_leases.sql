-- The ledger, the leases it describes, and the registrar's own record.

-- One row: the present epoch and era. How far tokens, time and the ledger have come in it is in the last
-- event, so that an ordinary commit need not write here.
CREATE TABLE authority (
    only_row       INTEGER PRIMARY KEY CHECK (only_row = 1),
    epoch          INTEGER NOT NULL,
    era            INTEGER NOT NULL,
    era_first_tick INTEGER NOT NULL,
    boot_id        TEXT    NOT NULL,
    identity       TEXT    NOT NULL,
    rate           INTEGER NOT NULL
) STRICT;

-- Ended runs of the clock, so that leases from before a reboot can be given what they had left.
CREATE TABLE eras (
    number     INTEGER PRIMARY KEY,
    boot_id    TEXT    NOT NULL,
    first_tick INTEGER NOT NULL,
    last_tick  INTEGER NOT NULL,
    rate       INTEGER NOT NULL
) STRICT;

-- The history: append-only, each entry's hash covers the one before it. The columns beside `body` repeat
-- parts of it, for queries; `body` is what counts.
CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    type     TEXT    NOT NULL,
    at_ns    INTEGER NOT NULL,
    tenant   TEXT,
    lease_id TEXT,
    resource TEXT,
    holder   TEXT,
    token    INTEGER,
    request  TEXT,
    tick     INTEGER NOT NULL,
    counter  INTEGER NOT NULL, -- how many tokens of its epoch had been given out when it was committed
    body     TEXT    NOT NULL,
    hash     BLOB    NOT NULL
) STRICT;

-- Grants and renewals only: an ending need not be remembered, because who ends a lease twice finds it ended.
CREATE INDEX events_by_request  ON events (request)
    WHERE request IS NOT NULL AND type IN ('lease.issued', 'lease.renewed');
CREATE INDEX events_by_resource ON events (resource)       WHERE resource IS NOT NULL;
-- Renewals of several leases in one entry; finding one of them means looking into its holder's few.
CREATE INDEX events_of_batches  ON events (tenant, holder) WHERE type = 'lease.renewed' AND lease_id IS NULL;

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
    version            INTEGER NOT NULL
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

-- What a holder reports about its work. Soft state: no event, not part of any replay.
CREATE TABLE heartbeats (
    lease_id   TEXT    NOT NULL PRIMARY KEY,
    at_ns      INTEGER NOT NULL,
    statistics TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- The ledger, the registrar's own record, and the records of all families.

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

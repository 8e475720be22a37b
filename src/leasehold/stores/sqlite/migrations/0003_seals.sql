-- Seals: who vouches for the ledger.

-- The signature over a commit, in its last entry: eight bytes that name the key, then 64 of Ed25519.
ALTER TABLE events ADD COLUMN seal BLOB;

-- How often a key was enrolled or retired, so that a writer notices without reading all keys.
ALTER TABLE authority ADD COLUMN key_changes INTEGER NOT NULL DEFAULT 0;

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

-- What stands for entries of the ledger that were pruned.

-- One row. `state` is everything that the removed entries had led to, as JSON; the entry at `position` has its
-- digest.
CREATE TABLE checkpoints (
    position INTEGER PRIMARY KEY,
    state    BLOB NOT NULL
) STRICT;

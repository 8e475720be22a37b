"""Is the history whole and rightly sealed, do the tables say what it says, and is the store itself undamaged?

An audit first has the store look for defects of its own, unless it is told to skip that. Then it walks the
ledger from its first entry on, checks every entry and every seal, folds them into the state they describe,
and compares that with the tables, record by record. It reads one snapshot, so it can run while others write.
`rebuild` rebuilds the tables from a ledger that has nothing wrong with it.
"""

from collections.abc import Collection

import msgspec

from leasehold.engine.differences import differences
from leasehold.engine.port import Head, Progress, Readable, Snapshot, Store
from leasehold.engine.recording import refuse_unknown_families
from leasehold.engine.retrying import undisturbed
from leasehold.engine.signing import key_id_of
from leasehold.engine.walking import Walk
from leasehold.errors import LedgerBroken
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.chain import BrokenChain
from leasehold.kernel.ledger.keys import Key
from leasehold.kernel.ledger.state import State, invariants

_PROBLEMS_SHOWN = 20

_WALK_PER_STORAGE = 10
"""About how many times longer it takes to walk the ledger than to look for defects of the store."""


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """What an audit found. No problems is good news."""

    entries: int
    """Up to which entry all are right, from the first on, or from a checkpoint that stands for it."""
    pruned: int
    """The last entry that was pruned; 0 if none was."""
    leases: int
    head: Head
    """The last entry that is right."""
    sealed: int
    """The last entry that a seal covers."""
    unsealed_before: int
    """The last entry from before this ledger had seals; 0 if it had them from the start."""
    keys: list[Key]
    first_bad: int | None
    """The first entry that is not right."""
    storage_checked: bool
    """Whether the store itself was looked at as well, and not only what it keeps."""
    problems: list[str]


def audit(
    store: Readable,
    progress: Progress | None = None,
    *,
    expected: Head | None = None,
    trusted: Collection[str] = (),
    first_key: str | None = None,
    skip_storage: bool = False,
) -> Audit:
    """Audit a store, or a copy of one; `progress` is told how much of how much is done.

    `expected` is a head that was kept elsewhere: the ledger must have it, or have gone on from it. `trusted`
    names keys that are good although no admitted key vouches for them, and `first_key` the one that must
    be the first. `skip_storage` leaves out the look for defects of the store itself.
    """
    with store.snapshot() as snapshot:
        walk = Walk(snapshot.families, expected)
        problems: list[str] = []
        first_bad: int | None = None
        if not skip_storage:
            in_storage, progress = _shares(progress, snapshot.head.position)
            problems += snapshot.defects(in_storage)
        try:
            walk.go(snapshot, progress)
            _check_trust(walk, trusted, first_key)
        except BrokenChain as error:
            # Nothing more is said of the state: it may be one from the middle of a commit, which never was.
            first_bad = error.position
            problems.append(str(error))
        else:
            problems += _differences(walk, snapshot)
            problems += invariants(walk.state, snapshot.families)
        return Audit(
            entries=walk.head.position,
            pruned=walk.began.position if walk.began is not None else 0,
            leases=len(walk.state.of(LEASE)),
            head=walk.head,
            sealed=walk.sealed,
            unsealed_before=walk.unsealed_before if walk.sealed else walk.head.position,
            keys=list(walk.state.keys.values()),
            first_bad=first_bad,
            storage_checked=not skip_storage,
            problems=problems[:_PROBLEMS_SHOWN],
        )


def _shares(progress: Progress | None, entries: int) -> tuple[Progress | None, Progress | None]:
    """Return what tells the progress of the look at the store, and of the walk after it, as one."""
    if progress is None:
        return None, None
    share = entries // _WALK_PER_STORAGE

    def in_storage(done: int, total: int) -> None:
        progress(share * done // total, share + entries)

    def in_walk(done: int, total: int) -> None:
        progress(share + done, share + total)

    return in_storage, in_walk


def rebuild(store: Store, progress: Progress | None = None) -> State:
    """Rebuild the tables from the ledger, in one transaction; raise LedgerBroken if it is not right."""
    return undisturbed(lambda: _rebuild(store, progress))


def _rebuild(store: Store, progress: Progress | None) -> State:
    with store.write(durable=True) as transaction:
        walk = Walk(transaction.families)
        try:
            walk.go(transaction, progress)
        except BrokenChain as error:
            # An entry that nobody here can read is not a broken one.
            refuse_unknown_families(walk.state.authority, transaction.families)
            raise LedgerBroken(
                f"{error}; the tables were left alone. Restore a backup with `leasehold restore`",
                position=error.position,
            ) from error
        refuse_unknown_families(walk.state.authority, transaction.families)
        if walk.state.authority is None:
            raise LedgerBroken("the ledger is empty, so there is nothing to rebuild the tables from")
        transaction.rebuild(walk.state)
    return walk.state


def _check_trust(walk: Walk, trusted: Collection[str], first_key: str | None) -> None:
    """Refuse keys that nobody vouches for, and a first key that is not the one it should be."""
    for place, key in enumerate(walk.state.keys.values()):
        key_id, position = key_id_of(key.public_key), walk.enrolled_at[key.public_key]
        if place == 0 and first_key not in (None, key_id):
            raise BrokenChain(position, f"pins {key_id} as the first key, and it should be {first_key}")
        if not key.is_vouched_for and key_id not in trusted:
            raise BrokenChain(
                position,
                f"enrols {key_id}, which no admitted key vouches for; if you know it, verify with "
                f"`--trust {key_id}`, or have `leasehold keys vouch {key_id}` run by who has an admitted key",
            )
    if first_key is not None and not walk.state.keys:
        raise BrokenChain(1, f"is not sealed, and should be with {first_key}")


def _differences(walk: Walk, snapshot: Snapshot) -> list[str]:
    """Return where the tables say something else than the ledger, or nothing that can be read."""
    try:
        tables = snapshot.state()
    except (LookupError, TypeError, ValueError, msgspec.MsgspecError) as error:
        return [f"a row of the tables cannot be read: {error}"]
    found: list[str] = []
    if walk.head != snapshot.head:
        found.append(f"the ledger ends at entry {walk.head.position}, and should at {snapshot.head.position}")
    return [*found, *differences(tables, walk.state)]

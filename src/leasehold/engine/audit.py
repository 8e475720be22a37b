"""Is the history whole, and do the tables say what it says?

An audit reads the ledger from its first entry on, checks that each entry rightly follows the one before,
folds them into the state they describe, and compares that with the tables, record by record. It reads one
snapshot, so it can run while others write.
"""

from collections.abc import Callable, Iterator

import msgspec

from leasehold.engine.port import EntryQuery, Head, LeaseQuery, Snapshot, Store
from leasehold.kernel.chain import BrokenChain, Entry, check_entry
from leasehold.kernel.events import DecodeError
from leasehold.kernel.evolve import IllegalTransition
from leasehold.kernel.invariants import invariants
from leasehold.kernel.lease import Lease
from leasehold.kernel.replay import State
from leasehold.kernel.view import Keys

_PAGE = 1_000
_PROBLEMS_SHOWN = 20


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """What an audit found. No problems is good news."""

    entries: int
    leases: int
    problems: list[str]


def audit(store: Store, progress: Callable[[int, int], None] | None = None) -> Audit:
    """Audit a store; `progress` is told how many entries of how many are done."""
    with store.snapshot() as snapshot:
        state = State()
        last: Entry | None = None
        problems: list[str] = []
        try:
            for entry in _entries(snapshot):
                check_entry(last, entry)
                state.apply(entry.event)
                last = entry
                if progress is not None and entry.position % _PAGE == 0:
                    progress(entry.position, snapshot.head.position)
        except (BrokenChain, DecodeError, IllegalTransition, ValueError) as error:
            problems.append(f"after entry {last.position if last else 0}: {error}")
        else:
            problems += _differences(state, last, snapshot)
        problems += invariants(state)
        return Audit(
            entries=last.position if last else 0,
            leases=len(state.leases),
            problems=problems[:_PROBLEMS_SHOWN],
        )


def _entries(snapshot: Snapshot) -> Iterator[Entry]:
    after, limit = 0, _PAGE
    while True:
        try:
            page = snapshot.entries(EntryQuery(after=after, limit=limit))
        except DecodeError:
            if limit == 1:
                raise
            limit = 1  # One unreadable entry hides its whole page: go on singly, to find out which it is.
            continue
        if not page:
            return
        yield from page
        after = page[-1].position


def _differences(state: State, last: Entry | None, snapshot: Snapshot) -> list[str]:
    """Return where the tables say something else than the ledger, or nothing that can be read."""
    found: list[str] = []
    try:
        found.extend(_compare(state, last, snapshot))
    except (LookupError, ValueError, msgspec.MsgspecError) as error:
        found.append(f"a row of the tables cannot be read: {error!r}")
    return found


def _compare(state: State, last: Entry | None, snapshot: Snapshot) -> Iterator[str]:
    head = Head() if last is None else Head(position=last.position, hash=last.hash)
    if head != snapshot.head:
        yield f"the ledger ends at entry {head.position}, and should at {snapshot.head.position}"
    if state.authority != snapshot.authority:
        yield f"the registrar's record is {snapshot.authority}, the ledger says {state.authority}"
    eras = snapshot.read(Keys(eras=set(state.eras))).eras
    if eras != state.eras:
        yield f"the ended eras are {eras}, the ledger says {state.eras}"
    seen: set[str] = set()
    for lease in _all_leases(snapshot):
        seen.add(lease.lease_id)
        expected = state.leases.get(lease.lease_id)
        if lease != expected:
            yield f"lease {lease.lease_id} is {lease}, the ledger says {expected}"
    for lease_id in state.leases.keys() - seen:
        yield f"lease {lease_id} is missing from the tables"


def _all_leases(snapshot: Snapshot) -> Iterator[Lease]:
    after: str | None = None
    while page := snapshot.leases(LeaseQuery(after=after, limit=_PAGE)):
        yield from page
        after = page[-1].lease_id

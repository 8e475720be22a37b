"""Counting what happened, and what stands.

What happened is counted along the ledger. How far the counting has come is soft state, so that each tally
reads only what is new, and the counts go on after history was pruned. If soft state is lost, counting begins
anew with what history there is: to a monitoring system, a counter that was reset.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

import msgspec

from leasehold.engine.port import EntryQuery, LeaseQuery, Snapshot, SoftState
from leasehold.engine.questions import Question
from leasehold.engine.registrar import Registrar
from leasehold.engine.status import statuses_of
from leasehold.kernel.lease.events import CANCELLED, LeaseLeft, LeaseRenewed
from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.ledger.commands import Right
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND

_SOFT = "metrics"
_PAGE = 10_000
HOLDERS_MAXIMUM = 100
"""How many holders are told apart: those with the most leases. All others are counted together."""
OTHERS = ""
"""The name of all others; no holder can have it."""

_KINDS = {
    "lease.issued": "acquired",
    "lease.released": "released",
    "lease.expired": "expired",
    "lease.revoked": "revoked",
    "lease.queued": "waited",
}


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """What one holder has."""

    leases: int
    longest_held: float
    """Seconds since the oldest of its leases was granted."""


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one tenant."""

    holders: dict[str, Holding]
    """Who holds leases now, by name; at most `HOLDERS_MAXIMUM` and `OTHERS`."""
    waiting: int
    """How many claims wait now."""
    happened: dict[str, int]
    """How often it happened: acquired, renewed, released, expired, revoked, waited, timed_out, gave_up."""


class TakeTally(Question[Tally], frozen=True, kw_only=True, tag="take_tally"):
    """Ask for the counts of a tenant."""

    right = Right.LOOK


class _Counted(msgspec.Struct, frozen=True, kw_only=True):
    """How far counting has come."""

    position: int = 0
    counts: dict[str, int] = {}


def take_tally(registrar: Registrar, question: TakeTally, snapshot: Snapshot) -> Callable[[], Tally]:
    """Count on from where the last tally ended, and look at what stands.

    That is soft state, which nobody can read who is looking at the store: so another look comes after it.
    """
    del snapshot
    tenant, store = question.one_tenant, registrar.store

    def tally() -> Tally:
        last = _last(store.soft, tenant)
        with store.snapshot() as latest:
            counted = _count_on(latest, tenant, last)
            holders, waiting = _standing(latest, tenant)
        store.soft.put(_SOFT, {tenant: msgspec.json.encode(counted)})
        return Tally(holders=holders, waiting=waiting, happened=counted.counts)

    return tally


def _last(soft: SoftState, tenant: str) -> _Counted:
    try:
        return msgspec.json.decode(soft.get(_SOFT).get(tenant, b"{}"), type=_Counted)
    except msgspec.DecodeError:  # Nobody vouches for soft state.
        return _Counted()


def _count_on(snapshot: Snapshot, tenant: str, last: _Counted) -> _Counted:
    """Count what happened since then; from the beginning if the ledger is another one, or was put back."""
    end = snapshot.head.position
    if last.position > end:
        last = _Counted()
    counts = Counter(dict.fromkeys((*_KINDS.values(), "renewed", "timed_out", "gave_up"), 0))
    counts.update(last.counts)
    after = last.position
    while entries := snapshot.entries(EntryQuery(after=after, limit=_PAGE, tenant=tenant, family="lease")):
        for entry in entries:
            kind, number = _counted_as(entry.event)
            if kind is not None:
                counts[kind] += number
        after = entries[-1].position
    return _Counted(position=end, counts=dict(counts))


def _counted_as(event: Event) -> tuple[str | None, int]:
    """Return what an event is counted as, and for how many leases."""
    match event:
        case LeaseRenewed():
            return "renewed", len(event.renewals)
        case LeaseLeft():
            return ("timed_out" if event.reason == CANCELLED else "gave_up"), 1
        case _:
            return _KINDS.get(event.type), 1


def _standing(snapshot: Snapshot, tenant: str) -> tuple[dict[str, Holding], int]:
    """Return who holds leases at this moment, and how many claims wait."""
    leases: Counter[str] = Counter()
    oldest: defaultdict[str, int] = defaultdict(lambda: 1 << 63)
    waiting = 0
    for holder, issued_ns, state in _live(snapshot, tenant):
        if state is LeaseState.PENDING:
            waiting += 1
            continue
        leases[holder] += 1
        oldest[holder] = min(oldest[holder], issued_ns)
    for holder, number in leases.most_common()[HOLDERS_MAXIMUM:]:
        leases[OTHERS] += number
        oldest[OTHERS] = min(oldest[OTHERS], oldest[holder])
        del leases[holder]
    wall_ns = snapshot.reading().wall_ns
    return {
        holder: Holding(leases=number, longest_held=max(0, wall_ns - oldest[holder]) / NANOSECONDS_PER_SECOND)
        for holder, number in leases.items()
    }, waiting


def _live(snapshot: Snapshot, tenant: str) -> Iterator[tuple[str, int, LeaseState]]:
    """Yield the holder, the time of the grant and the state of everything that stands or waits."""
    states = (LeaseState.ACTIVE, LeaseState.PENDING)
    query = LeaseQuery(tenant=tenant, states=states, limit=_PAGE)
    while found := snapshot.leases(query):
        for status in statuses_of(found, snapshot):
            if status.is_live:
                yield status.lease.holder, status.lease.issued_at_ns, status.lease.state
        query = LeaseQuery(tenant=tenant, states=states, limit=_PAGE, after=found[-1].lease_id)

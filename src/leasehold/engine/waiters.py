"""Who waits for a resource, since when, and for how long it may be."""

import msgspec

from leasehold.engine.registrar import LeaseStatus, Registrar
from leasehold.kernel.lease.model import Lease, Mode
from leasehold.kernel.lease.paths import related
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND


class Waiter(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that waits, and its place in the queue."""

    lease: Lease
    position: int
    """1: next in line."""
    waited: float
    """Seconds since it joined the queue, by the wall clock of this machine."""
    estimate: float
    """Seconds until its turn comes if everybody ahead keeps its lease for its TTL, and nobody renews or
    releases. Sharers have theirs side by side."""


def waiters(registrar: Registrar, tenant: str, resource: str, wall_ns: int) -> list[Waiter]:
    """Return who waits for a resource, first in line first; for a path, also above and below it."""
    held, waiting = registrar.crowd(tenant, resource)
    ahead = _Ahead(held)
    return [
        _waiter(status, position, ahead.until_turn_of(status.lease), wall_ns)
        for position, status in enumerate(waiting, 1)
    ]


class _Ahead:
    """How long those take who come first: sharers side by side, all others one after the other."""

    def __init__(self, held: list[LeaseStatus]) -> None:
        self._held = held
        self._ends: dict[str, dict[Mode, float]] = {}
        """By resource and mode: when the last who waits for it ahead would be done."""

    def until_turn_of(self, wanted: Lease) -> float:
        """Return in how many seconds it is the turn of the next in line."""
        seconds = [
            status.expires_in
            for status in self._held
            if status.lease.holder != wanted.holder and _conflict(status.lease, wanted)
        ]
        for resource, ends in self._ends.items():
            if related(resource, wanted.resource):
                seconds += [end for mode, end in ends.items() if mode.conflicts_with(wanted.mode)]
        start = max(seconds, default=0.0)
        here = self._ends.setdefault(wanted.resource, {})
        end = start + wanted.ttl_ns / NANOSECONDS_PER_SECOND
        here[wanted.mode] = max(end, here.get(wanted.mode, 0.0))
        return start


def _conflict(lease: Lease, wanted: Lease) -> bool:
    return lease.mode.conflicts_with(wanted.mode) and related(lease.resource, wanted.resource)


def _waiter(status: LeaseStatus, position: int, ahead: float, wall_ns: int) -> Waiter:
    lease = status.lease
    since_ns = lease.issued_at_ns if lease.ticket is None else lease.ticket.since_ns
    return Waiter(
        lease=lease,
        position=position,
        waited=max(0, wall_ns - since_ns) / NANOSECONDS_PER_SECOND,
        estimate=ahead,
    )

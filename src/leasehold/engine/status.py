"""How leases stand at one moment, for those who only look.

What time, and the ends of ancestors, have done to a lease counts, whether anybody has recorded it or not.
"""

from typing import Any

from leasehold.engine.port import Snapshot
from leasehold.engine.questions import LeaseStatus, lasting
from leasehold.errors import InvalidInput
from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.family import lease_part
from leasehold.kernel.lease.globs import BadPattern, parsed
from leasehold.kernel.lease.lineage import standing
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.paths import is_path
from leasehold.kernel.lease.records import LEASE, LeaseFound, lease_keys
from leasehold.kernel.lease.ticket import CLAIM_WINDOW_NS
from leasehold.kernel.ledger.authority import ClockReading, now_of, observe
from leasehold.kernel.ledger.records import Missing
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND, Now
from leasehold.kernel.ledger.view import View


def won(snapshot: Snapshot, lease_ids: tuple[str, ...]) -> Granted | None:
    """Return what a waiting claim was granted, as of a snapshot; None if nothing, or if it had better ask.

    It lasts for the rest of the claim window, unless the claim is made again, or the lease is renewed.
    """
    if observe(snapshot.authority, snapshot.reading()) is not None:
        return None  # The clock or the store is not what it was.
    found = list(read_leases(snapshot, keys=set(lease_ids)).records.values())
    statuses = {status.lease.lease_id: status for status in statuses_of(found, snapshot)}
    granted = [statuses[lease_id] for lease_id in lease_ids if lease_id in statuses]
    if len(granted) < len(lease_ids) or not all(_can_wait_for_confirmation(status) for status in granted):
        return None
    first, *others = (status.lease for status in granted)
    left_ns = int(min(status.expires_in for status in granted) * NANOSECONDS_PER_SECOND)
    return Granted(lease=first, expires_in_ns=left_ns, also=tuple(others))


def _can_wait_for_confirmation(status: LeaseStatus) -> bool:
    """Say whether a lease was just won by a waiter, who may act on it, and has time enough to confirm it.

    One with a lock-delay must not be acted on before: what nobody confirmed leaves no delay behind.
    """
    lease = status.lease
    if not lease.is_unconfirmed or lease.lock_delay_ns:
        return False
    return status.expires_in * NANOSECONDS_PER_SECOND > min(CLAIM_WINDOW_NS, lease.ttl_ns) // 2


def read_leases(snapshot: Snapshot, **wanted: Any) -> LeaseFound:
    """Return what a store knows of leases."""
    found: LeaseFound = snapshot.read(lease_keys(**wanted)).families[LEASE]
    return found


def tree_around(tenant: str, resource: str, limit: int) -> set[tuple[str, str, int]]:
    """Return what to read around a resource, if it is a path; refuse a pattern that cannot be read."""
    if not is_path(resource):
        return set()
    try:
        parsed(resource)
    except BadPattern as error:
        raise InvalidInput(f"resource is a pattern that cannot be read: {error}", field="resource") from None
    return {(tenant, resource, limit)}


def live(statuses: list[LeaseStatus]) -> list[LeaseStatus]:
    """Return those that stand, oldest token first."""
    return sorted((status for status in statuses if status.is_live), key=lambda status: status.lease.token)


def status_of(lease: Lease, snapshot: Snapshot, reading: ClockReading | None = None) -> LeaseStatus:
    """Say how one lease stands by what time, and the ends of its ancestors, have done to it.

    It does not matter whether anybody has recorded that. `reading`: the time, if it was read already.
    """
    authority = snapshot.authority
    if authority is None:
        return LeaseStatus(lease=lease, expires_in=0.0)
    now = now_of(authority, reading or snapshot.reading())
    expires = lease.expires_tick
    if lease.delegation is None and expires is not None and expires.comparable(now.tick):
        # By far the most usual look, and nothing else has to be known for it.
        return lasting(lease, lease.ticks_remaining(now.tick))
    return _status_of(lease, snapshot, View(snapshot.families, authority), now)


def statuses_of(leases: list[Lease], snapshot: Snapshot) -> list[LeaseStatus]:
    """Say how leases stand at one moment."""
    authority = snapshot.authority
    if authority is None or len(leases) == 1:
        return [status_of(lease, snapshot) for lease in leases]
    now = now_of(authority, snapshot.reading())
    view = View(snapshot.families, authority)
    return [_status_of(lease, snapshot, view, now) for lease in leases]


def _status_of(lease: Lease, snapshot: Snapshot, view: View, now: Now) -> LeaseStatus:
    while True:
        try:
            lease_now, left_ns = standing(lease, lease_part(view), now)
            return lasting(lease_now, left_ns)
        except Missing as missing:
            view.load(missing.keys, snapshot.read(missing.keys))

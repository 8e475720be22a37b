"""Renewing leases.

A renewal extends or fails; it never resurrects and never shortens. The new time counts from now, not from
the old expiry. The leases of one renewal stand or fall each on its own, and all that were extended share
one event. A retry of a renewal that extended anything extends nothing more. The first renewal of a lease
that a waiter has won confirms it, and does not count as one.
"""

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from leasehold.kernel.lease.answers import Renewal, Renewed
from leasehold.kernel.lease.commands import Renew
from leasehold.kernel.lease.decision import Decision, Usable, about, remembered, usable
from leasehold.kernel.lease.events import LeaseEvent, LeaseRenewed
from leasehold.kernel.lease.evolve import evolve
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Now


class _Extension(msgspec.Struct, frozen=True, gc=False):
    """A lease that stays, what time did to it first, and the tick value it is extended to (None: not)."""

    lease: Lease
    aged: list[LeaseEvent]
    expires_value: int | None


def renew(command: Renew, view: LeaseView, now: Now) -> Decision:
    """Extend what can be extended, and answer for each lease in the order asked."""
    repeated = remembered(command.request_key, view, now) is not None
    plan: dict[str, _Extension | Refusal] = {}
    events: list[LeaseEvent] = []
    renewals: dict[str, int] = {}
    lease_ids = dict.fromkeys(command.lease_ids)
    for lease_id in _parents_first(lease_ids, view) if view.delegating else lease_ids:
        one = plan[lease_id] = _extend(lease_id, command, view, now, renewals, repeated=repeated)
        if isinstance(one, _Extension):
            events += one.aged
            if one.expires_value is not None:
                renewals[lease_id] = one.expires_value
    renewed = _renewed(plan, renewals, command, now) if renewals else None
    if renewed is not None:
        events.append(renewed)
    leases: list[Lease] = []
    outcomes: dict[str, Renewal | Refusal] = {}
    for lease_id, one in plan.items():
        if isinstance(one, Refusal):
            outcomes[lease_id] = one
            continue
        lease, expires_value = one.lease, one.expires_value
        if renewed is not None and expires_value is not None:
            lease = evolve(lease, renewed)
            leases.append(lease)
            expires_in_ns = expires_value - now.tick.value
        else:
            if one.aged:
                leases.append(lease)
            expires_in_ns = lease.ticks_remaining(now.tick)
        outcomes[lease_id] = Renewal(lease=lease, expires_in_ns=expires_in_ns)
    answer = Renewed(outcomes=tuple([outcomes[lease_id] for lease_id in command.lease_ids]))
    return Decision(events=events, leases=leases, answer=answer)


def _parents_first(lease_ids: Iterable[str], view: LeaseView) -> list[str]:
    """Order leases so that a child that is renewed with its parent can have the parent's new time."""

    def ancestors(lease_id: str) -> int:
        lease = view.lease(lease_id)
        return 0 if lease is None or lease.delegation is None else len(lease.delegation.ancestors)

    return sorted(lease_ids, key=ancestors)


def _extend(
    lease_id: str, command: Renew, view: LeaseView, now: Now, extended: dict[str, int], *, repeated: bool
) -> _Extension | Refusal:
    found = usable(lease_id, command.tenant, command.holder, view, now, extended=extended)
    if isinstance(found, Refusal):
        return found
    lease = found.lease
    if repeated:
        return _Extension(lease, found.aged, None)
    if 0 <= lease.max_renewals <= lease.renewal_count and not lease.is_unconfirmed:
        return about(RefusalCode.RENEWALS_EXHAUSTED, lease, now)
    ttl_ns = _own_ttl_ns(found, now) if command.ttl_ns is None else command.ttl_ns
    expires_value = now.tick.value + ttl_ns
    if found.highest is not None and expires_value > found.highest:
        refusal = about(RefusalCode.OUTLIVES_PARENT, lease, now, field="ttl")
        return replace(refusal, expires_in_ns=found.highest - now.tick.value)
    expires = lease.expires_tick
    assert expires is not None, "a lease that can be used has time left, on the present clock"
    before = expires.value
    if expires_value < before:
        return about(RefusalCode.RENEWAL_DOES_NOT_EXTEND, lease, now)
    # A clock that stood still cannot extend anything, and that is no reason to lose a lease.
    return _Extension(lease, found.aged, expires_value if expires_value > before else None)


def _own_ttl_ns(found: Usable, now: Now) -> int:
    """Return what a lease gets that asks for its own TTL again: a child no more than its parent has left."""
    lease = found.lease
    if found.highest is None or lease.delegation is None:
        return lease.ttl_ns
    return min(max(lease.ttl_ns, lease.delegation.ttl_ns), found.highest - now.tick.value)


def _renewed(
    plan: dict[str, _Extension | Refusal], renewals: dict[str, int], command: Renew, now: Now
) -> LeaseRenewed:
    only = plan[next(iter(renewals))] if len(renewals) == 1 else None
    lease = only.lease if isinstance(only, _Extension) else None
    return LeaseRenewed(
        tick=now.tick,
        at_ns=now.wall_ns,
        actor=command.holder,
        request=command.request_key,
        tenant=command.tenant,
        holder=command.holder,
        renewals=renewals,
        resource=None if lease is None else lease.resource,
        token=None if lease is None else lease.token,
    )

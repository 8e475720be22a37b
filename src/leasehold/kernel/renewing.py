"""Renewing leases.

A renewal extends or fails; it never resurrects and never shortens. The new time counts from now, not from
the old expiry. The leases of one renewal stand or fall each on its own, and all that were extended share
one event. A retry of a renewal that extended anything extends nothing more.
"""

import msgspec

from leasehold.kernel.answers import Renewal, Renewed
from leasehold.kernel.commands import Renew
from leasehold.kernel.decision import Decision, about, age, not_found, remembered
from leasehold.kernel.events import LeaseEvent, LeaseRenewed
from leasehold.kernel.evolve import evolve
from leasehold.kernel.lease import Lease, LeaseState
from leasehold.kernel.refusals import Refusal, RefusalCode
from leasehold.kernel.tick import Now
from leasehold.kernel.view import View


class _Extension(msgspec.Struct, frozen=True, gc=False):
    """A lease that stays, what time did to it first, and the tick value it is extended to (None: not)."""

    lease: Lease
    aged: list[LeaseEvent]
    expires_value: int | None


def renew(command: Renew, view: View, now: Now) -> Decision:
    """Extend what can be extended, and answer for each lease in the order asked."""
    repeated = remembered(command.request_key, view, now) is not None
    plan: dict[str, _Extension | Refusal] = {}
    events: list[LeaseEvent] = []
    for lease_id in dict.fromkeys(command.lease_ids):
        one = plan[lease_id] = _extend(lease_id, command, view, now, repeated=repeated)
        if isinstance(one, _Extension):
            events += one.aged
    renewed = _renewed(plan, command, now)
    if renewed is not None:
        events.append(renewed)
    leases: list[Lease] = []
    outcomes: dict[str, Renewal | Refusal] = {}
    for lease_id, one in plan.items():
        if isinstance(one, Refusal):
            outcomes[lease_id] = one
            continue
        lease = one.lease
        if renewed is not None and one.expires_value is not None:
            lease = evolve(lease, renewed)
        if lease is not view.lease(lease_id):
            leases.append(lease)
        outcomes[lease_id] = Renewal(lease=lease, expires_in_ns=lease.ticks_remaining(now.tick))
    answer = Renewed(outcomes=tuple([outcomes[lease_id] for lease_id in command.lease_ids]))
    return Decision(events=events, leases=leases, answer=answer)


def _extend(lease_id: str, command: Renew, view: View, now: Now, *, repeated: bool) -> _Extension | Refusal:
    lease = view.lease(lease_id)
    if lease is None or lease.tenant != command.tenant:
        return not_found(lease_id)
    if lease.is_terminal:
        return about(RefusalCode.LEASE_TERMINAL, lease, now)
    if lease.holder != command.holder:
        return about(RefusalCode.NOT_HOLDER, lease, now)
    aged, lease = age(lease, view, now)
    if lease.state is LeaseState.EXPIRED:
        return about(RefusalCode.LEASE_EXPIRED, lease, now)
    if lease.is_terminal:
        return about(RefusalCode.LEASE_TERMINAL, lease, now)
    expires = lease.expires_tick
    if expires is None or not expires.comparable(now.tick):
        return about(RefusalCode.UNKNOWN_TIME, lease, now)
    if repeated:
        return _Extension(lease, aged, None)
    if 0 <= lease.max_renewals <= lease.renewal_count:
        return about(RefusalCode.RENEWALS_EXHAUSTED, lease, now)
    expires_value = now.tick.value + (lease.ttl_ns if command.ttl_ns is None else command.ttl_ns)
    if expires_value < expires.value:
        return about(RefusalCode.RENEWAL_DOES_NOT_EXTEND, lease, now)
    # A clock that stood still cannot extend anything, and that is no reason to lose a lease.
    return _Extension(lease, aged, expires_value if expires_value > expires.value else None)


def _renewed(plan: dict[str, _Extension | Refusal], command: Renew, now: Now) -> LeaseRenewed | None:
    renewals = {
        lease_id: one.expires_value
        for lease_id, one in plan.items()
        if isinstance(one, _Extension) and one.expires_value is not None
    }
    if not renewals:
        return None
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

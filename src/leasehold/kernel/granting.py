"""Granting a claim.

A claim is granted when no live lease of somebody else conflicts with it. Leases on the same resource that
time has ended do not count, whether anybody recorded their end or not; their end and the grant are
committed together. Asking for what one already holds is refused, unless one adopts it: then the old lease
ends as transferred and the new one has a higher token, so whoever still uses the old one is fenced off.
"""

from leasehold.kernel.answers import Granted
from leasehold.kernel.commands import Acquire
from leasehold.kernel.decision import Decision, about, age, not_found, remembered
from leasehold.kernel.ending import released
from leasehold.kernel.events import LeaseEvent, LeaseIssued
from leasehold.kernel.evolve import evolve
from leasehold.kernel.lease import Lease, ReleaseReason
from leasehold.kernel.limits import over_limit
from leasehold.kernel.refusals import Refusal, RefusalCode
from leasehold.kernel.tick import Now
from leasehold.kernel.view import View


def acquire(command: Acquire, view: View, now: Now) -> Decision | Refusal:
    """Grant a claim, or say who is in the way."""
    request = command.request_key
    earlier = remembered(request, view, now)
    if isinstance(earlier, LeaseIssued):
        return _granted_before(earlier, view, now)
    if view.lease(command.lease_id) is not None:
        return Refusal(code=RefusalCode.LEASE_EXISTS, lease_id=command.lease_id)

    events, live, ended = _aged_leases(command, view, now)
    own = [lease for lease in live if lease.holder == command.holder]
    if own and not command.adopt:
        return about(RefusalCode.ALREADY_HELD, own[-1], now)
    blockers = [
        lease for lease in live if lease.holder != command.holder and lease.mode.conflicts_with(command.mode)
    ]
    if blockers:
        return about(RefusalCode.HELD, _last_to_expire(blockers, now), now)
    refusal = _check_quotas(command, view, freed=[*ended, *own])
    if refusal is not None:
        return refusal

    events += [released(lease, now, ReleaseReason.TRANSFERRED) for lease in own]
    issued = _issued(command, view, now, request, own[-1].lease_id if own else None)
    events.append(issued)
    answer = Granted(lease=evolve(None, issued), expires_in_ns=command.ttl_ns)
    return Decision(events=events, answer=answer)


def _granted_before(earlier: LeaseIssued, view: View, now: Now) -> Decision | Refusal:
    """Answer a retry of a granted claim with the lease of the first time, as it stands now."""
    lease = view.lease(earlier.lease_id)
    if lease is None:
        return not_found(earlier.lease_id)
    events, lease = age(lease, view, now)
    left = lease.ticks_remaining(now.tick)
    answer = Granted(lease=lease, expires_in_ns=left, repeated=True, ended=left == 0)
    return Decision(events=events, answer=answer)


def _aged_leases(command: Acquire, view: View, now: Now) -> tuple[list[LeaseEvent], list[Lease], list[Lease]]:
    """Return what time did to the leases on the resource, those that still stand, and those that ended."""
    events: list[LeaseEvent] = []
    live: list[Lease] = []
    ended: list[Lease] = []
    for lease in view.unended_on(command.tenant, command.resource):
        aged, lease_now = age(lease, view, now)
        events += aged
        (ended if lease_now.is_terminal else live).append(lease_now)
    return events, live, ended


def _last_to_expire(leases: list[Lease], now: Now) -> Lease:
    """Return the lease that stands in the way longest; one with unknown time stands for ever."""

    def left(lease: Lease) -> float:
        expires = lease.expires_tick
        until = None if expires is None else now.tick.until(expires)
        return float("inf") if until is None else until

    return max(leases, key=left)


def _check_quotas(command: Acquire, view: View, freed: list[Lease]) -> Refusal | None:
    """Count under the store's lock, so that two claims at once cannot both take the last place.

    Leases elsewhere that expired without anybody noticing count until they are swept; every client
    sweeps some in passing.
    """
    holder_limit = view.quotas.leases_per_holder
    if holder_limit is not None:
        held = view.count_of_holder(command.tenant, command.holder)
        held -= sum(lease.holder == command.holder for lease in freed)
        if held >= holder_limit:
            detail = f"{command.holder} has {held} leases; at most {holder_limit} are allowed"
            return over_limit("leases_per_holder", holder_limit, detail)
    tenant_limit = view.quotas.leases_per_tenant
    if tenant_limit is not None:
        held = view.count_of_tenant(command.tenant) - len(freed)
        if held >= tenant_limit:
            detail = f"tenant {command.tenant} has {held}; at most {tenant_limit} are allowed"
            return over_limit("leases_per_tenant", tenant_limit, detail)
    return None


def _issued(command: Acquire, view: View, now: Now, request: str, adopted_from: str | None) -> LeaseIssued:
    return LeaseIssued(
        tick=now.tick,
        at_ns=now.wall_ns,
        actor=command.holder,
        request=request,
        tenant=command.tenant,
        lease_id=command.lease_id,
        resource=command.resource,
        holder=command.holder,
        token=view.authority.next_token(),
        mode=command.mode,
        ttl_ns=command.ttl_ns,
        max_renewals=max(-1, command.max_renewals),
        adopted_from=adopted_from,
        bound_to_boot=command.bound_to_boot,
        metadata=command.metadata,
        config_version=command.config_version,
        zone_version=command.zone_version,
    )

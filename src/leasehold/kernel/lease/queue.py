"""Who is in whose way, and who is entitled to what has become free.

A claim waits for every lease of somebody else that conflicts with it, and for every waiter ahead of it that
does. Once neither is there, it is granted in the very commit in which the last of them went away. A claim on
several resources waits for all of them, and is granted whole; what it is first in line for stays reserved
for it, because whoever is behind it waits for it.

A waiter gets its lease for a short claim window only, and no longer than it asked for. Its next call confirms
it, be that the same claim again or a renewal; if none comes, the lease expires like any other, and the next
in line has its turn.
"""

from collections.abc import Iterator

from leasehold.kernel.lease.events import (
    LeaseIssued,
    LeaseLeft,
    LeaseModeChanged,
    befalling,
    released,
    terms_of,
)
from leasehold.kernel.lease.lock_delay import is_delayed_for, may_leave_delay
from leasehold.kernel.lease.model import Lease, LeaseState, Mode, ReleaseReason
from leasehold.kernel.lease.paths import contains, covers, is_path
from leasehold.kernel.lease.plan import CLOSING, Freeing, Plan
from leasehold.kernel.lease.ticket import CLAIM_WINDOW_NS, NEXT_IN_LINE
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.events import REGISTRAR
from leasehold.kernel.ledger.records import Gathering
from leasehold.kernel.ledger.tick import Now


def holders_in_the_way(plan: Plan, holder: str, wanted: Lease) -> list[Lease]:
    """Return the leases of others that conflict with what a holder wants.

    Around a path there may be very many. Then these are some of them; none only if there are none.
    """
    for page in plan.standing_pages(wanted.tenant, wanted.resource, wanted.mode):
        found = conflicting(page, holder, wanted.mode)
        if found:
            return found
    return []


def conflicting(leases: list[Lease], holder: str, mode: Mode) -> list[Lease]:
    """Return those of some leases in its reach that conflict with what a holder wants."""
    return [
        lease
        for lease in leases
        if lease.holder != holder
        and (lease.mode.conflicts_with(mode) or lease.is_upgrading)
        and not is_delayed_for(lease, holder)
    ]


def waiters_in_the_way(plan: Plan, holder: str, wanted: Lease) -> Iterator[Lease]:
    """Yield the waiters ahead that conflict with what a holder wants."""
    mode = None if wanted.mode is Mode.EXCLUSIVE else Mode.EXCLUSIVE
    for waiter in plan.waiters(wanted.tenant, wanted.resource, mode):
        if waiter.place >= wanted.place:
            return
        if waiter.holder != holder:
            yield waiter


def first_in_the_way(plan: Plan, wanted: Lease) -> Lease | None:
    """Return something that a waiting lease waits for; None if there is nothing."""
    if wanted.is_upgrading:
        return next(iter(others_beside(plan, wanted)), None)
    for lease in holders_in_the_way(plan, wanted.holder, wanted):
        return lease
    return next(waiters_in_the_way(plan, wanted.holder, wanted), None)


def others_beside(plan: Plan, lease: Lease) -> list[Lease]:
    """Return the leases of others that keep a lease from becoming exclusive; of very many, some."""
    for page in plan.standing_pages(lease.tenant, lease.resource, Mode.EXCLUSIVE):
        found = others_among(page, lease.holder)
        if found:
            return found
    return []


def others_among(leases: list[Lease], holder: str) -> list[Lease]:
    """Return those of some leases in its reach that a holder who wants to be alone waits for."""
    return [lease for lease in leases if lease.holder != holder and not is_delayed_for(lease, holder)]


def end_delays(plan: Plan, holder: str, wanted: Lease, mode: Mode) -> None:
    """End what is kept closed where its last holder comes back, in a mode that conflicts with that.

    Who comes back for something in a directory only leaves the rest of it closed to others.
    """
    *_, standing = plan.standing_pages(wanted.tenant, wanted.resource, mode)
    for lease in standing:
        covered = is_delayed_for(lease, holder) and covers(wanted.resource, lease.resource)
        if covered and lease.mode.conflicts_with(mode):
            plan.add(released(lease, plan.now, ReleaseReason.VOLUNTARY))


def promote(plan: Plan) -> None:
    """Grant what has become free to those who are entitled to it, until nothing is left to grant."""
    while plan.freed:
        tenant, resource = plan.freed.popleft()
        if is_path(resource) or plan.view.is_awaited(tenant, resource):
            _promote_on(plan, tenant, resource)


def _promote_on(plan: Plan, tenant: str, resource: str) -> None:
    standing = plan.standing(tenant, resource)
    for lease in standing:
        if lease.is_upgrading and first_in_the_way(plan, lease) is None:
            end_delays(plan, lease.holder, lease, Mode.EXCLUSIVE)
            plan.add(_upgraded(lease, plan))
            plan.wake(lease)
            standing = plan.standing(tenant, resource)
    if is_path(resource):
        _promote_in_tree(plan, tenant, resource)
    elif not any(_is_final(lease) for lease in standing):
        _promote_in_line(plan, tenant, resource, free=not standing)


def _is_final(lease: Lease) -> bool:
    """Say whether a lease keeps everybody away but its own holder, who does not wait here."""
    return lease.mode is Mode.EXCLUSIVE and lease.holder != REGISTRAR


def _promote_in_line(plan: Plan, tenant: str, resource: str, *, free: bool) -> None:
    """Grant a plain name to those who are entitled to it. `free`: nobody holds it, or keeps it closed."""
    taken = False
    for waiter in plan.waiters(tenant, resource):
        if not taken and _grant_if_entitled(plan, waiter, first=free):
            taken = waiter.mode is Mode.EXCLUSIVE
        elif taken or waiter.mode is Mode.EXCLUSIVE:
            # Its turn comes next: it has to know how long whoever was granted something now has for that.
            plan.wake(waiter, NEXT_IN_LINE)
            return
        free = False


def _promote_in_tree(plan: Plan, tenant: str, path: str) -> None:
    """Grant to those who are entitled where something around a path has ended.

    Below a directory there may be many of them, each with something else that has to be read first.
    """
    gathering = Gathering()
    for waiter in plan.waiters(tenant, path):
        with gathering.step():
            _grant_if_entitled(plan, waiter)
        if waiter.mode is Mode.EXCLUSIVE and contains(waiter.resource, path):
            # All that come behind wait for this one, whether it was granted or not: but not its own holder.
            with gathering.step():
                for own in plan.waits_of(tenant, waiter.holder):
                    if plan.known(own.lease_id).state is LeaseState.PENDING:
                        _grant_if_entitled(plan, own)
            break
    gathering.end()


def _grant_if_entitled(plan: Plan, waiter: Lease, *, first: bool = False) -> bool:
    """Grant a whole claim if nothing is in its way; return whether it was.

    `first`: it is first in line for what nobody holds, so there is nothing to look for.
    """
    claim = plan.group_of(waiter)
    if not first or len(claim) > 1:
        if any(first_in_the_way(plan, one) is not None for one in claim):
            return False
        for one in claim:
            end_delays(plan, one.holder, one, one.mode)
    for one in claim:
        plan.add(_granted(one, plan))
    plan.wake(waiter)
    return True


def _granted(waiter: Lease, plan: Plan) -> LeaseIssued:
    ticket = waiter.ticket
    assert ticket is not None
    return LeaseIssued(
        tick=plan.now.tick,
        at_ns=plan.now.wall_ns,
        actor=REGISTRAR,
        request=ticket.request or None,
        tenant=waiter.tenant,
        lease_id=waiter.lease_id,
        resource=waiter.resource,
        holder=waiter.holder,
        token=plan.next_token(),
        mode=waiter.mode,
        ttl_ns=waiter.ttl_ns,
        **terms_of(waiter),
        delegation=waiter.delegation,
        group=ticket.group,
        claim_window_ns=min(CLAIM_WINDOW_NS, waiter.ttl_ns),
    )


def _upgraded(lease: Lease, plan: Plan) -> LeaseModeChanged:
    request = (lease.ticket.request if lease.ticket is not None else "") or None
    return mode_changed(lease, plan.now, Mode.EXCLUSIVE, plan.next_token(), request)


def mode_changed(lease: Lease, now: Now, mode: Mode, token: int, request: str | None) -> LeaseModeChanged:
    """Return the event of a lease that becomes exclusive, or shared."""
    return LeaseModeChanged(
        **befalling(lease, now, actor=lease.holder, token=token), request=request, mode=mode
    )


def promote_after(event: Freeing, view: LeaseView, now: Now) -> Plan | None:
    """Return what follows for those who wait from an event that may make something free; None: nothing.

    On a plain name that nobody waits for, an end concerns its own holder only, unless it leaves a delay.
    """
    left = isinstance(event, LeaseLeft)
    if not left and not is_path(event.resource) and not view.is_awaited(event.tenant, event.resource):
        if not isinstance(event, CLOSING):
            return None
        ended = view.lease(event.lease_id)
        if ended is None or not may_leave_delay(ended, view.authority):
            return None
    plan = Plan(view, now)
    plan.free(event)
    if isinstance(event, LeaseLeft):
        plan.leave(plan.known(event.lease_id), event.reason, event.actor, event.request)
    promote(plan)
    return plan

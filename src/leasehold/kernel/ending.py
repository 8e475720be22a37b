"""Ending leases: released by the holder, revoked by an operator, swept when time has ended them.

Terminal is terminal. A second release or revocation answers "already" and changes nothing; a retry of the
first is told what the first was told. A lease whose time ran out before it was released or revoked is
recorded as expired, because that is what happened. A claim that still waits is ended by leaving the queue.
"""

from collections.abc import Callable

from leasehold.kernel.aging import left
from leasehold.kernel.answers import Ended, Released, Swept
from leasehold.kernel.commands import Release, Revoke, Sweep
from leasehold.kernel.decision import Decision, about, age, not_found
from leasehold.kernel.events import CANCELLED, LeaseEvent, LeaseLeft, LeaseReleased, LeaseRevoked
from leasehold.kernel.evolve import evolve
from leasehold.kernel.happening import befalling
from leasehold.kernel.lease import Lease, LeaseState, ReleaseReason
from leasehold.kernel.refusals import Refusal, RefusalCode
from leasehold.kernel.tick import Now
from leasehold.kernel.view import View


def release(command: Release, view: View, now: Now) -> Decision:
    """Give leases back. Only their holder can; what has ended already stays as it ended."""
    events: list[LeaseEvent] = []
    leases: list[Lease] = []
    outcomes: dict[str, Ended | Refusal] = {}
    for lease_id in dict.fromkeys(command.lease_ids):
        lease = view.lease(lease_id)
        if lease is None or lease.tenant != command.tenant:
            outcomes[lease_id] = not_found(lease_id)
        elif lease.holder == command.holder:
            ends, ended = _end(lease, view, now, lambda one: _given_back(one, now, command))
            outcomes[lease_id] = ended
            if ends:
                events += ends
                leases.append(ended.lease)
        elif lease.is_terminal:
            outcomes[lease_id] = Ended(lease=lease, already=True)
        else:
            outcomes[lease_id] = about(RefusalCode.NOT_HOLDER, lease, now)
    answer = Released(outcomes=tuple(outcomes[lease_id] for lease_id in command.lease_ids))
    return Decision(events=events, leases=leases, answer=answer)


def revoke(command: Revoke, view: View, now: Now) -> Decision | Refusal:
    """End a lease over its holder's head, and keep who did it and why."""
    lease = view.lease(command.lease_id)
    if lease is None or lease.tenant != command.tenant:
        return not_found(command.lease_id)
    events, ended = _end(lease, view, now, lambda one: _revoked(one, command, now))
    return Decision(events=events, leases=[ended.lease] if events else [], answer=ended)


def sweep(command: Sweep, view: View, now: Now) -> Decision:
    """Record what time has done to the named leases; those it has done nothing to are left alone."""
    events: list[LeaseEvent] = []
    leases: list[Lease] = []
    for lease_id in dict.fromkeys(command.lease_ids):
        lease = view.lease(lease_id)
        if lease is None or lease.is_terminal:
            continue
        aged, lease_now = age(lease, view, now)
        if aged:
            events += aged
            leases.append(lease_now)
    swept = tuple(lease for lease in leases if lease.is_terminal)
    return Decision(events=events, leases=leases, answer=Swept(leases=swept))


def released(lease: Lease, now: Now, reason: ReleaseReason, request: str | None = None) -> LeaseReleased:
    """Return the event of a holder giving its lease back."""
    return LeaseReleased(
        tick=now.tick,
        at_ns=now.wall_ns,
        actor=lease.holder,
        request=request,
        tenant=lease.tenant,
        lease_id=lease.lease_id,
        resource=lease.resource,
        holder=lease.holder,
        token=lease.token,
        reason=reason,
    )


def _given_back(lease: Lease, now: Now, command: Release) -> LeaseReleased | LeaseLeft:
    """Give a lease back; or leave the queue for it, if it was not granted yet, or never will be."""
    if lease.state is LeaseState.PENDING or lease.state is LeaseState.FAILED:
        return left(lease, now, CANCELLED, actor=command.holder, request=command.request_id)
    return released(lease, now, command.reason, command.request_id)


def _revoked(lease: Lease, command: Revoke, now: Now) -> LeaseRevoked | LeaseLeft:
    if lease.state is LeaseState.PENDING or lease.state is LeaseState.FAILED:
        return left(lease, now, command.reason, actor=command.operator, request=command.request_id)
    return LeaseRevoked(
        **befalling(lease, now, actor=command.operator), request=command.request_id, reason=command.reason
    )


def _end(
    lease: Lease, view: View, now: Now, event_for: Callable[[Lease], LeaseReleased | LeaseRevoked | LeaseLeft]
) -> tuple[list[LeaseEvent], Ended]:
    """End a lease with the event that `event_for` makes, unless it is over already.

    A retry of the very request that ended it is no second ending, and gets the answer of the first.
    """
    events, lease = age(lease, view, now)
    ending = event_for(lease)
    if lease.is_terminal:
        first = (lease.end_request, lease.ended_by, lease.release_reason or lease.end_reason)
        again = first == (ending.request, ending.actor, ending.reason)
        return events, Ended(lease=lease, already=not again)
    return [*events, ending], Ended(lease=evolve(lease, ending))

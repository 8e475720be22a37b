"""Giving leases back, and how any lease is ended by somebody.

Terminal is terminal. A second release or revocation answers "already" and changes nothing; a retry of the
first is told what the first was told. A lease whose time ran out before it was released or revoked is
recorded as expired, because that is what happened. A claim that still waits is ended by leaving the queue.
"""

from leasehold.kernel.lease.age import left
from leasehold.kernel.lease.answers import Ended, Released
from leasehold.kernel.lease.commands import Release
from leasehold.kernel.lease.decision import Decision, about, age, not_found
from leasehold.kernel.lease.events import (
    CANCELLED,
    LeaseEvent,
    LeaseLeft,
    LeaseReleased,
    LeaseRevoked,
    released,
)
from leasehold.kernel.lease.evolve import evolve
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Now


def release(command: Release, view: LeaseView, now: Now) -> Decision:
    """Give leases back. Only their holder can; what has ended already stays as it ended."""
    events: list[LeaseEvent] = []
    leases: list[Lease] = []
    outcomes: dict[str, Ended | Refusal] = {}
    for lease_id in dict.fromkeys(command.lease_ids):
        lease = view.lease(lease_id)
        if lease is None or lease.tenant != command.tenant:
            outcomes[lease_id] = not_found(lease_id)
        elif lease.holder == command.holder:
            aged, lease = age(lease, view, now)
            ends, ended = end(lease, aged, _given_back(lease, now, command))
            outcomes[lease_id] = ended
            if ends:
                events += ends
                leases.append(ended.lease)
        elif lease.is_terminal:
            outcomes[lease_id] = Ended(lease=lease, already=True)
        else:
            outcomes[lease_id] = about(RefusalCode.NOT_HOLDER, lease, now)
    answer = Released(outcomes=tuple(map(outcomes.__getitem__, command.lease_ids)))
    return Decision(events=events, leases=leases, answer=answer)


def end(
    lease: Lease, events: list[LeaseEvent], ending: LeaseReleased | LeaseRevoked | LeaseLeft
) -> tuple[list[LeaseEvent], Ended]:
    """End a lease, to which time has done what `events` say, unless it is over already.

    A retry of the very request that ended it is no second ending, and gets the answer of the first.
    """
    if lease.is_terminal:
        first = (lease.end_request, lease.ended_by, lease.release_reason or lease.end_reason)
        again = first == (ending.request, ending.actor, ending.reason)
        return events, Ended(lease=lease, already=not again)
    return [*events, ending], Ended(lease=evolve(lease, ending))


def _given_back(lease: Lease, now: Now, command: Release) -> LeaseReleased | LeaseLeft:
    """Give a lease back; or leave the queue for it, if it was not granted yet, or never will be."""
    if lease.state is LeaseState.PENDING or lease.state is LeaseState.FAILED:
        return left(lease, now, CANCELLED, actor=command.holder, request=command.request_id)
    return released(lease, now, command.reason, command.request_id)

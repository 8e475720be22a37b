"""Forcibly ending a lease: an operator does, with a reason, and history says who and why."""

from leasehold.kernel.lease.age import left
from leasehold.kernel.lease.commands import Revoke
from leasehold.kernel.lease.decision import Decision, age, not_found
from leasehold.kernel.lease.events import LeaseLeft, LeaseRevoked, befalling
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.lease.rules.release import end
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.tick import Now


def revoke(command: Revoke, view: LeaseView, now: Now) -> Decision | Refusal:
    """Forcibly end a lease, and keep who did it and why."""
    lease = view.lease(command.lease_id)
    if lease is None or lease.tenant != command.tenant:
        return not_found(command.lease_id)
    aged, lease = age(lease, view, now)
    events, ended = end(lease, aged, _revoked(lease, command, now))
    return Decision(events=events, leases=[ended.lease] if events else [], answer=ended)


def _revoked(lease: Lease, command: Revoke, now: Now) -> LeaseRevoked | LeaseLeft:
    if lease.state is LeaseState.PENDING or lease.state is LeaseState.FAILED:
        return left(lease, now, command.reason, actor=command.operator, request=command.request_id)
    return LeaseRevoked(
        **befalling(lease, now, actor=command.operator), request=command.request_id, reason=command.reason
    )

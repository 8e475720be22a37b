"""How a workflow gets an orchestrator, and loses it.

The lease is one of the lease family's, on a resource that stands for the workflow, and is granted,
transferred and ended by the rules of that family. What is added here is which lease counts: a claim that
begins a workflow, or takes it over once nobody has it, makes its lease the workflow's in the same commit,
and any end of that lease, whoever brings it about, leaves the workflow to the next claim.
"""

from collections.abc import Callable

from msgspec.structs import replace

from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.commands import Acquire, Transfer
from leasehold.kernel.lease.events import EndEvent, LeaseExpired, LeaseRevoked
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.workflows.law.commands import Accept, Claim, HandedOff, HandOff
from leasehold.workflows.law.events import (
    WorkflowAccepted,
    WorkflowClaimed,
    WorkflowHandedOff,
    WorkflowTakenOver,
    WorkflowVacated,
    under_lease,
)
from leasehold.workflows.law.ownership import (
    ended,
    lease_not_found,
    not_owner,
    owned,
    step,
    violation,
    workflow,
)
from leasehold.workflows.law.records import PREFIX, resource_of, workflow_of

EXPIRED, REVOKED, RELEASED = "expired", "revoked", "released"
"""How a workflow lost its lease."""


def claim(command: Claim, draft: Draft) -> Refusal | Callable[[], Granted]:
    """Begin a workflow, or take over one that nobody has."""
    lease: Lease | None = draft.get(LEASE, command.lease_id)
    if lease is not None:
        refusal = _cannot_be_the_claims(lease, command)
        if refusal is not None:
            return refusal
        if lease.is_terminal:
            return _granted(command.lease_id, draft, repeated=True)
    record = workflow(command.tenant, command.workflow_id, draft)
    if record is not None and record.is_ended:
        return ended(record)
    if record is not None and record.lease_id == command.lease_id:
        return _granted(command.lease_id, draft, repeated=True)
    if lease is None:
        made = draft.call(_acquire(command))
        if isinstance(made, Refusal):
            return made
        draft.settle()  # The lease before this one has ended, if nobody had noticed that yet.
    _begin_or_take_over(command, draft)
    return _granted(command.lease_id, draft)


def _acquire(command: Claim) -> Acquire:
    return Acquire(
        tenant=command.tenant,
        request_id=command.lease_id,
        lease_id=command.lease_id,
        resource=resource_of(command.workflow_id),
        holder=command.holder,
        ttl_ns=command.ttl_ns,
        bound_to_boot=command.bound_to_boot,
        metadata=command.metadata,
    )


def queueing(command: Claim, priority: int) -> Acquire:
    """Return the claim of the lease alone: who waits for a workflow stands in the queue for its lease."""
    return replace(_acquire(command), wait=True, priority=priority)


def _cannot_be_the_claims(lease: Lease, command: Claim) -> Refusal | None:
    """Refuse a claim under a lease that is another's, or on something else, or not granted yet."""
    whose = (lease.tenant, lease.holder, lease.resource, lease.mode)
    if whose != (command.tenant, command.holder, resource_of(command.workflow_id), Mode.EXCLUSIVE):
        return Refusal(code=RefusalCode.LEASE_EXISTS, lease_id=lease.lease_id)
    if lease.state is LeaseState.PENDING:
        return Refusal(code=RefusalCode.LEASE_PENDING, lease_id=lease.lease_id, resource=lease.resource)
    return None


def _begin_or_take_over(command: Claim, draft: Draft) -> None:
    record = workflow(command.tenant, command.workflow_id, draft)
    lease: Lease = draft.get(LEASE, command.lease_id)
    kind = WorkflowClaimed if record is None else WorkflowTakenOver
    epoch = 0 if record is None else record.epoch
    draft.append(kind(**under_lease(lease, epoch, draft.now), request=command.request_id))


def accept(command: Accept, draft: Draft) -> Refusal | Callable[[], Granted]:
    """Let the successor have the lease that a workflow was handed off with, once."""
    lease: Lease | None = draft.get(LEASE, command.lease_id)
    workflow_id = None if lease is None else workflow_of(lease.resource)
    if lease is None or lease.tenant != command.tenant or workflow_id is None:
        return lease_not_found(command.lease_id)
    record = workflow(command.tenant, workflow_id, draft)
    if record is None:
        return lease_not_found(command.lease_id)
    refusal = not_owner(record, lease, command.holder, draft)
    if refusal is not None:
        return refusal
    if record.accepted_by == command.request_id:
        return _granted(command.lease_id, draft, repeated=True)
    if not record.handed_off or record.accepted_by:
        why = "another orchestrator took it already" if record.accepted_by else "it was not handed off"
        return violation(record, command.lease_id, why)
    request = command.request_id
    draft.append(WorkflowAccepted(**under_lease(lease, record.epoch, draft.now), request=request, by=request))
    return _granted(command.lease_id, draft)


def hand_off(command: HandOff, draft: Draft) -> Refusal | Callable[[], HandedOff]:
    """Give a workflow to another orchestrator: the transfer action and the new lease are one commit."""
    earlier = draft.remembered(command)
    if isinstance(earlier, WorkflowHandedOff):
        return _handed_off(earlier, draft, repeated=True)
    record = owned(command, draft)
    if isinstance(record, Refusal):
        return record
    made = draft.call(
        Transfer(
            tenant=command.tenant,
            request_id=command.request_id,
            lease_id=command.lease_id,
            holder=command.holder,
            to=command.to,
            new_lease_id=command.new_lease_id,
            ttl_ns=command.ttl_ns,
        )
    )
    if isinstance(made, Refusal):
        return made
    successor: Lease = draft.get(LEASE, command.new_lease_id)
    event = WorkflowHandedOff(
        **step(command, record, draft.now),
        action_id=command.action_id,
        to=command.to,
        new_lease_id=successor.lease_id,
        new_token=successor.token,
    )
    draft.append(event)
    return _handed_off(event, draft)


def _handed_off(event: WorkflowHandedOff, draft: Draft, *, repeated: bool = False) -> Callable[[], HandedOff]:
    return lambda: HandedOff(
        action_id=event.action_id,
        epoch=event.epoch,
        lease=draft.get(LEASE, event.new_lease_id),
        at_ns=event.at_ns,
        repeated=repeated,
    )


def vacate(event: EndEvent, draft: Draft) -> None:
    """Leave a workflow to the next claim whose lease has ended."""
    if not event.resource.startswith(PREFIX):
        return  # Nearly every lease that ends is of something else.
    record = workflow(event.tenant, event.resource.removeprefix(PREFIX), draft)
    if record is None or record.lease_id != event.lease_id:
        return
    cause, reason = RELEASED, ""
    if isinstance(event, LeaseRevoked):
        cause, reason = REVOKED, event.reason
    elif isinstance(event, LeaseExpired):
        cause = EXPIRED
    said = under_lease(event, record.epoch, draft.now, event.actor)
    draft.append(WorkflowVacated(**said, cause=cause, reason=reason))


def _granted(lease_id: str, draft: Draft, *, repeated: bool = False) -> Callable[[], Granted]:
    def answer() -> Granted:
        lease: Lease = draft.get(LEASE, lease_id)
        left = lease.ticks_remaining(draft.now.tick)
        return Granted(lease=lease, expires_in_ns=left, repeated=repeated, ended=left == 0)

    return answer

"""How what happens to a workflow reads on the bus.

Actions are what orchestrators emit; the transfer action of a handoff is one. All else is an event. The
payload of whatever gives a workflow another lease has its `lease_id`, `token` and `epoch`: the first epoch
under it.
"""

from datetime import UTC, datetime
from typing import Any

from leasehold.kernel.lease.model import Lease
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND
from leasehold.workflows.law.claiming import EXPIRED, REVOKED
from leasehold.workflows.law.commands import Emitted
from leasehold.workflows.law.events import (
    PUBLISHED,
    WorkflowAccepted,
    WorkflowAnswered,
    WorkflowClaimed,
    WorkflowEmitted,
    WorkflowEvent,
    WorkflowFinished,
    WorkflowHandedOff,
    WorkflowTakenOver,
    WorkflowTransitioned,
    WorkflowVacated,
)
from leasehold.workflows.law.records import COMPLETED, STEP_COMPLETED, STEP_FAILED
from leasehold.workflows.models import Action, ActionType, Delivery, Event, EventType, LeaseMetadata

PUBLISHED_TYPES = tuple(str(kind.__struct_config__.tag) for kind in PUBLISHED)
"""The types of the ledger entries that travel on the bus."""


def delivery_of(entry: Entry) -> Delivery:
    """Return a ledger entry as what a subscriber gets."""
    event = entry.event
    assert isinstance(event, WorkflowEvent), "only what happens to workflows is on the bus"
    return Delivery(
        position=entry.position,
        workflow_id=event.workflow_id,
        message=message_of(event),
        token=event.token,
    )


def message_of(event: WorkflowEvent) -> Action | Event:
    """Return what happened as an action, or as an event."""
    if isinstance(event, WorkflowEmitted):
        return action_of(event)
    if isinstance(event, WorkflowHandedOff):
        return transfer_action(
            event.action_id,
            old_lease_id=event.lease_id,
            new_lease_id=event.new_lease_id,
            epoch=event.epoch,
            at_ns=event.at_ns,
            to=event.to,
            new_token=event.new_token,
        )
    kind, facts = _reading(event)
    payload = {"lease_id": event.lease_id, "token": event.token, "epoch": event.epoch} | facts
    return Event(event_type=kind, payload=payload, created_at=moment_of(event.at_ns))


def action_of(emitted: Emitted | WorkflowEmitted) -> Action:
    """Return an action that is in the ledger."""
    facts = emitted.action
    return Action(
        action_id=emitted.action_id,
        action_type=facts.action_type,
        target_node_type=facts.target_node_type,
        payload=facts.payload,
        dependencies=facts.dependencies,
        priority=facts.priority,
        timeout_ms=facts.timeout_ms,
        lease_id=emitted.lease_id,
        epoch=emitted.epoch,
        retry_count=facts.retry_count,
        created_at=moment_of(emitted.at_ns),
    )


def transfer_action(
    action_id: str, *, old_lease_id: str, new_lease_id: str, epoch: int, at_ns: int, to: str, new_token: int
) -> Action:
    """Return the last action under an old lease, which names the new one."""
    return Action(
        action_id=action_id,
        action_type=ActionType.LEASE_TRANSFER,
        payload={
            "old_lease_id": old_lease_id,
            "new_lease_id": new_lease_id,
            "transfer_epoch": epoch,
            "new_token": new_token,
            "to": to,
        },
        lease_id=old_lease_id,
        epoch=epoch,
        created_at=moment_of(at_ns),
    )


def moment_of(wall_ns: int) -> datetime:
    """Return a wall time as one with a time zone."""
    return datetime.fromtimestamp(wall_ns / NANOSECONDS_PER_SECOND, UTC)


def metadata_of(lease: Lease) -> LeaseMetadata:
    """Return what others may know of a lease; a renewal counts as a new beginning."""
    return LeaseMetadata(
        lease_id=lease.lease_id,
        acquired_at=moment_of(lease.last_renewed_at_ns or lease.issued_at_ns),
        ttl_seconds=lease.ttl_ns / NANOSECONDS_PER_SECOND,
    )


def _reading(event: WorkflowEvent) -> tuple[EventType, dict[str, Any]]:
    """Return what kind of event this is on the bus, and what it has to say beside its lease and epoch."""
    match event:
        case WorkflowClaimed(holder=holder):
            return EventType.LEASE_CLAIMED, {"holder": holder}
        case WorkflowTakenOver(holder=holder, epoch=epoch):
            return EventType.LEASE_TAKEN_OVER, {"holder": holder, "epoch": epoch + 1}
        case WorkflowAccepted(holder=holder):
            return EventType.LEASE_ACCEPTED, {"holder": holder}
        case WorkflowTransitioned(state=state):
            return EventType.STATE_CHANGED, {"state": state}
        case WorkflowAnswered(success=success, action_id=action_id):
            state = STEP_COMPLETED if success else STEP_FAILED
            return EventType.STATE_CHANGED, {"state": state, "action_id": action_id}
        case WorkflowFinished(outcome=outcome, reason=reason):
            done = outcome == COMPLETED
            kind = EventType.WORKFLOW_COMPLETED if done else EventType.WORKFLOW_CANCELLED
            return kind, {"state": outcome, "reason": reason}
        case _:
            assert isinstance(event, WorkflowVacated)
            return _vacated(event)


def _vacated(event: WorkflowVacated) -> tuple[EventType, dict[str, Any]]:
    at = moment_of(event.at_ns).isoformat()
    if event.cause == REVOKED:
        return EventType.LEASE_REVOKED, {"reason": event.reason, "revoked_at": at}
    if event.cause == EXPIRED:
        return EventType.LEASE_EXPIRED, {"expired_at": at}
    return EventType.LEASE_RELEASED, {"released_at": at}

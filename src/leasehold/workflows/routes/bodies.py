"""What the routes of workflows take and give."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from leasehold.kernel.lease.ticket import PRIORITY_LEAST, PRIORITY_MOST, PRIORITY_USUAL
from leasehold.kernel.ledger.limits import NUMBER_MAXIMUM
from leasehold.server.bodies import (
    LEASE_EXAMPLE,
    HandedOnTtl,
    LeaseBody,
    NextEntry,
    NextPage,
    RenewalTtl,
    RequestId,
    Taken,
)
from leasehold.workflows.law import limits
from leasehold.workflows.models import Action, Delivery
from leasehold.workflows.questions import WorkflowStatus
from leasehold.workflows.shapes import message_shape, workflow_shape

Number = Annotated[int, Meta(ge=0, le=NUMBER_MAXIMUM)]


class ClaimBody(Taken, kw_only=True):
    """A claim to be the orchestrator of a workflow."""

    workflow_id: str
    holder: str
    ttl: Annotated[float, Meta(description="Seconds.")] = 300.0
    wait: Annotated[float, Meta(description="How many seconds to wait if somebody else has it.")] = 0.0
    priority: Annotated[int, Meta(ge=PRIORITY_LEAST, le=PRIORITY_MOST)] = PRIORITY_USUAL
    metadata: dict[str, Any] = {}
    request_id: RequestId = None


class _OwnLease(Taken, kw_only=True):
    """The lease of a workflow, and the orchestrator that shows it."""

    lease_id: str
    holder: str


class AcceptBody(_OwnLease, kw_only=True):
    """A workflow that was handed off, taken by its new orchestrator."""

    request_id: RequestId = None


class RenewLeadBody(_OwnLease, kw_only=True):
    """More time for an orchestrator."""

    ttl: RenewalTtl = None


class ReleaseLeadBody(_OwnLease, kw_only=True):
    """A lease that its orchestrator gives back."""


class RevokeLeadBody(Taken, kw_only=True):
    """The lease of an orchestrator that is ended by force."""

    workflow_id: str
    operator: str
    reason: str


class StepBody(Taken, kw_only=True):
    """What every step of an orchestrator says: whose it is, and that it is the next."""

    workflow_id: str
    lease_id: str
    holder: str
    epoch: Annotated[int, Meta(ge=0, le=NUMBER_MAXIMUM, description="`epoch` of the answer before.")]
    request_id: RequestId = None


class EmitBody(StepBody, kw_only=True):
    """An action to emit."""

    action_type: str
    payload: dict[str, Any] = {}
    target_node_type: Annotated[str, Meta(max_length=limits.NAME_CHARACTERS)] | None = None
    dependencies: Annotated[list[str], Meta(max_length=limits.DEPENDENCIES)] = []
    priority: Annotated[int, Meta(ge=limits.PRIORITY_LEAST, le=limits.PRIORITY_MOST)] = 5
    timeout_ms: Annotated[int, Meta(ge=limits.TIMEOUT_MINIMUM_MS, le=limits.TIMEOUT_MAXIMUM_MS)] = 30_000
    retry_count: Annotated[int, Meta(ge=0, le=limits.RETRIES_MAXIMUM)] = 0
    action_id: Annotated[str | None, Meta(description="Drawn if it is left out.")] = None


class TransitionBody(StepBody, kw_only=True):
    """Another state for a workflow."""

    state: str


class ResultBody(StepBody, kw_only=True):
    """What became of an action. A result that is sent twice under one `request_id` counts once."""

    action_id: str
    success: bool
    payload: dict[str, Any] = {}
    error: str | None = None


class HandoffBody(StepBody, kw_only=True):
    """A workflow that is given to another orchestrator."""

    to: str
    ttl: HandedOnTtl = None


class CancelBody(StepBody, kw_only=True):
    """A workflow that is cancelled."""

    reason: str = ""


class LedBody(Struct, kw_only=True):
    """A workflow, and the lease under which its orchestrator acts for it."""

    workflow_id: str
    state: str
    epoch: Annotated[int, Meta(description="The epoch of the next step.")]
    lease: LeaseBody
    repeated: Annotated[bool, Meta(description="This answers a claim that had been granted before.")]


class SteppedBody(Struct, kw_only=True):
    """What was done, and what comes next."""

    workflow_id: str
    state: str
    epoch: Annotated[int, Meta(description="The epoch of the next step.")]
    repeated: Annotated[bool, Meta(description="This answers a step that had been taken before.")]


class ActionBody(Struct, kw_only=True):
    """An action, as it travels on the bus."""

    action_id: str
    action_type: str
    target_node_type: str | None
    payload: dict[str, Any]
    dependencies: list[str]
    priority: int
    timeout_ms: int
    lease_id: str
    epoch: int
    retry_count: int
    created_at: str


class EmittedBody(SteppedBody, kw_only=True):
    """An action that is in the ledger, and on its way to every subscriber."""

    action: ActionBody


class HandedOffBody(Struct, kw_only=True):
    """A workflow that is its successor's now; the successor accepts it by the lease's id."""

    workflow_id: str
    lease_id: str
    holder: str
    token: int
    epoch: Annotated[int, Meta(description="The epoch of the successor's first step.")]
    repeated: bool


class WorkflowBody(Struct, kw_only=True):
    """A workflow, as it stands at the moment of the answer."""

    workflow_id: str
    state: str
    epoch: int
    holder: Annotated[str | None, Meta(description="Who may act for it; null: nobody.")]
    lease: LeaseBody | None
    handed_off: bool
    accepted: bool
    started_at: str | None
    changed_at: str | None
    ended_at: str | None


class WorkflowsBody(Struct, kw_only=True):
    """A page of workflows."""

    workflows: list[WorkflowBody]
    next: NextPage


class MessagesBody(Struct, kw_only=True):
    """A page of messages of the bus: actions, and what happened to workflows and their leases."""

    messages: list[dict[str, Any]]
    next: NextEntry


class SubscribeBody(Taken, kw_only=True):
    """A reader of the bus."""

    name: str
    holder: str
    workflow_id: Annotated[str | None, Meta(description="The only workflow to read; left out: all.")] = None
    after: Annotated[
        Number | None,
        Meta(description="For a new one: begin after this position; left out: with what comes."),
    ] = None


class AcknowledgeBody(Taken, kw_only=True):
    """How far a reader has come."""

    name: str
    holder: str
    position: Number


class UnsubscribeBody(Taken, kw_only=True):
    """A reader that gives its place up."""

    name: str
    holder: str


class SubscriptionBody(Struct, kw_only=True):
    """A reader of the bus, and how far it has come."""

    name: str
    position: Annotated[int, Meta(description="Everything up to here is acknowledged.")]
    workflow_id: str | None


class SubscriptionsBody(Struct, kw_only=True):
    """Who reads the bus."""

    subscriptions: list[SubscriptionBody]


class PositionBody(Struct, kw_only=True):
    """Where a subscription stands, or stood."""

    name: str
    position: int


def workflow_body(status: WorkflowStatus) -> WorkflowBody:
    """Return a workflow, as it stands."""
    return msgspec.convert(workflow_shape(status), WorkflowBody)


def action_body(action: Action) -> ActionBody:
    """Return an action, as it travels on the bus."""
    return msgspec.convert(msgspec.to_builtins(action), ActionBody)


def messages_body(deliveries: list[Delivery], limit: int) -> MessagesBody:
    """Return a page of messages."""
    return MessagesBody(
        messages=[message_shape(one) for one in deliveries],
        next=deliveries[-1].position if len(deliveries) == limit else None,
    )


HELD_EXAMPLE = LEASE_EXAMPLE | {"resource": "workflow:order-7", "holder": "orchestrator-1", "ttl": 300.0}
LED_EXAMPLE: dict[str, Any] = {
    "workflow_id": "order-7",
    "state": "initialized",
    "epoch": 0,
    "lease": HELD_EXAMPLE,
    "repeated": False,
}
STEPPED_EXAMPLE: dict[str, Any] = {
    "workflow_id": "order-7",
    "state": "charging",
    "epoch": 2,
    "repeated": False,
}
ACTION_EXAMPLE: dict[str, Any] = {
    "action_id": "6f1c1a52-51a5-4b56-9a5e-2f4bb4f0d7c1",
    "action_type": "charge_card",
    "target_node_type": None,
    "payload": {"amount": 12},
    "dependencies": [],
    "priority": 5,
    "timeout_ms": 30000,
    "lease_id": HELD_EXAMPLE["lease_id"],
    "epoch": 0,
    "retry_count": 0,
    "created_at": "2026-11-17T12:00:00.000000Z",
}
WORKFLOW_EXAMPLE: dict[str, Any] = {
    "workflow_id": "order-7",
    "state": "charging",
    "epoch": 2,
    "holder": "orchestrator-1",
    "lease": HELD_EXAMPLE,
    "handed_off": False,
    "accepted": False,
    "started_at": "2026-11-17T12:00:00.000000Z",
    "changed_at": "2026-11-17T12:00:01.000000Z",
    "ended_at": None,
}
MESSAGE_EXAMPLE: dict[str, Any] = {
    "position": 7,
    "kind": "action",
    "token": HELD_EXAMPLE["token"],
    **ACTION_EXAMPLE,
}

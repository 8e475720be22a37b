"""What can be asked about workflows, and what is answered."""

from typing import Any

import msgspec

from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.ledger.commands import Command, Right
from leasehold.workflows.law.events import ActionFacts


class Stepped(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """It happened, at `epoch`; the next thing happens at `current_epoch`."""

    epoch: int
    current_epoch: int
    state: str
    at_ns: int
    repeated: bool = False
    """This answers a retry: it happened the first time, and once."""


class Emitted(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The action is in the ledger, and on its way to every subscriber."""

    action_id: str
    action: ActionFacts
    lease_id: str
    epoch: int
    current_epoch: int
    state: str
    at_ns: int
    repeated: bool = False


class HandedOff(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The workflow is the successor's, under a new lease, from one epoch above the transfer action on."""

    action_id: str
    epoch: int
    lease: Lease
    at_ns: int
    repeated: bool = False


class Subscribed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The subscription stands, and everything up to `position` is acknowledged."""

    position: int


class Unsubscribed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The subscription is gone."""

    position: int


class Marked(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The guard's position is kept."""

    epoch: int


class Claim(Command, frozen=True, kw_only=True, omit_defaults=True, tag="claim_workflow"):
    """Ask to be the orchestrator of a workflow: for a lease on it, and to begin it, or to take it over.

    If the claimant has the lease `lease_id` on it already, because it waited for it, that is the one.
    """

    answer = Granted
    right = Right.HOLD
    gives_back = False

    workflow_id: str
    lease_id: str
    holder: str
    ttl_ns: int
    bound_to_boot: bool = True
    metadata: dict[str, Any] = {}


class Accept(Command, frozen=True, kw_only=True, omit_defaults=True, tag="accept_workflow"):
    """Ask for a workflow that was handed to the claimant, whose alone it is then."""

    answer = Granted
    right = Right.HOLD
    gives_back = False

    lease_id: str
    holder: str


class _Step(Command, frozen=True, kw_only=True, omit_defaults=True):
    """Something that only the orchestrator can do, at the present epoch."""

    # A retry by a caller who has asked for the epoch again, or has drawn another id, is the same request.
    not_content = {"request_id": "", "epoch": ""}

    workflow_id: str
    lease_id: str
    holder: str
    epoch: int


class Emit(_Step, frozen=True, kw_only=True, omit_defaults=True, tag="emit_action"):
    """Emit an action."""

    answer = Emitted
    right = Right.HOLD
    not_content = {"request_id": "", "epoch": "", "action_id": ""}

    action_id: str
    action: ActionFacts


class Transition(_Step, frozen=True, kw_only=True, omit_defaults=True, tag="transition_workflow"):
    """Set another state."""

    answer = Stepped
    right = Right.HOLD

    state: str


class AnswerAction(_Step, frozen=True, kw_only=True, omit_defaults=True, tag="answer_action"):
    """Take in the result of an action."""

    answer = Stepped
    right = Right.HOLD

    action_id: str
    success: bool
    payload: dict[str, Any] = {}
    error: str | None = None


class HandOff(_Step, frozen=True, kw_only=True, omit_defaults=True, tag="hand_off_workflow"):
    """Give the workflow to another orchestrator."""

    answer = HandedOff
    right = Right.HOLD
    not_content = {"request_id": "", "epoch": "", "action_id": "", "new_lease_id": ""}

    action_id: str
    to: str
    new_lease_id: str
    ttl_ns: int | None = None
    """How long the new lease lasts; the old one's TTL if not given."""


class Finish(_Step, frozen=True, kw_only=True, omit_defaults=True, tag="finish_workflow"):
    """Complete or cancel the workflow, and give its lease back."""

    answer = Stepped
    right = Right.HOLD

    outcome: str
    reason: str = ""


class Subscribe(Command, frozen=True, kw_only=True, omit_defaults=True, tag="subscribe_to_workflows"):
    """Begin to read the bus after a position, or go on where the subscription of that name has come to."""

    answer = Subscribed
    right = Right.HOLD

    name: str
    position: int
    workflow_id: str = ""
    holder: str


class Acknowledge(Command, frozen=True, kw_only=True, omit_defaults=True, tag="acknowledge_workflows"):
    """Say that everything up to a position is done with, and that the subscriber is there."""

    answer = Subscribed
    right = Right.HOLD

    name: str
    position: int
    holder: str


class Unsubscribe(Command, frozen=True, kw_only=True, omit_defaults=True, tag="unsubscribe_from_workflows"):
    """Give a subscription up."""

    answer = Unsubscribed
    right = Right.HOLD

    name: str
    holder: str


class MarkGuard(Command, frozen=True, kw_only=True, omit_defaults=True, tag="mark_workflow_guard"):
    """Keep how far a guard has come."""

    answer = Marked
    right = Right.HOLD

    name: str
    workflow_id: str
    lease_id: str
    token: int
    epoch: int
    action_id: str
    """What was processed; empty: the bus told the guard of another lease or epoch."""
    holder: str


Step = Emit | Transition | AnswerAction | HandOff | Finish

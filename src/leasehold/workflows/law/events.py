"""What happens to workflows.

Whatever raises the epoch has the epoch that it happened at: the workflow's is one more after it. Everything
that a follower of the bus needs to know travels among the actions: who claimed a workflow, took it over, was
handed it, or lost it.
"""

from typing import Any, ClassVar

import msgspec

from leasehold.kernel.lease.events import EndEvent
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.ledger.events import Event, Filing, Stamp, Token, read_from, stamp
from leasehold.kernel.ledger.tick import Now
from leasehold.workflows.law.records import (
    PREFIX,
    action_key,
    mark_key,
    own_key,
    resource_of,
    subscription_key,
)


class ActionFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an orchestrator says about an action; who says it, and when, the event knows."""

    action_type: str
    payload: dict[str, Any] = {}
    target_node_type: str | None = None
    dependencies: tuple[str, ...] = ()
    priority: int = 5
    timeout_ms: int = 30_000
    retry_count: int = 0


class WorkflowEvent(Event, frozen=True, kw_only=True, omit_defaults=True):
    """Something that happens to one workflow."""

    raises_epoch: ClassVar[bool] = True
    """Whether the workflow's epoch is one more after it."""
    needs_lease: ClassVar[bool] = True
    """Whether only the workflow's present lease can bring it about."""

    tenant: str = "default"
    workflow_id: str
    lease_id: str
    holder: str
    token: Token
    epoch: int
    """The workflow's epoch at which it happened."""

    @property
    def resource(self) -> str:
        """Return what the orchestrator leases."""
        return resource_of(self.workflow_id)

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the workflow."""
        return (own_key(self.tenant, self.workflow_id),)

    @property
    def story(self) -> str:
        """Return at which epoch it happened, and what else there is to say."""
        detail = self.detail
        return f"epoch {self.epoch}: {detail}" if detail else f"epoch {self.epoch}"

    @property
    def detail(self) -> str:
        """Return what is to be said of this kind of event."""
        return ""

    filing = read_from("tenant", "lease_id", "resource", "holder", "token")


class WorkflowClaimed(WorkflowEvent, frozen=True, kw_only=True, omit_defaults=True, tag="workflow.claimed"):
    """A workflow began: an orchestrator claimed it for the first time."""

    raises_epoch = False
    needs_lease = False


class WorkflowTakenOver(
    WorkflowEvent, frozen=True, kw_only=True, omit_defaults=True, tag="workflow.taken_over"
):
    """An orchestrator claimed a workflow that nobody had any more."""

    needs_lease = False


class _ActionEvent(WorkflowEvent, frozen=True, kw_only=True, omit_defaults=True):
    action_id: str

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the workflow, and the action."""
        return (
            own_key(self.tenant, self.workflow_id),
            action_key(self.tenant, self.workflow_id, self.action_id),
        )


class WorkflowEmitted(_ActionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="workflow.emitted"):
    """An orchestrator emitted an action."""

    is_remembered = True

    action: ActionFacts

    detail = read_from("action.action_type")


class WorkflowTransitioned(
    WorkflowEvent, frozen=True, kw_only=True, omit_defaults=True, tag="workflow.transitioned"
):
    """An orchestrator set another state."""

    is_remembered = True

    state: str

    detail = read_from("state")


class WorkflowAnswered(_ActionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="workflow.answered"):
    """The result of an action came in."""

    is_remembered = True

    success: bool
    payload: dict[str, Any] = {}
    error: str | None = None

    @property
    def detail(self) -> str:
        """Return what became of which action."""
        return f"{self.action_id} {'succeeded' if self.success else 'failed'}"


class WorkflowHandedOff(
    WorkflowEvent, frozen=True, kw_only=True, omit_defaults=True, tag="workflow.handed_off"
):
    """An orchestrator gave its workflow to another: the transfer action, under the old lease."""

    is_remembered = True

    action_id: str
    to: str
    new_lease_id: str
    new_token: Token

    @property
    def detail(self) -> str:
        """Return who gets it."""
        return f"to {self.to}"


class WorkflowAccepted(WorkflowEvent, frozen=True, kw_only=True, omit_defaults=True, tag="workflow.accepted"):
    """The successor took the lease that it was handed."""

    raises_epoch = False

    by: str
    """The claim that took it."""


class WorkflowVacated(WorkflowEvent, frozen=True, kw_only=True, omit_defaults=True, tag="workflow.vacated"):
    """The lease of a workflow's orchestrator ended, and nobody may act for it until it is claimed."""

    raises_epoch = False

    cause: str
    """How the lease ended: expired, revoked or released."""
    reason: str = ""
    """What an operator, or the registrar, gave as the reason for a revocation."""

    @property
    def detail(self) -> str:
        """Return how the lease ended, and why."""
        return f"{self.cause} ({self.reason})" if self.reason else self.cause


class WorkflowFinished(WorkflowEvent, frozen=True, kw_only=True, omit_defaults=True, tag="workflow.finished"):
    """An orchestrator completed or cancelled its workflow, for good."""

    is_remembered = True

    outcome: str
    reason: str = ""

    detail = read_from("outcome")


class _SubscriptionEvent(Event, frozen=True, kw_only=True, omit_defaults=True):
    tenant: str = "default"
    name: str

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the subscription."""
        return (subscription_key(self.tenant, self.name),)

    @property
    def filing(self) -> Filing:
        """Return the tenant, and whoever reads."""
        return (self.tenant, None, None, self.actor, None)

    story = read_from("name")


class SubscriptionOpened(
    _SubscriptionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="workflow.subscribed"
):
    """Somebody began to read the bus."""

    position: int
    """What comes after this entry is to be read."""
    workflow_id: str = ""
    """The only workflow that is read; empty: all."""
    due: int
    """The value of the tick at which it loses its place, unless it is heard of before."""


class SubscriptionMoved(
    _SubscriptionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="workflow.acknowledged"
):
    """A reader has done with everything up to a position."""

    position: int
    """Everything up to this entry is done with."""
    due: int
    """The value of the tick at which it loses its place, unless it is heard of before."""


class SubscriptionCarried(
    _SubscriptionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="workflow.subscription_carried"
):
    """A subscription of an earlier era was given what it had left, on the clock of now."""

    due: int
    """The value of the tick at which it loses its place now."""


class SubscriptionClosed(
    _SubscriptionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="workflow.unsubscribed"
):
    """Somebody stopped reading; or a reader was not heard of for so long that it lost its place."""

    is_remembered = True

    position: int
    """How far it had come."""
    lost: bool = False
    """Whether it lost its place because nothing was heard of it."""


class GuardMarked(Event, frozen=True, kw_only=True, omit_defaults=True, tag="workflow.marked"):
    """A guard let an action through, and it was processed; or the bus told it of another lease or epoch."""

    tenant: str = "default"
    name: str
    workflow_id: str
    lease_id: str
    token: Token
    epoch: int
    """The last one that was processed, or went elsewhere."""
    action_id: str
    """Empty: it was no action."""

    @property
    def resource(self) -> str:
        """Return what the orchestrator leases."""
        return resource_of(self.workflow_id)

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the guard's position."""
        return (mark_key(self.tenant, self.workflow_id, self.name),)

    @property
    def story(self) -> str:
        """Return which guard has come how far."""
        return f"{self.name} at epoch {self.epoch}"

    filing = read_from("tenant", "lease_id", "resource", "actor", "token")


class _UnderLease(Stamp):
    workflow_id: str
    lease_id: str
    holder: str
    token: Token
    epoch: int


def under_lease(lease: Lease | EndEvent, epoch: int, now: Now, actor: str | None = None) -> _UnderLease:
    """Return what every event says of something that happens to a workflow under a lease, or with its end.

    The actor is its holder, if nobody else is named.
    """
    return {
        **stamp(now, lease.tenant, actor or lease.holder),
        "workflow_id": lease.resource.removeprefix(PREFIX),
        "lease_id": lease.lease_id,
        "holder": lease.holder,
        "token": lease.token,
        "epoch": epoch,
    }


EVENTS: tuple[type[Event], ...] = (
    WorkflowClaimed,
    WorkflowTakenOver,
    WorkflowEmitted,
    WorkflowTransitioned,
    WorkflowAnswered,
    WorkflowHandedOff,
    WorkflowAccepted,
    WorkflowVacated,
    WorkflowFinished,
    SubscriptionOpened,
    SubscriptionMoved,
    SubscriptionCarried,
    SubscriptionClosed,
    GuardMarked,
)
PUBLISHED = tuple(kind for kind in EVENTS if issubclass(kind, WorkflowEvent))
"""What travels on the bus."""

"""What is kept about workflows: many small records, each under the key of its tenant.

A workflow's own record has its epoch, its state, and the lease of whoever may act for it. Beside it there is
one record per action, so that an action can be answered once and never emitted twice; one per subscription to
the bus; and one per guard that keeps its position here.
"""

import msgspec

from leasehold.kernel.ledger.events import Token
from leasehold.kernel.ledger.key import Part, spell_key, under
from leasehold.kernel.ledger.tick import Tick

WORKFLOW = "workflow"
"""The name of the family."""

OWN, ACTION, SUBSCRIPTION, MARK = "own", "action", "subscription", "mark"
"""The kinds of record, as the second part of their keys."""

INITIALIZED, STEP_COMPLETED, STEP_FAILED = "initialized", "step_completed", "step_failed"
COMPLETED, CANCELLED = "completed", "cancelled"
"""States of a workflow; between them, its orchestrator can set any other."""

RECENT_ACTIONS = 64
"""How many actions a guard's position remembers by id, to recognise them when they are delivered again."""

PREFIX = "workflow:"
"""Of the resource that stands for a workflow."""


class Workflow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="workflow"):
    """One workflow, and who may act for it."""

    workflow_id: str
    state: str
    """As its orchestrator has set it last."""
    epoch: int
    """The epoch of whatever happens next; it only rises, by one each time."""
    token: Token
    """Of the last lease that anybody had."""
    started_at_ns: int
    """Wall time of the first claim."""
    changed_at_ns: int
    """Wall time of the last change."""
    lease_id: str = ""
    """The lease of its orchestrator; empty while nobody has one."""
    holder: str = ""
    """Who has that lease."""
    accepted_by: str = ""
    """The claim that took a handed-off lease; empty while the successor has not come, or for other leases."""
    handed_off: bool = False
    """Whether the present lease came from another orchestrator, so that it has to be accepted, once."""
    ended_at_ns: int | None = None
    """Wall time of its completion or cancellation."""

    @property
    def is_ended(self) -> bool:
        """Say whether the workflow was completed or cancelled."""
        return self.ended_at_ns is not None


class EmittedAction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="action"):
    """An action that was emitted, and whether its result has come."""

    action_id: str
    workflow_id: str
    lease_id: str
    epoch: int
    at_ns: int
    succeeded: bool | None = None
    """None: no result yet."""


class Subscription(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="subscription"):
    """A reader of the bus, and how far it has come."""

    name: str
    position: int
    """The last ledger position that it has acknowledged."""
    due: Tick
    """When it loses its place, unless it is heard of before."""
    workflow_id: str = ""
    """The only workflow that it reads; empty: all of the tenant's."""


class Mark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="mark"):
    """How far a guard has come that keeps its position here."""

    name: str
    workflow_id: str
    lease_id: str
    token: Token
    epoch: int
    """Of the last action that was processed."""
    recent: tuple[str, ...] = ()


Record = Workflow | EmittedAction | Subscription | Mark


def resource_of(workflow_id: str) -> str:
    """Return the resource that the orchestrator of a workflow has to lease."""
    return PREFIX + workflow_id


def workflow_of(resource: str) -> str | None:
    """Return the workflow that a resource stands for; None if it stands for none."""
    return resource.removeprefix(PREFIX) if resource.startswith(PREFIX) else None


def own_key(tenant: str, workflow_id: str) -> str:
    """Return the key of a workflow."""
    return spell_key(tenant, OWN, workflow_id)


def action_key(tenant: str, workflow_id: str, action_id: str) -> str:
    """Return the key of an action."""
    return spell_key(tenant, ACTION, workflow_id, action_id)


def subscription_key(tenant: str, name: str) -> str:
    """Return the key of a subscription."""
    return spell_key(tenant, SUBSCRIPTION, name)


def mark_key(tenant: str, workflow_id: str, name: str) -> str:
    """Return the key of a guard's position."""
    return spell_key(tenant, MARK, workflow_id, name)


def all_of(tenant: str, kind: str, *more: Part) -> tuple[str, str]:
    """Return the range of all records of a kind."""
    return under(tenant, kind, *more)

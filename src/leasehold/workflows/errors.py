"""What can go wrong with workflows, as exceptions of leasehold's one tree.

Each has an `error_code`, a `context` with the facts, and a `correlation_id` that is also in the log.
`LEASE_EXPIRED` and `LEASE_NOT_FOUND` are kinds of the errors with these codes that any lease can meet.
"""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from leasehold.errors import LeaseExpired, LeaseholdError, LeaseLost, LeaseNotFound, Refused

_SHOWN_APART = ("correlation_id", "request_id", "detail")


class WorkflowError(LeaseholdError):
    """What all errors of workflows have in common."""

    correlation_id: str
    """What to look for in the logs."""

    def __init__(self, message: str, **facts: object) -> None:
        acquired_at_ns = facts.pop("acquired_at_ns", None)
        if isinstance(acquired_at_ns, int):
            facts["acquired_at"] = datetime.fromtimestamp(acquired_at_ns / 1_000_000_000, UTC).isoformat()
        facts["correlation_id"] = facts.get("correlation_id") or str(uuid4())
        super().__init__(message, **facts)

    @property
    def error_code(self) -> str:
        """The stable code."""
        return self.code

    @property
    def message(self) -> str:
        """What happened, and what to do next."""
        return str(self)

    @property
    def context(self) -> dict[str, Any]:
        """The facts: leases, epochs, a recommendation."""
        return {name: fact for name, fact in self.facts.items() if name not in _SHOWN_APART}


class LeaseViolation(LeaseLost, WorkflowError, code="LEASE_VIOLATION", http_status=409):
    """The lease is not the one that allows acting for the workflow."""


class WorkflowLeaseExpired(LeaseExpired, WorkflowError, code="LEASE_EXPIRED", http_status=410):
    """The lease on the workflow has expired. It cannot be renewed any more: claim the workflow again."""


class WorkflowLeaseNotFound(LeaseNotFound, WorkflowError, code="LEASE_NOT_FOUND", http_status=404):
    """There is no such lease on a workflow."""


class StaleEpoch(Refused, WorkflowError, code="STALE_EPOCH", http_status=409):
    """The epoch is one of the past: something else has happened since."""


class FutureEpoch(Refused, WorkflowError, code="FUTURE_EPOCH", http_status=409):
    """The epoch has not come yet: something in between is missing."""


class WorkflowNotFound(Refused, WorkflowError, code="WORKFLOW_NOT_FOUND", http_status=404):
    """There is no such workflow."""


class WorkflowEnded(Refused, WorkflowError, code="WORKFLOW_ENDED", http_status=409):
    """The workflow was completed or cancelled."""


class ActionNotFound(Refused, WorkflowError, code="ACTION_NOT_FOUND", http_status=404):
    """The workflow has emitted no such action."""


class ActionExists(Refused, WorkflowError, code="ACTION_EXISTS", http_status=409):
    """An action with this id was emitted before."""


class ActionAnswered(Refused, WorkflowError, code="ACTION_ANSWERED", http_status=409):
    """The result of the action came in before."""


class ActionTimeout(WorkflowError, TimeoutError, code="ACTION_TIMEOUT", http_status=504):
    """The handler of an action took longer than the action's `timeout_ms`."""


class SubscriptionNotFound(Refused, WorkflowError, code="SUBSCRIPTION_NOT_FOUND", http_status=404):
    """There is no such subscription, or it has lost its place."""


class SubscriptionExists(Refused, WorkflowError, code="SUBSCRIPTION_EXISTS", http_status=409):
    """A subscription of this name reads something else."""


_KINDS: dict[str, type[WorkflowError]] = {
    kind.code: kind for kind in (LeaseViolation, WorkflowLeaseExpired, WorkflowLeaseNotFound)
}


def as_workflow_error(error: LeaseholdError, correlation_id: str | None = None) -> LeaseholdError:
    """Return an error as one of a workflow, where its code is one of the pattern's."""
    kind = type(error) if isinstance(error, WorkflowError) else _KINDS.get(error.code)
    if kind is None:
        return error
    facts = error.facts if correlation_id is None else error.facts | {"correlation_id": correlation_id}
    made = kind(str(error), **facts)
    made.__cause__ = error.__cause__
    return made

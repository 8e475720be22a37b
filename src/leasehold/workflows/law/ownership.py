"""Who may act for a workflow: the holder of its lease, at its epoch, and nobody else.

A refusal has one of the codes of the pattern, and as facts what its caller needs to understand it.
"""

from typing import Any

from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.events import stamp
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Now
from leasehold.workflows.law.commands import Step
from leasehold.workflows.law.records import WORKFLOW, Workflow, own_key

LEASE_VIOLATION, LEASE_EXPIRED, LEASE_NOT_FOUND = "LEASE_VIOLATION", "LEASE_EXPIRED", "LEASE_NOT_FOUND"
STALE_EPOCH, FUTURE_EPOCH = "STALE_EPOCH", "FUTURE_EPOCH"
WORKFLOW_NOT_FOUND, WORKFLOW_ENDED = "WORKFLOW_NOT_FOUND", "WORKFLOW_ENDED"
ACTION_NOT_FOUND, ACTION_EXISTS, ACTION_ANSWERED = "ACTION_NOT_FOUND", "ACTION_EXISTS", "ACTION_ANSWERED"
SUBSCRIPTION_NOT_FOUND, SUBSCRIPTION_EXISTS = "SUBSCRIPTION_NOT_FOUND", "SUBSCRIPTION_EXISTS"

CLAIM_AGAIN = "claim the workflow again"
REFRESH = "Orchestrator should refresh state"
CHECK_MISSED = "Check for missed state updates"


def refuse(rule: str, detail: str, *, lease_id: str | None = None, **facts: object) -> Refusal:
    """Refuse with a code of this family."""
    return Refusal(code=RefusalCode.REFUSED, rule=rule, detail=detail, lease_id=lease_id, facts=facts)


def workflow(tenant: str, workflow_id: str, draft: Draft) -> Workflow | None:
    """Return a workflow's own record."""
    record: Workflow | None = draft.get(WORKFLOW, own_key(tenant, workflow_id))
    return record


def workflow_not_found(workflow_id: str) -> Refusal:
    """Refuse to do anything with a workflow that there is not."""
    return refuse(WORKFLOW_NOT_FOUND, f"workflow {workflow_id} does not exist", workflow_id=workflow_id)


def owned(command: Step, draft: Draft) -> Workflow | Refusal:
    """Return the workflow that a command is about, if its caller may act for it at this epoch."""
    record = workflow(command.tenant, command.workflow_id, draft)
    if record is None:
        return workflow_not_found(command.workflow_id)
    if record.is_ended:
        return ended(record)
    lease: Lease | None = draft.get(LEASE, command.lease_id)
    if lease is None or lease.tenant != command.tenant:
        return lease_not_found(command.lease_id)
    refusal = not_owner(record, lease, command.holder, draft)
    return refusal or _check_epoch(command, record) or record


def step(command: Step, record: Workflow, now: Now) -> dict[str, Any]:
    """Return what the event of a step says that the orchestrator of a workflow takes."""
    return {
        **stamp(now, command.tenant, command.holder),
        "request": command.request_key,
        "workflow_id": command.workflow_id,
        "lease_id": command.lease_id,
        "holder": command.holder,
        "token": record.token,
        "epoch": record.epoch,
    }


def not_owner(record: Workflow, lease: Lease, holder: str, draft: Draft) -> Refusal | None:
    """Refuse whoever does not hold the workflow's present lease, by what time has done to it."""
    stands = not lease.is_terminal and lease.ticks_remaining(draft.now.tick) > 0
    if stands and record.lease_id == lease.lease_id and lease.holder == holder:
        return None
    superseded = record.lease_id not in ("", lease.lease_id)
    if not stands and not superseded and lease.state in (LeaseState.EXPIRED, LeaseState.ACTIVE):
        return refuse(
            LEASE_EXPIRED,
            f"lease {lease.lease_id} on workflow {record.workflow_id} has expired; {CLAIM_AGAIN}",
            lease_id=lease.lease_id,
            acquired_at_ns=lease.last_renewed_at_ns or lease.issued_at_ns,
            ttl_seconds=lease.ttl_ns / 1_000_000_000,
            current_epoch=record.epoch,
            recommendation=CLAIM_AGAIN,
        )
    return violation(record, lease.lease_id, _why(record, lease, superseded=superseded))


def _why(record: Workflow, lease: Lease, *, superseded: bool) -> str:
    if superseded:
        return f"{record.holder} has workflow {record.workflow_id} now"
    if lease.is_terminal:
        return f"it was {lease.state}: {lease.end_reason}" if lease.end_reason else f"it was {lease.state}"
    if record.lease_id:
        return f"it belongs to {lease.holder}"
    return f"it is no lease of workflow {record.workflow_id}"


def violation(record: Workflow, received: str, why: str) -> Refusal:
    """Refuse a lease that is not the workflow's."""
    return refuse(
        LEASE_VIOLATION,
        f"lease {received} does not allow acting for workflow {record.workflow_id}: {why}; {CLAIM_AGAIN}",
        expected_lease=record.lease_id,
        received_lease=received,
        current_epoch=record.epoch,
        recommendation=CLAIM_AGAIN,
    )


def ended(record: Workflow) -> Refusal:
    """Refuse to do anything more in a workflow that was completed or cancelled."""
    return refuse(
        WORKFLOW_ENDED,
        f"workflow {record.workflow_id} was {record.state}; start another one under another id",
        workflow_id=record.workflow_id,
        current_epoch=record.epoch,
    )


def lease_not_found(lease_id: str) -> Refusal:
    """Refuse a lease that does not exist, or is none of a workflow."""
    return refuse(LEASE_NOT_FOUND, f"lease {lease_id} not found", lease_id=lease_id)


def _check_epoch(command: Step, record: Workflow) -> Refusal | None:
    if command.epoch == record.epoch:
        return None
    stale = command.epoch < record.epoch
    kind, sign = ("Stale", "<") if stale else ("Future", ">")
    return refuse(
        STALE_EPOCH if stale else FUTURE_EPOCH,
        f"{kind} action: epoch {command.epoch} {sign} {record.epoch}",
        action_epoch=command.epoch,
        current_epoch=record.epoch,
        recommendation=REFRESH if stale else CHECK_MISSED,
    )

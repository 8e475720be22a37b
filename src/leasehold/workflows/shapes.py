"""What programs are told about workflows: by `--json`, and by the server."""

from typing import Any

import msgspec

from leasehold.shapes import lease_shape, utc
from leasehold.workflows.models import Action, Delivery
from leasehold.workflows.questions import WorkflowStatus


def workflow_shape(status: WorkflowStatus) -> dict[str, Any]:
    """Return a workflow, as it stands at the moment of the answer."""
    workflow = status.workflow
    return {
        "workflow_id": workflow.workflow_id,
        "state": workflow.state,
        "epoch": workflow.epoch,
        "holder": workflow.holder if status.is_owned else None,
        "lease": None if status.lease is None else lease_shape(status.lease),
        "handed_off": workflow.handed_off,
        "accepted": bool(workflow.accepted_by),
        "started_at": utc(workflow.started_at_ns),
        "changed_at": utc(workflow.changed_at_ns),
        "ended_at": utc(workflow.ended_at_ns),
    }


def message_shape(delivery: Delivery) -> dict[str, Any]:
    """Return a message of the bus, and where it stands."""
    kind = "action" if isinstance(delivery.message, Action) else "event"
    shape: dict[str, Any] = msgspec.to_builtins(delivery.message)
    return {"position": delivery.position, "kind": kind, "token": delivery.token, **shape}

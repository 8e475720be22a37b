"""What can be asked about workflows, and how it is answered from one look at the store."""

from collections.abc import Mapping
from typing import Any

import msgspec

from leasehold.engine.port import Snapshot
from leasehold.engine.questions import LeaseStatus, Question, check_limit
from leasehold.engine.registrar import Registrar, Reply
from leasehold.engine.status import read_leases, status_of, statuses_of
from leasehold.kernel.ledger.commands import Right
from leasehold.kernel.ledger.key import spell_key
from leasehold.kernel.ledger.records import Found, Keys, Scan, Wanted
from leasehold.workflows.law.records import (
    OWN,
    SUBSCRIPTION,
    WORKFLOW,
    EmittedAction,
    Mark,
    Subscription,
    Workflow,
    action_key,
    all_of,
    mark_key,
    own_key,
)

_AFTER = "\x00"


class WorkflowStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow, and how the lease on it stands at the moment of the answer."""

    workflow: Workflow
    lease: LeaseStatus | None = None
    """None: nobody has one."""

    @property
    def is_owned(self) -> bool:
        """Say whether somebody may act for the workflow at this moment."""
        return self.lease is not None and self.lease.is_live


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a workflow and one of its actions."""

    status: WorkflowStatus | None = None
    action: EmittedAction | None = None
    mark: Mark | None = None
    lease: LeaseStatus | None = None
    """The lease that was asked about, whether it is the workflow's or not."""


class FindWorkflow(Question[Known], frozen=True, kw_only=True, tag="find_workflow"):
    """Ask how a workflow stands, and about one of its actions, a guard's position, or a lease."""

    right = Right.LOOK

    workflow_id: str
    action_id: str = ""
    guard: str = ""
    lease_id: str = ""


class ListWorkflows(Question[list[WorkflowStatus]], frozen=True, kw_only=True, tag="list_workflows"):
    """Ask for one page of workflows, in the order of their ids."""

    right = Right.LOOK

    after: str = ""
    limit: int = 100


class ListSubscriptions(Question[list[Subscription]], frozen=True, kw_only=True, tag="list_subscriptions"):
    """Ask who reads the bus, and how far each has come."""

    right = Right.LOOK
    tells_time = False


def find_workflow(registrar: Registrar, question: FindWorkflow, snapshot: Snapshot) -> Known:
    """Look at one workflow."""
    del registrar
    tenant, workflow_id = question.one_tenant, question.workflow_id
    keys = {
        "status": own_key(tenant, workflow_id),
        "action": action_key(tenant, workflow_id, question.action_id),
        "mark": mark_key(tenant, workflow_id, question.guard),
    }
    records = _read(snapshot, Wanted(keys=set(keys.values()))).records
    found = {name: records.get(key) for name, key in keys.items()}
    record = found["status"]
    status = None if record is None else _statuses([record], snapshot)[0]
    asked = snapshot.lease(question.lease_id) if question.lease_id else None
    mine = asked is not None and asked.tenant == tenant
    lease = status_of(asked, snapshot) if asked is not None and mine else None
    return Known(status=status, action=found["action"], mark=found["mark"], lease=lease)


def list_workflows(registrar: Registrar, question: ListWorkflows, snapshot: Snapshot) -> list[WorkflowStatus]:
    """Look at one page of workflows."""
    del registrar
    check_limit(question.limit)
    tenant = question.one_tenant
    low, high = all_of(tenant, OWN)
    if question.after:
        low = spell_key(tenant, OWN, question.after) + _AFTER
    return _statuses(_scanned(snapshot, Scan(low, high, question.limit)), snapshot)


def list_subscriptions(
    registrar: Registrar, question: ListSubscriptions, snapshot: Snapshot
) -> list[Subscription]:
    """Look at all subscriptions of a tenant: there are few."""
    del registrar
    return _scanned(snapshot, Scan(*all_of(question.one_tenant, SUBSCRIPTION)))


REPLIES: Mapping[type[Question[Any]], Reply] = {
    FindWorkflow: find_workflow,
    ListSubscriptions: list_subscriptions,
    ListWorkflows: list_workflows,
}
"""Who answers what."""


def _statuses(workflows: list[Workflow], snapshot: Snapshot) -> list[WorkflowStatus]:
    """Say how workflows stand: the leases of all of them are read at once."""
    lease_ids = {one.lease_id for one in workflows if one.lease_id}
    found = list(read_leases(snapshot, keys=lease_ids).records.values()) if lease_ids else []
    leases = {one.lease.lease_id: one for one in statuses_of(found, snapshot)}
    return [WorkflowStatus(workflow=one, lease=leases.get(one.lease_id)) for one in workflows]


def _scanned(snapshot: Snapshot, scan: Scan) -> list[Any]:
    found = _read(snapshot, Wanted(scans={scan}))
    return [found.records[key] for key in found.scans[scan]]


def _read(snapshot: Snapshot, wanted: Wanted) -> Found:
    found: Found = snapshot.read(Keys(families={WORKFLOW: wanted})).families[WORKFLOW]
    return found

"""Everything that must be true of workflows in every state that the law can reach."""

from collections.abc import Iterable, Iterator

from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.key import split_key
from leasehold.kernel.ledger.state import State
from leasehold.workflows.law.limits import ENDED_STATES
from leasehold.workflows.law.records import (
    RECENT_ACTIONS,
    WORKFLOW,
    EmittedAction,
    Mark,
    Record,
    Subscription,
    Workflow,
    action_key,
    mark_key,
    own_key,
    resource_of,
    subscription_key,
)


def invariants(state: State) -> Iterable[str]:
    """Return a sentence for everything that must always hold of workflows, and does not."""
    leases: dict[str, Lease] = state.of(LEASE)
    for key, record in state.of(WORKFLOW).items():
        tenant = split_key(key)[0]
        if key != _key_of(tenant, record):
            yield f"{record} is filed under {key!r}"
        if isinstance(record, Workflow):
            yield from (f"workflow {record.workflow_id} {problem}" for problem in _faults(record))
            if record.lease_id:
                yield from _lease_stands(record, tenant, leases.get(record.lease_id))
        elif isinstance(record, Mark) and len(record.recent) > RECENT_ACTIONS:
            yield f"guard {record.name} remembers {len(record.recent)} actions"


def _key_of(tenant: str, record: Record) -> str:
    if isinstance(record, Workflow):
        return own_key(tenant, record.workflow_id)
    if isinstance(record, EmittedAction):
        return action_key(tenant, record.workflow_id, record.action_id)
    if isinstance(record, Subscription):
        return subscription_key(tenant, record.name)
    return mark_key(tenant, record.workflow_id, record.name)


def _faults(record: Workflow) -> Iterator[str]:
    if record.epoch < 0:
        yield f"has epoch {record.epoch}"
    if record.is_ended != (record.state in ENDED_STATES):
        yield f"is {record.state}, and {'has' if record.is_ended else 'has not'} ended"
    if record.is_ended and record.lease_id:
        yield f"has ended, and {record.holder} may act for it"
    if bool(record.lease_id) != bool(record.holder):
        yield f"has lease {record.lease_id!r} and orchestrator {record.holder!r}"
    if record.accepted_by and not record.handed_off:
        yield "was accepted, and not handed off"


def _lease_stands(record: Workflow, tenant: str, lease: Lease | None) -> Iterator[str]:
    """Nobody may act under a lease that has ended: its end has left the workflow to the next claim."""
    name = f"workflow {record.workflow_id}"
    if lease is None or lease.state is not LeaseState.ACTIVE:
        yield f"{name} belongs to lease {record.lease_id}, which does not stand"
        return
    said = (lease.tenant, lease.resource, lease.holder, lease.token)
    if said != (tenant, resource_of(record.workflow_id), record.holder, record.token):
        yield f"{name} belongs to lease {record.lease_id}, which is another's: {said}"

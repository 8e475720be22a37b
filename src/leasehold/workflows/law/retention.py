"""What pruning may drop of workflows, and what it must not pass.

A workflow that ended goes with its own end, as a lease does, and the positions of its guards go with it.
Actions go by their age: one whose emission is older than what is kept can be answered no more. A workflow
that has not ended stays for ever, because its epoch must never fall.
"""

from collections.abc import Iterable

from leasehold.kernel.ledger.events import StoreCheckpointed
from leasehold.kernel.ledger.family import Soft
from leasehold.kernel.ledger.key import split_key
from leasehold.kernel.ledger.state import State
from leasehold.workflows.law.records import (
    WORKFLOW,
    EmittedAction,
    Mark,
    Subscription,
    Workflow,
    own_key,
)


def forgotten(state: State, checkpoint: StoreCheckpointed) -> Iterable[str]:
    """Return the records that are gone after a checkpoint."""
    records = state.of(WORKFLOW)
    before_ns = checkpoint.ended_before_ns
    gone = [
        key
        for key, record in records.items()
        if isinstance(record, Workflow)
        and record.ended_at_ns is not None
        and record.ended_at_ns < before_ns
        and record.token < checkpoint.token_below
    ]
    yield from gone
    own_keys = set(gone)
    for key, record in records.items():
        if isinstance(record, EmittedAction) and record.at_ns < before_ns:
            yield key
        elif isinstance(record, Mark):
            own = own_key(split_key(key)[0], record.workflow_id)
            if own in own_keys or own not in records:
                yield key


def keeps(state: State, soft: Soft) -> int | None:
    """Return how far the slowest subscriber has come, of all tenants; None if there is none."""
    del soft
    positions = [one.position for one in state.of(WORKFLOW).values() if isinstance(one, Subscription)]
    return min(positions, default=None)

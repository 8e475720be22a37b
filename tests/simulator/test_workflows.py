"""Worlds in which workflows are led beside leases: nothing is wrong with them, and what is wrong is found.

Each mistake is put where it would be made, and the simulator, or those who play workflows, have to say which
promise it breaks. Where the family's own invariants would notice it first, they are switched off.
"""

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.events import StoreCheckpointed
from leasehold.kernel.ledger.state import State
from leasehold.workflows.law import claiming, following, ownership, stepping
from leasehold.workflows.law import evolve as evolving
from leasehold.workflows.law.commands import Emit
from leasehold.workflows.law.events import WorkflowHandedOff
from leasehold.workflows.law.family import workflow_family
from leasehold.workflows.law.records import WORKFLOW, Workflow, own_key
from simulator import simulate
from simulator.workflow_troupe import WorkflowTroupe
from tests import lanes
from tests.mutations import search

SEEDS = 40


def nothing_to_hold(state: object) -> tuple[str, ...]:
    del state
    return ()


@pytest.mark.deep
def test_workflows_keep_their_promises_whatever_goes_wrong() -> None:
    troupe = WorkflowTroupe()
    for seed in range(SEEDS if lanes.is_full_length() else SEEDS // 3):
        simulate(seed, troupes=[troupe])
    noted = sum((Counter(play.noted) for play in troupe.plays), Counter[str]())
    # A troupe that has become tame would find nothing either.
    usual, rare = (100, 10) if lanes.is_full_length() else (50, 3)
    often = ("WorkflowClaimed", "WorkflowTakenOver", "WorkflowEmitted", "WorkflowVacated", "repeated")
    assert min(noted[name] for name in (*often, "refused LEASE_VIOLATION", "refused LEASE_EXPIRED")) > usual
    seldom = ("WorkflowTransitioned", "WorkflowHandedOff", "WorkflowFinished", "WorkflowAccepted", "read")
    refusals = ("refused STALE_EPOCH", "refused FUTURE_EPOCH", "refused WORKFLOW_ENDED")
    assert min(noted[name] for name in (*seldom, *refusals, "marked", "let go of", "started over")) > rare


def test_a_world_with_workflows_is_the_same_every_time() -> None:
    worlds: list[list[str]] = [[], []]
    for lines in worlds:
        simulate(7, trace=lines.append, troupes=[WorkflowTroupe()])
    assert worlds[0] == worlds[1]
    assert any("WorkflowEmitted" in line for line in worlds[0])


def test_a_lease_that_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def trusting(command: Any, draft: Draft) -> Any:
        record = draft.get(WORKFLOW, own_key(command.tenant, command.workflow_id))
        lease = None if record is None or record.is_ended else draft.get(LEASE, command.lease_id)
        return ownership.refuse("WORKFLOW_NOT_FOUND", "") if lease is None else record

    monkeypatch.setattr(stepping, "owned", trusting)
    assert found()


def test_time_that_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    # A step of whoever has the workflow's lease, which has run out, and nobody has noticed.
    def sleepy(command: Any, draft: Draft) -> Any:
        record = draft.get(WORKFLOW, own_key(command.tenant, command.workflow_id))
        if record is not None and record.lease_id == command.lease_id and record.epoch == command.epoch:
            return record
        return ownership.owned(command, draft)

    monkeypatch.setattr(stepping, "owned", sleepy)
    assert found("after its lease had run out")


def test_an_epoch_that_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(command: Any, draft: Draft) -> Any:
        record = draft.get(WORKFLOW, own_key(command.tenant, command.workflow_id))
        fixed = command if record is None else replace(command, epoch=record.epoch)
        return ownership.owned(fixed, draft)

    monkeypatch.setattr(stepping, "owned", careless)
    assert found("carried out at another epoch")


def test_an_epoch_that_does_not_rise() -> None:
    def stuck(record: Any, event: Any, key: str) -> Any:
        after = evolving.evolve(record, event, key)
        if isinstance(after, Workflow) and isinstance(event, WorkflowHandedOff):
            return replace(after, epoch=after.epoch - 1)
        return after

    assert found("at epoch", evolve=stuck)


def test_a_retry_that_is_carried_out_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    remembered = Draft.remembered
    monkeypatch.setattr(
        Draft,
        "remembered",
        lambda self, command: None if isinstance(command, Emit) else remembered(self, command),
    )
    assert found("was carried out before, and refused")


def test_an_end_of_a_lease_that_workflows_do_not_react_to() -> None:
    assert found("which does not stand", reacts={})
    assert found("which has ended", reacts={}, invariants=nothing_to_hold)


def test_a_takeover_of_what_somebody_has(monkeypatch: pytest.MonkeyPatch) -> None:
    # A handoff that leaves the workflow with the old lease.
    def forgetful(record: Any, event: Any, key: str) -> Any:
        after = evolving.evolve(record, event, key)
        if isinstance(after, Workflow) and isinstance(event, WorkflowHandedOff):
            return replace(after, lease_id=event.lease_id, holder=event.holder, token=event.token)
        return after

    assert found(evolve=forgetful, invariants=nothing_to_hold)


def test_a_handed_off_lease_that_is_taken_twice() -> None:
    family = workflow_family()

    def generous(command: Any, draft: Draft) -> Any:
        lease = draft.get(LEASE, command.lease_id)
        record = None if lease is None else draft.get(WORKFLOW, own_key(command.tenant, lease.resource[9:]))
        if record is not None and record.accepted_by not in ("", command.request_id):
            draft.view.parts[WORKFLOW].put(
                own_key(command.tenant, record.workflow_id), replace(record, accepted_by="")
            )
        return claiming.accept(command, draft)

    rules = {kind: generous if rule is claiming.accept else rule for kind, rule in family.rules.items()}
    assert found("taken twice", rules=rules)


def test_a_subscription_that_goes_back() -> None:
    def lax(record: Any, event: Any, key: str) -> Any:
        return evolving.evolve(record if record is None else replace_position(record), event, key)

    def replace_position(record: Any) -> Any:
        return replace(record, position=0) if hasattr(record, "position") else record

    def eager(command: Any, draft: Draft) -> Any:
        record = following._subscription(command.tenant, command.name, draft)
        if record is None:
            return following.not_found(command.name)
        following._move(record, command.position, command, draft)
        return following._subscribed(command, draft)

    family = workflow_family()
    rules = {kind: eager if rule is following.acknowledge else rule for kind, rule in family.rules.items()}
    assert found("goes back", rules=rules, evolve=lax)


def test_a_workflow_that_is_pruned_while_it_is_under_way() -> None:
    def careless(state: State, checkpoint: StoreCheckpointed) -> list[str]:
        return [
            key
            for key, record in state.of(WORKFLOW).items()
            if isinstance(record, Workflow) and not record.lease_id and record.token < checkpoint.token_below
        ]

    assert found("is under way", forgotten=careless)


def found(*says: str, **others: Any) -> str:
    """Return the first promise that is seen to be broken by a family with something else in its place."""
    family = search.change_family(workflow_family(), **others)
    return search.found(
        *says, seeds=range(SEEDS), play=lambda seed: simulate(seed, troupes=[WorkflowTroupe(family)])
    )

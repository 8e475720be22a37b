"""What no command about workflows may say, whatever the records are."""

from typing import Any

import pytest

from leasehold.kernel.ledger.limits import METADATA_BYTES
from leasehold.workflows.law.events import ActionFacts
from tests.workflows.law.conftest import Office, refused


@pytest.fixture
def claimed(office: Office) -> Office:
    office.claim()
    return office


def a(**facts: Any) -> ActionFacts:
    return ActionFacts(**({"action_type": "compute"} | facts))


@pytest.mark.parametrize(
    ("action", "field"),
    [
        (a(action_type=""), "action_type"),
        (a(action_type="x" * 129), "action_type"),
        (a(action_type="lease_transfer"), "action_type"),
        (a(target_node_type=""), "target_node_type"),
        (a(target_node_type="é" * 101), "target_node_type"),
        (a(priority=0), "priority"),
        (a(priority=11), "priority"),
        (a(timeout_ms=99), "timeout_ms"),
        (a(timeout_ms=300_001), "timeout_ms"),
        (a(retry_count=-1), "retry_count"),
        (a(retry_count=11), "retry_count"),
        (a(dependencies=("a",)), "dependencies"),
        (a(dependencies=("",)), "dependencies"),
        (a(dependencies=tuple(map(str, range(65)))), "dependencies"),
        (a(payload={"x": "y" * METADATA_BYTES}), "payload"),
        (a(payload={"x": float("nan")}), "payload"),
    ],
)
def test_an_action_out_of_its_limits_is_refused(claimed: Office, action: ActionFacts, field: str) -> None:
    outcome = claimed.emit(0, "a", action=action)

    assert refused(outcome) in ("INVALID_INPUT", "LIMIT_EXCEEDED")
    assert outcome.field == field
    assert claimed.types() == ["claimed"]


def test_an_action_at_its_limits_is_emitted(claimed: Office) -> None:
    edges = [
        a(target_node_type="é" * 100, priority=1, timeout_ms=100, retry_count=0),
        a(priority=10, timeout_ms=300_000, retry_count=10, dependencies=tuple(map(str, range(64)))),
    ]
    for epoch, action in enumerate(edges):
        assert claimed.emit(epoch, f"edge-{epoch}", action=action).epoch == epoch


@pytest.mark.parametrize("field", ["tenant", "request_id", "workflow_id", "lease_id", "holder", "action_id"])
@pytest.mark.parametrize("text", ["", "x" * 129, "a\x01b"])
def test_a_name_that_is_empty_too_long_or_unprintable_is_refused(
    claimed: Office, field: str, text: str
) -> None:
    outcome = claimed.emit(0, **{field: text})

    assert refused(outcome) in ("INVALID_INPUT", "LIMIT_EXCEEDED")
    assert outcome.field == field


def test_numbers_out_of_range_are_refused(claimed: Office) -> None:
    assert claimed.emit(-1).field == "epoch"
    assert claimed.emit(2**63).field == "epoch"
    assert claimed.subscribe(position=-1).field == "position"
    assert claimed.mark(0, token=-1).field == "token"


@pytest.mark.parametrize("state", ["", "completed", "cancelled", "x" * 129])
def test_a_state_that_cannot_be_set_is_refused(claimed: Office, state: str) -> None:
    assert claimed.transition(0, state).field == "state"


def test_ends_handoffs_and_results_have_limits_of_their_own(claimed: Office) -> None:
    assert claimed.finish(0, "exploded").field == "outcome"
    assert claimed.finish(0, reason="x" * 1025).field == "reason"
    assert claimed.hand_off(0, ttl_ns=0).field == "ttl"
    assert claimed.hand_off(0, to="").field == "to"
    assert claimed.answer(0, payload={"x": object()}).field == "payload"
    assert claimed.answer(0, error="x" * 1025).field == "error"
    assert claimed.answer(0, error="").rule == "ACTION_NOT_FOUND"
    assert claimed.claim("L2", ttl=0, workflow_id="v").field == "ttl"
    assert claimed.claim("L2", metadata={"x": {1}}, workflow_id="v").field == "metadata"
    assert claimed.types() == ["claimed"]


def test_a_handoff_may_say_how_long_the_new_lease_lasts(claimed: Office) -> None:
    assert claimed.hand_off(0, ttl_ns=5_000_000_000).lease.ttl_ns == 5_000_000_000

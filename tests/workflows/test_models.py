"""The values that travel: immutable, within their limits, and nothing that they do not know."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import pytest

from leasehold.errors import InvalidInput, LimitExceeded
from leasehold.workflows import Action, ActionType, Event, EventType, LeaseMetadata, Result

LEASE = str(uuid4())


def act(**more: Any) -> Action:
    given: dict[str, Any] = {"action_type": "execute", "lease_id": LEASE, "epoch": 0}
    return Action(**(given | more))


def test_the_types_of_the_pattern_exist_and_users_add_their_own() -> None:
    words = "compute effect reduce orchestrate custom execute execute_workflow validate_data process_data"
    for word in [*words.split(), "store_results", "lease_transfer"]:
        assert act(action_type=ActionType(word)).action_type == word
    assert act(action_type="resize_image").action_type == "resize_image"


def test_an_action_has_sensible_defaults() -> None:
    action = act()

    assert UUID(action.action_id).version == 4
    assert (action.priority, action.timeout_ms, action.retry_count) == (5, 30_000, 0)
    assert (action.payload, action.dependencies, action.target_node_type) == ({}, (), None)
    assert action.created_at.tzinfo is UTC


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("action_type", ["", "x" * 129, 7, None]),
        ("action_id", ["", "x" * 129, 7]),
        ("target_node_type", ["", "x" * 101, 7]),
        ("payload", [[1], "text", {"x": {1}}, {"x": "y" * 20_000}, None]),
        ("dependencies", ["abc", [""], [7], None, [str(n) for n in range(65)]]),
        ("priority", [0, 11, "5", True, 5.0]),
        ("timeout_ms", [99, 300_001, None]),
        ("lease_id", ["", None, 7]),
        ("epoch", [-1, 2**63, "0", None, False]),
        ("retry_count", [-1, 11]),
        ("created_at", [datetime(2026, 1, 1), "2026-01-01", None]),
    ],
)
def test_an_action_out_of_its_limits_is_refused(field: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises((InvalidInput, LimitExceeded)) as refused:
            act(**{field: value})
        assert refused.value.field == field


def test_an_action_at_its_limits_is_one() -> None:
    for edge in (
        {"priority": 1, "timeout_ms": 100, "retry_count": 0, "target_node_type": "x"},
        {"priority": 10, "timeout_ms": 300_000, "retry_count": 10, "target_node_type": "é" * 100},
    ):
        assert act(**edge).epoch == 0


def test_an_action_does_not_depend_on_itself() -> None:
    with pytest.raises(InvalidInput):
        act(action_id="me", dependencies=["me"])
    other = uuid4()
    assert act(action_id="me", dependencies={other}).dependencies == (str(other),)


def test_a_model_cannot_be_changed_not_even_through_its_payload() -> None:
    payload: dict[str, Any] = {"list": [1]}
    for model in (
        act(payload=payload),
        Event(event_type=EventType.STATE_CHANGED, payload=payload),
        Result(action_id="a", success=True, payload=payload),
    ):
        payload["list"].append(2)
        assert model.payload["list"][-1] != 2 or len(model.payload["list"]) < len(payload["list"])
        with pytest.raises(AttributeError):
            model.payload = {}  # type: ignore[misc]
    metadata = LeaseMetadata(lease_id=LEASE, acquired_at=datetime.now(UTC))
    with pytest.raises(AttributeError):
        metadata.ttl_seconds = 1  # type: ignore[misc]


def test_a_model_reads_back_as_it_was_written() -> None:
    for model in (
        act(payload={"n": [1, {"x": None}]}, dependencies=[uuid4()]),
        Event(event_type="lease_revoked", payload={"reason": "x"}),  # type: ignore[arg-type]
        Result(action_id="a", success=False, error="no"),
        LeaseMetadata(lease_id=uuid4(), acquired_at=datetime.now(UTC), ttl_seconds=7),  # type: ignore[arg-type]
    ):
        assert type(model).from_json(model.to_json()) == model


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"action_type": "x", "lease_id": "l", "epoch": 0, "colour": "red"}',
        b'{"action_type": "x", "lease_id": "l", "epoch": "0"}',
        b'{"action_type": "x", "lease_id": "l", "epoch": 0, "priority": 99}',
        b'{"action_type": "x", "lease_id": "", "epoch": 0}',
    ],
)
def test_what_is_no_action_is_refused_when_it_is_read(body: bytes) -> None:
    with pytest.raises((InvalidInput, LimitExceeded)):
        Action.from_json(body)


def test_an_unknown_field_is_refused_by_every_model() -> None:
    for model in (act(), Event(event_type=EventType.STATE_CHANGED), Result(action_id="a", success=True)):
        body = model.to_json()[:-1] + b', "colour": "red"}'
        with pytest.raises(InvalidInput, match="colour"):
            type(model).from_json(body)
        with pytest.raises(TypeError):
            type(model)(colour="red")  # type: ignore[call-arg]


def test_events_and_results_have_limits_too() -> None:
    with pytest.raises(InvalidInput):
        Event(event_type="exploded")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        Result(action_id="a", success="yes")  # type: ignore[arg-type]
    with pytest.raises(LimitExceeded):
        Result(action_id="a", success=False, error="x" * 1025)
    with pytest.raises(InvalidInput):
        Result(action_id="a", success=False, error=7)  # type: ignore[arg-type]
    for ttl in (0, -1, "300", True):
        with pytest.raises(InvalidInput):
            LeaseMetadata(lease_id=LEASE, acquired_at=datetime.now(UTC), ttl_seconds=ttl)  # type: ignore[arg-type]


def test_metadata_counts_by_wall_clock_in_any_time_zone() -> None:
    began = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    metadata = LeaseMetadata(lease_id=LEASE, acquired_at=began)

    assert metadata.ttl_seconds == 300
    assert metadata.acquired_at == began
    assert metadata.remaining_ttl(datetime(2026, 1, 1, 10, 4, tzinfo=UTC)) == 60
    assert not metadata.is_expired(datetime(2026, 1, 1, 10, 4, 59, tzinfo=UTC))
    assert metadata.is_expired(datetime(2026, 1, 1, 10, 5, tzinfo=UTC))
    assert metadata.is_expired()

"""Every public method of workflows, with each argument of a wrong type or size: an error of ours, if any."""

import inspect
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import leasehold
from leasehold.workflows import Action, Event, EventType, Guard, LeaseMetadata, Result
from tests.client.test_hostile import Given, try_all

pytestmark = pytest.mark.deep


@pytest.fixture(params=["memory", "sqlite"])
def leases(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[leasehold.Client]:
    url = "memory:" if request.param == "memory" else tmp_path / "leases"
    with leasehold.connect(url, holder="ann", durability="fast") as client:
        yield client


def fresh(**more: Any) -> Callable[[], Given]:
    """Usual arguments, with an id of their own each time."""
    return lambda: {"workflow_id": str(uuid4()), "to": "bob", "reason": "why", "name": str(uuid4())} | more


@pytest.mark.parametrize("method", ["claim", "claim_lease", "guard", "find", "page", "actions", "handoff"])
def test_the_face(leases: leasehold.Client, method: str) -> None:
    usual = fresh(new_lease_id=str(uuid4()))
    try_all(method, getattr(leases.workflows, method), usual)


@pytest.mark.parametrize("method", ["emit", "transition", "handle_result", "renew", "cancel", "handoff"])
def test_an_orchestrator(leases: leasehold.Client, method: str) -> None:
    def call(**given: Any) -> Any:
        orchestrator = leases.workflows.claim(str(uuid4()))
        return getattr(orchestrator, method)(**given)

    real = getattr(leases.workflows.claim("w"), method)
    call.__signature__ = inspect.signature(real)  # type: ignore[attr-defined]
    usual = fresh(action_type="x", new_state="x", result=Result(action_id="a", success=True))
    try_all(method, call, usual)


def test_the_bus_and_the_manager(leases: leasehold.Client) -> None:
    workflows = leases.workflows
    try_all("subscribe", workflows.bus.subscribe, fresh())
    subscription = workflows.bus.subscribe("node")
    try_all("poll", subscription.poll, fresh())
    try_all("ack", subscription.ack, fresh(delivery=0))
    try_all("revoke_lease", workflows.manager.revoke_lease, fresh(lease_id="unknown"))
    try_all("expire_leases", workflows.manager.expire_leases, fresh())


def test_a_guard() -> None:
    guard = Guard("w")
    action = Action(action_type="x", lease_id="lease", epoch=0)
    try_all("Guard", Guard, fresh())
    try_all("set_lease", guard.set_lease, fresh(lease="lease"))
    try_all("advance", Guard("w").advance, fresh(epoch=0))
    try_all("check", guard.check, fresh(action=action))
    try_all("process", guard.process, fresh(message=action, handler=str))
    with pytest.raises(leasehold.InvalidInput):
        guard.process(Event(event_type=EventType.STATE_CHANGED), str)  # type: ignore[arg-type]


@pytest.mark.parametrize("model", [Action, Event, Result, LeaseMetadata])
def test_the_models(model: type) -> None:
    usual = fresh(
        action_type="x",
        lease_id="lease",
        epoch=0,
        event_type="state_changed",
        action_id="a",
        success=True,
        acquired_at=datetime.now(UTC),
    )
    try_all(model.__name__, model, usual)

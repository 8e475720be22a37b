"""Stores with workflows, whose law is asked directly."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leasehold.engine.audit import audit
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.registry import all_families
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock
from leasehold.workflows.law.commands import (
    Accept,
    Acknowledge,
    AnswerAction,
    Claim,
    Emit,
    Finish,
    HandOff,
    MarkGuard,
    Subscribe,
    Transition,
    Unsubscribe,
)
from leasehold.workflows.law.events import ActionFacts
from leasehold.workflows.law.records import (
    WORKFLOW,
    EmittedAction,
    Mark,
    Subscription,
    Workflow,
    action_key,
    mark_key,
    own_key,
    subscription_key,
)
from tests.families.conftest import House

SECOND = 1_000_000_000
COMPUTE = ActionFacts(action_type="compute")


class Office(House):
    """A store, and short ways to ask the law of workflows. Names that are not given are the usual ones."""

    _requests = 0

    def request(self) -> str:
        self._requests += 1
        return f"request-{self._requests}"

    def claim(self, lease_id: str = "L1", holder: str = "ann", ttl: float = 10, **more: Any) -> Any:
        given = {"request_id": lease_id, "workflow_id": "w"} | more
        return self.one(Claim(lease_id=lease_id, holder=holder, ttl_ns=int(ttl * SECOND), **given))

    def _step(self, more: dict[str, Any]) -> dict[str, Any]:
        whose = {"workflow_id": "w", "lease_id": "L1", "holder": "ann", "request_id": self.request()}
        return whose | more

    def emit(self, epoch: int, action_id: str = "a", **more: Any) -> Any:
        return self.one(
            Emit(**self._step({"epoch": epoch, "action_id": action_id, "action": COMPUTE} | more))
        )

    def transition(self, epoch: int, state: str = "busy", **more: Any) -> Any:
        return self.one(Transition(**self._step({"epoch": epoch, "state": state} | more)))

    def answer(self, epoch: int, action_id: str = "a", success: bool = True, **more: Any) -> Any:
        fields = {"epoch": epoch, "action_id": action_id, "success": success}
        return self.one(AnswerAction(**self._step(fields | more)))

    def hand_off(self, epoch: int, to: str = "bob", new_lease_id: str = "L2", **more: Any) -> Any:
        fields = {"epoch": epoch, "to": to, "new_lease_id": new_lease_id, "action_id": "transfer"}
        return self.one(HandOff(**self._step(fields | more)))

    def accept(self, lease_id: str = "L2", holder: str = "bob", **more: Any) -> Any:
        return self.one(Accept(**({"request_id": "accept", "lease_id": lease_id, "holder": holder} | more)))

    def finish(self, epoch: int, outcome: str = "completed", **more: Any) -> Any:
        return self.one(Finish(**self._step({"epoch": epoch, "outcome": outcome} | more)))

    def subscribe(self, name: str = "reader", position: int = 0, **more: Any) -> Any:
        given = {"holder": "rea", "request_id": self.request()} | more
        return self.one(Subscribe(name=name, position=position, **given))

    def acknowledge(self, position: int, name: str = "reader", **more: Any) -> Any:
        given = {"holder": "rea", "request_id": self.request()} | more
        return self.one(Acknowledge(name=name, position=position, **given))

    def unsubscribe(self, name: str = "reader", **more: Any) -> Any:
        return self.one(Unsubscribe(**({"name": name, "holder": "rea", "request_id": self.request()} | more)))

    def mark(self, epoch: int, action_id: str = "a", token: int = 1, **more: Any) -> Any:
        given: dict[str, Any] = {"epoch": epoch, "action_id": action_id, "token": token}
        given |= {"name": "node", "workflow_id": "w", "lease_id": "L1", "holder": "nod"}
        return self.one(MarkGuard(**(given | {"request_id": self.request()} | more)))

    def record(self, key: str) -> Any:
        with self.store.snapshot() as snapshot:
            return snapshot.state().of(WORKFLOW).get(key)

    def workflow(self, workflow_id: str = "w", tenant: str = "default") -> Workflow | None:
        found: Workflow | None = self.record(own_key(tenant, workflow_id))
        return found

    def action(self, action_id: str = "a") -> EmittedAction | None:
        found: EmittedAction | None = self.record(action_key("default", "w", action_id))
        return found

    def subscription(self, name: str = "reader") -> Subscription | None:
        found: Subscription | None = self.record(subscription_key("default", name))
        return found

    def guard(self, name: str = "node") -> Mark | None:
        found: Mark | None = self.record(mark_key("default", "w", name))
        return found

    def types(self) -> list[str]:
        return [event.type.removeprefix("workflow.") for event in self.events(WORKFLOW)]


def refused(outcome: Any) -> str:
    """The code of a refusal."""
    assert isinstance(outcome, Refusal), outcome
    return outcome.rule or outcome.code


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite"])
def office(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Office]:
    """An office whose books are checked at the end of every test."""
    families = all_families()
    store: Any
    if request.param == "memory":
        store = MemoryStore(clock=clock, families=families)
    else:
        store = SqliteStore(tmp_path / "leases", clock=clock, families=families, durability="fast")
    yield Office(store, clock)
    assert audit(store).problems == []
    store.close()

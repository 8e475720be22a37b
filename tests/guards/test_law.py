"""What history keeps of a bypass."""

from typing import Any

import pytest

from leasehold.engine.audit import audit
from leasehold.engine.desk import answer_of
from leasehold.engine.port import EntryQuery
from leasehold.engine.registrar import Registrar
from leasehold.errors import LeaseholdError
from leasehold.guards.law import GuardBypassed, Passed, RecordBypass, Recorded, evolve
from leasehold.registry import FAMILIES
from leasehold.stores.memory import MemoryStore
from leasehold.testing.clock import FakeClock


@pytest.fixture
def registrar(clock: FakeClock) -> Registrar:
    return Registrar(MemoryStore(clock, families=FAMILIES))


def a_bypass(**differences: Any) -> RecordBypass:
    fields = {
        "request_id": "r",
        "holder": "b",
        "reason": "hot fix",
        "passed": (Passed(resource="/a", held_by="a"), Passed(resource="/b", held_by="c")),
    }
    return RecordBypass(**fields | differences)


def bypasses(registrar: Registrar) -> list[GuardBypassed]:
    with registrar.store.snapshot() as snapshot:
        events = [entry.event for entry in snapshot.entries(EntryQuery())]
    return [event for event in events if isinstance(event, GuardBypassed)]


def test_each_resource_that_is_bypassed_is_an_event_and_changes_nothing(registrar: Registrar) -> None:
    answer_of(registrar.call(a_bypass()), Recorded)
    found = bypasses(registrar)
    assert [(event.resource, event.held_by, event.actor, event.reason) for event in found] == [
        ("/a", "a", "b", "hot fix"),
        ("/b", "c", "b", "hot fix"),
    ]
    assert found[0].filing == ("default", None, "/a", "b", None)
    assert found[0].story == "held by a"
    assert evolve(None, found[0], "any") is None
    assert audit(registrar.store).problems == []


def test_a_request_that_is_sent_again_is_recorded_once(registrar: Registrar) -> None:
    for request in ("r", "r", "s"):
        answer_of(registrar.call(a_bypass(request_id=request)), Recorded)
    assert len(bypasses(registrar)) == 4


@pytest.mark.parametrize(
    "wrong",
    [
        {"reason": ""},
        {"reason": "  "},
        {"reason": "x" * 513},
        {"reason": "a\nb"},
        {"holder": ""},
        {"passed": ()},
        {"passed": (Passed(resource="", held_by="a"),)},
        {"passed": (Passed(resource="/a", held_by=""),)},
        {"passed": (Passed(resource="/a", held_by="a"),) * 1_001},
        {"tenant": ""},
    ],
)
def test_a_bypass_that_says_nothing_is_refused(registrar: Registrar, wrong: dict[str, Any]) -> None:
    with pytest.raises(LeaseholdError):
        answer_of(registrar.call(a_bypass(**wrong)), Recorded)
    assert bypasses(registrar) == []

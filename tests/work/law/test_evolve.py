"""A ledger that says what the law could not have produced is not believed."""

from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.ledger.events import Event, IllegalTransition
from leasehold.kernel.ledger.state import replay
from leasehold.registry import FAMILIES
from leasehold.work.law.events import (
    WorkAcquired,
    WorkAwaited,
    WorkEnqueued,
    WorkFailed,
    WorkRetried,
    WorkReturned,
    WorkStarted,
    WorkSucceeded,
)
from leasehold.work.law.model import Reach
from tests.work.house import WorkHouse


@pytest.fixture
def history(house: WorkHouse) -> list[Event]:
    """Some of everything, up to an offset in flight and two that wait."""
    token = house.token("A", 1)
    house.acquire("A", 2, wake="00000000000000aa.1")
    house.fail("A", token)
    house.succeed("A", token)
    house.fail("A", house.token("A", 2), max_retries=0)
    house.give_back("A", house.token("A", 4))
    house.token("A", 4)
    house.enqueue("A", 5, 6)
    house.acquire("A", 5, wake="00000000000000bb.1")
    house.start_at("A", 2)
    events = [event for name in ("store", "work") for event in house.events(name)]
    return sorted(events, key=lambda event: event.tick.value)


def of(history: list[Event], kind: type) -> Any:
    return next(event for event in reversed(history) if isinstance(event, kind))


def test_what_has_happened_can_happen(history: list[Event]) -> None:
    assert replay(history, FAMILIES).of("work")


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (WorkSucceeded, {}),  # A second time: nothing is in flight under that token.
        (WorkSucceeded, {"domain": "B"}),
        (WorkFailed, {}),
        (WorkRetried, {}),
        (WorkReturned, {}),
        (WorkAcquired, {"fence": 1 << 40}),
        (WorkEnqueued, {}),
        (WorkEnqueued, {"place": 99, "offset": 77}),
        (WorkAwaited, {"offset": 6}),
        (WorkStarted, {}),
        (WorkStarted, {"start": 1}),
    ],
)
def test_an_event_that_does_not_follow_is_refused(
    history: list[Event], kind: type, wrong: dict[str, Any]
) -> None:
    event = replace(of(history, kind), tick=history[-1].tick, **wrong)
    with pytest.raises(IllegalTransition):
        replay([*history, event], FAMILIES)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (WorkSucceeded, {"done": Reach(first=0, last=1)}),
        (WorkSucceeded, {"done": Reach(first=1, last=9)}),
        (WorkFailed, {"failed": Reach(first=1, last=2)}),
        (WorkRetried, {"retry_count": 5}),
        (WorkReturned, {"place": 7}),
        (WorkAcquired, {"place": 7}),
        (WorkAcquired, {"place": None}),
        (WorkAcquired, {"offset": 99}),
        (WorkEnqueued, {"offset": 5, "place": 2}),
    ],
)
def test_an_event_that_says_something_else_than_happened_is_refused(
    history: list[Event], kind: type, wrong: dict[str, Any]
) -> None:
    place = max(number for number, event in enumerate(history) if isinstance(event, kind))
    history[place] = replace(history[place], **wrong)
    with pytest.raises(IllegalTransition):
        replay(history, FAMILIES)

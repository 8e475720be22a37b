"""How outcomes come back to the tasks that wait for them."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from leasehold.client.aio.calls import AsyncCalls
from leasehold.engine.desk import Failure, Outcome
from leasehold.errors import StoreBusy
from tests.engine.doubles import claim


class Mute:
    """A desk that answers when the test says so."""

    def __init__(self, timeout: float = 30.0) -> None:
        self.timeout = timeout
        self.delivers: list[Callable[[Outcome], None]] = []

    def submit(self, command: Any, deliver: Callable[[Outcome], None]) -> int:
        del command
        self.delivers.append(deliver)
        return len(self.delivers)

    def withdraw(self, call: int) -> Failure | None:
        """Take back any call but the second, which is under way."""
        return None if call == 2 else Failure.of(StoreBusy("somebody writes"))


def calls_of(desk: Any) -> AsyncCalls:
    return AsyncCalls(desk)


async def test_outcomes_that_arrive_together_wake_the_loop_once(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, loop, rings = Mute(), asyncio.get_running_loop(), list[Any]()
    soon = loop.call_soon_threadsafe

    def ring(*given: Any) -> Any:
        rings.append(given)
        return soon(*given)

    calls = calls_of(desk)
    monkeypatch.setattr(loop, "call_soon_threadsafe", ring)
    awaited = [calls.call(claim(f"door-{number}")) for number in range(3)]
    for number, deliver in enumerate(desk.delivers):
        deliver(number)
    assert await asyncio.gather(*awaited) == [0, 1, 2]
    assert len(rings) == 1

    late = calls.call(claim("another"))
    desk.delivers[-1]("late")
    assert await late == "late"
    assert len(rings) == 2


async def test_who_was_cancelled_is_passed_over() -> None:
    desk = Mute()
    calls = calls_of(desk)
    given_up, awaited = calls.call(claim("door")), calls.call(claim("window"))
    given_up.cancel()
    for deliver in desk.delivers:
        deliver("answered")

    assert await awaited == "answered"


async def test_one_timer_withdraws_what_waits_too_long_and_waits_on_for_what_is_under_way() -> None:
    desk = Mute(timeout=0.0)
    calls = calls_of(desk)
    waiting, under_way = calls.call(claim("door")), calls.call(claim("window"))
    desk.timeout = 0.01
    later = calls.call(claim("gate"))

    assert (await waiting).code == "STORE_BUSY"
    assert not under_way.done()
    assert (await later).code == "STORE_BUSY"
    desk.delivers[1]("answered")
    assert await under_way == "answered"


def test_an_outcome_for_a_loop_that_is_gone_is_nobodys_and_the_loop_is_let_go() -> None:
    desk = Mute()
    calls = calls_of(desk)

    async def leave_early() -> None:
        calls.call(claim("door"))

    async def stay() -> Outcome:
        awaited = calls.call(claim("window"))
        desk.delivers[-1]("answered")
        return await awaited

    asyncio.run(leave_early())
    desk.delivers[0]("too late")

    assert asyncio.run(stay()) == "answered"
    assert len(calls._mailboxes) == 1

"""Waiters that nobody wakes, and waiters that were stopped for too long.

The first ask by themselves; what the others are told is true when they are told it.
"""

import time
from typing import Any

import pytest

import leasehold
from leasehold.kernel.lease.answers import Granted, Waiting
from leasehold.kernel.lease.commands import Acquire
from leasehold.kernel.lease.ticket import ASK_AGAIN_NS, KEPT_NS
from leasehold.testing.clock import FakeClock
from tests.client.worlds import World
from tests.engine.doubles import claim

SECOND = 1_000_000_000


class Stopping:
    """Stops a client's process for a while, right behind the answer to a claim of a certain kind."""

    def __init__(self, client: Any, clock: FakeClock, after: type, stop_ns: int) -> None:
        registrar: Any = getattr(client, "target", client)._session.desk
        self._submit, self._call = registrar.submit, registrar.call
        self._ring = registrar.bells.ring
        self._clock = clock
        self._after = after
        self._left_ns = stop_ns
        registrar.submit = self.submit
        registrar.call = self.call

    def submit(self, command: Any, deliver: Any) -> Any:
        def stop_and_deliver(outcome: Any) -> None:
            self._stop(command, outcome)
            deliver(outcome)

        return self._submit(command, stop_and_deliver)

    def call(self, command: Any) -> Any:
        outcome = self._call(command)
        self._stop(command, outcome)
        return outcome

    def _stop(self, command: Any, outcome: Any) -> None:
        if isinstance(command, Acquire) and isinstance(outcome, self._after):
            left_ns, self._left_ns = self._left_ns, 0
            self._clock.advance(ns=left_ns)
            self._ring([command.wake])  # Nobody has to sleep until it would ask by itself.


@pytest.mark.parametrize("resources", [["door"], ["door", "window"]])
async def test_a_lease_that_was_over_before_its_waiter_could_know_is_not_given_to_it(
    world: World, clock: FakeClock, resources: list[str]
) -> None:
    ann = world.connect(holder="ann")
    Stopping(ann, clock, Granted, 61 * SECOND)
    with pytest.raises(leasehold.LeaseLost):
        await ann.acquire_all(resources, ttl=60, wait=10)
    for resource in resources:
        assert await world.connect(holder="bob").inspect(resource) == []


async def test_a_waiter_that_lost_its_place_while_it_was_stopped_queues_anew(
    world: World, clock: FakeClock
) -> None:
    ann, bob = world.connect(holder="ann"), world.connect(holder="bob")
    await ann.acquire("door", ttl=(KEPT_NS + SECOND) / SECOND)
    Stopping(bob, clock, Waiting, KEPT_NS + 2 * SECOND)
    lease = await bob.acquire("door", ttl=60, wait=600)
    assert lease.remaining == 60
    first, queued, *ended, last = [entry.event.type for entry in await ann.history(resource="door")]
    assert (first, queued, last) == ("lease.issued", "lease.queued", "lease.issued")
    assert set(ended) == {"lease.expired", "lease.left"}


async def test_a_waiter_asks_by_itself_when_the_lease_in_its_way_should_be_over(real_world: World) -> None:
    ann, bob = real_world.connect(holder="ann"), real_world.connect(holder="bob")
    began = time.monotonic()
    getattr(ann, "target", ann)._session.desk.call(claim("door", "ann", ttl_ns=SECOND // 5))
    await bob.acquire("door", wait=60)
    assert 0.2 <= time.monotonic() - began < ASK_AGAIN_NS / SECOND

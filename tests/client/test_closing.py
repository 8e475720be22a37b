"""Closing a client in the middle of what its other threads and tasks do: nothing is left behind."""

import asyncio
import threading
from typing import Any
from unittest.mock import Mock

import pytest

import leasehold
from leasehold.engine.desk import Failure
from leasehold.kernel.lease.commands import Acquire, Release
from tests.client.test_waiting import meanwhile, soon
from tests.client.worlds import SIGNAL_SECONDS, World

_LATE_SECONDS = 0.5
"""How much later something comes, unless the registrar is gone before."""


class Late:
    """A registrar whose answers to claims, or the releases that are sent to it, come late."""

    def __init__(self, client: Any, kind: type) -> None:
        registrar: Any = getattr(client, "target", client)._session.desk
        self._call, self._submit, self._close = registrar.call, registrar.submit, registrar.close
        self._kind = kind
        self.under_way = threading.Event()
        self._gone = threading.Event()
        registrar.call, registrar.submit, registrar.close = self.call, self.submit, self.close

    def call(self, command: Any) -> Any:
        if isinstance(command, Release):
            self._linger(command)
        outcome = self._call(command)
        if isinstance(command, Acquire):
            self._linger(command)
        return outcome

    def submit(self, command: Any, deliver: Any) -> Any:
        def deliver_late(outcome: Any) -> None:
            self._linger(command)
            deliver(outcome)

        if not isinstance(command, Acquire):
            return self._submit(command, deliver)
        return self._submit(
            command, lambda outcome: threading.Thread(target=deliver_late, args=(outcome,)).start()
        )

    def _linger(self, command: Any) -> None:
        if isinstance(command, self._kind):
            self.under_way.set()
            self._gone.wait(_LATE_SECONDS)

    def close(self) -> None:
        self._close()
        self._gone.set()


@pytest.mark.parametrize("wait", [None, 10])
async def test_what_is_granted_while_its_client_is_closed_is_given_back(
    real_world: World, wait: float | None
) -> None:
    ann, onlooker = real_world.connect(holder="ann"), real_world.connect()
    late = Late(ann, Acquire)

    async def acquire() -> Any:
        return await ann.acquire("door", wait=wait)

    acquiring = meanwhile(real_world, acquire())
    assert await asyncio.to_thread(late.under_way.wait, SIGNAL_SECONDS)
    await ann.close()
    with pytest.raises(leasehold.ClientClosed):
        await soon(acquiring)
    assert await onlooker.inspect("door") == []


@pytest.mark.parametrize("client_kind", ["blocking"])
async def test_what_is_being_released_while_its_client_is_closed_is_released(real_world: World) -> None:
    ann, onlooker = real_world.connect(holder="ann"), real_world.connect()
    lease = await ann.acquire("door")
    late = Late(ann, Release)

    async def release() -> Any:
        return await lease.release()

    releasing = meanwhile(real_world, release())
    assert await asyncio.to_thread(late.under_way.wait, SIGNAL_SECONDS)
    await ann.close()
    assert await soon(releasing) is True
    assert await onlooker.inspect("door") == []


def test_who_is_interrupted_in_the_middle_does_not_wait_for_itself() -> None:
    leases = leasehold.connect("memory:", timeout=3_600)
    holdings = leases._holdings
    holdings.under_way[holdings.step(Mock())] = None  # As if a signal handler closed the client.
    leases.close()


@pytest.mark.parametrize("together", [False, True])
def test_a_block_whose_client_is_closed_by_another_thread_has_lost_its_lease(*, together: bool) -> None:
    client = leasehold.connect("memory:")

    def work() -> None:
        with client.acquire_all(["door"]) if together else client.acquire("door") as block:
            closing = threading.Thread(target=client.close)
            closing.start()
            closing.join()
            with pytest.raises(leasehold.LeaseLost, match="closed elsewhere"):
                block.ensure()

    with pytest.raises(leasehold.LeaseLost, match="closed elsewhere"):
        work()


async def test_a_block_whose_client_is_closed_by_another_task_is_cancelled() -> None:
    client = await leasehold.connect_async("memory:")
    inside = asyncio.Event()

    async def work() -> None:
        async with client.acquire("door"):
            inside.set()
            await asyncio.Event().wait()

    working = asyncio.create_task(work())
    await inside.wait()
    await client.close()
    with pytest.raises(leasehold.LeaseLost, match="closed elsewhere"):
        await soon(working)


async def test_a_block_that_closes_its_client_itself_has_given_its_lease_back(world: World) -> None:
    ann = world.connect()
    async with ann.acquire("door") as lease:
        await ann.close()
    assert lease.lost.error is None


@pytest.mark.parametrize("wait", [None, 30.0])
async def test_what_was_granted_by_a_lost_reply_is_given_back_when_the_client_is_closed_before_it_asks_again(
    world: World, wait: float | None
) -> None:
    """The second try was refused because the client had been closed, and the lease stood until its TTL."""
    ann, onlooker = world.connect(holder="ann"), world.connect()
    desk: Any = getattr(ann, "target", ann)._session.desk
    call, submit = desk.call, desk.submit
    lost = Failure.of(leasehold.StoreFailed("no answer"))

    def lose_one(command: Any) -> Any:
        call(command)
        desk.call = call
        desk.stop_granting()
        return lost

    def lose_one_later(command: Any, deliver: Any) -> Any:
        desk.submit = submit

        def lose(outcome: Any) -> None:
            del outcome
            desk.stop_granting()
            deliver(lost)

        return submit(command, lose)

    desk.call, desk.submit = lose_one, lose_one_later
    with pytest.raises(leasehold.ClientClosed):
        await ann.acquire("door", wait=wait)
    await ann.close()
    assert await onlooker.inspect("door") == []

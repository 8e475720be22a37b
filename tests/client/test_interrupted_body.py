"""The body of an `async with` is a task: it is cancelled when the lease is lost, and only for that."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

import leasehold
from leasehold.client.aio.loss import AsyncBody
from tests.client.worlds import SIGNAL_SECONDS, World


@pytest.fixture
def client_kind() -> str:
    """Only tasks can be interrupted."""
    return "asynchronous"


@pytest.fixture
def leases(real_world: World, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client whose keeper asks so often that it soon finds out what the clock would not tell for long."""
    monkeypatch.setattr("leasehold.engine.keeper._RENEWALS_PER_TTL", 1_000)
    return real_world.connect(holder="ann")


async def for_ever() -> None:
    await asyncio.wait_for(asyncio.Event().wait(), SIGNAL_SECONDS)


def cancellations() -> int:
    """How many of this task have been asked for and not taken back."""
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()


async def lose(leases: Any, lease: leasehold.AsyncHeldLease) -> None:
    """Let a lease be lost: the keeper finds out at its next renewal."""
    await leases.revoke(lease.lease_id, reason="stuck")


async def test_the_body_is_cancelled_and_the_loss_is_raised(leases: Any) -> None:
    seen: list[type[BaseException]] = []

    async def work() -> None:
        async with leases.acquire("door") as lease:
            await lose(leases, lease)
            try:
                await for_ever()
            except BaseException as error:
                seen.append(type(error))
                raise

    with pytest.raises(leasehold.LeaseTerminal) as lost:
        await work()

    assert seen == [asyncio.CancelledError]
    assert lost.value.resource == "door"
    assert cancellations() == 0
    await asyncio.sleep(0)  # The task goes on as if it had never been cancelled.


async def test_a_cancellation_from_outside_is_still_a_cancellation(leases: Any) -> None:
    entered = asyncio.Event()

    async def work() -> None:
        async with leases.acquire("door"):
            entered.set()
            await for_ever()

    task = asyncio.create_task(work())
    await asyncio.wait_for(entered.wait(), SIGNAL_SECONDS)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    await leases.acquire("door", holder="bob")


async def test_a_cancellation_from_outside_goes_before_the_loss(leases: Any) -> None:
    lost = asyncio.Event()

    async def work() -> None:
        async with leases.acquire("door") as lease:
            await lose(leases, lease)
            try:
                await for_ever()
            except asyncio.CancelledError:
                lost.set()
                await for_ever()

    task = asyncio.create_task(work())
    await asyncio.wait_for(lost.wait(), SIGNAL_SECONDS)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_body_that_will_not_be_cancelled_still_ends_in_the_loss(leases: Any) -> None:
    async def work() -> None:
        async with leases.acquire("door") as lease:
            await lose(leases, lease)
            with suppress(asyncio.CancelledError):
                await for_ever()

    with pytest.raises(leasehold.LeaseTerminal):
        await work()
    assert cancellations() == 0


async def test_what_the_body_raises_instead_comes_through(leases: Any) -> None:
    async def work() -> None:
        async with leases.acquire("door") as lease:
            await lose(leases, lease)
            try:
                await for_ever()
            except asyncio.CancelledError as cancelled:
                raise ZeroDivisionError from cancelled

    with pytest.raises(ZeroDivisionError):
        await work()


async def test_a_timeout_in_the_body_is_a_timeout(leases: Any) -> None:
    async def work() -> None:
        async with leases.acquire("door"), asyncio.timeout(0):
            await for_ever()

    with pytest.raises(TimeoutError):
        await work()


async def test_a_timeout_around_the_block_is_a_timeout(leases: Any) -> None:
    async def work() -> None:
        async with asyncio.timeout(0.05), leases.acquire("door"):
            await for_ever()

    with pytest.raises(TimeoutError):
        await work()


async def test_two_leases_lost_at_once_are_a_loss_and_leave_no_cancellation_behind(leases: Any) -> None:
    async def work() -> None:
        async with leases.acquire("outer") as outer, leases.acquire("inner") as inner:
            await leases.revoke(outer.lease_id, reason="stuck")
            await leases.revoke(inner.lease_id, reason="stuck")
            await for_ever()

    with pytest.raises(leasehold.LeaseLost):
        await work()
    assert cancellations() == 0


async def test_a_task_that_was_cancelled_before_can_still_be_told_of_a_loss(leases: Any) -> None:
    async def clean_up() -> None:
        try:
            await for_ever()
        except asyncio.CancelledError:
            # Cleaning up after a cancellation, under a lease that is lost meanwhile.
            async with leases.acquire("door") as lease:
                await lose(leases, lease)
                await for_ever()

    task = asyncio.create_task(clean_up())
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(leasehold.LeaseTerminal):
        await task


async def test_a_loss_while_entering_is_seen_and_cancels_nothing_later(leases: Any) -> None:
    lease = await leases.acquire("door")
    leases._holdings.keeper.lose(
        lease.kept, leasehold.LeaseExpired("found out")
    )  # Between the grant and the block.

    with pytest.raises(leasehold.LeaseExpired):
        async with lease:
            pytest.fail("entered without the lease")
    for _ in range(5):
        await asyncio.sleep(0)  # Would raise if a cancellation were on its way.


async def test_a_loss_after_the_block_cancels_nothing(leases: Any) -> None:
    async with leases.acquire("door") as lease:
        (body,) = lease.bodies
    body.interrupt()

    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_lease_that_is_not_entered_interrupts_nobody(leases: Any) -> None:
    lease = await leases.acquire("door")
    await lose(leases, lease)

    assert await lease.lost.wait(SIGNAL_SECONDS)
    await asyncio.sleep(0)


def test_a_loop_that_is_gone_is_no_reason_to_fail() -> None:
    async def enter() -> AsyncBody:
        return AsyncBody()

    asyncio.run(enter()).interrupt()

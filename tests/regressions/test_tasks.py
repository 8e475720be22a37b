"""What the event loop of an asynchronous client has to bear."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import leasehold
from tests.client.worlds import SIGNAL_SECONDS

WATCHERS = 50


@pytest.mark.parametrize("address", ["memory:", "sqlite:///{folder}/leases"])
def test_any_number_of_watchers_leaves_threads_for_everything_else(address: str, tmp_path: Path) -> None:
    # Each watcher waited in a thread of its own: a few of them took all that the event loop had.
    async def scenario(url: str) -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        async with leasehold.connect_async(url) as leases:
            watchers = [leases.watch(after=0) for _ in range(WATCHERS)]
            following = [asyncio.ensure_future(anext(watcher)) for watcher in watchers]
            async with asyncio.timeout(SIGNAL_SECONDS):
                for _ in range(4):  # By then all have looked, in the same thread, and wait.
                    await leases.list()
                lease = await leases.acquire("door")
                seen = await asyncio.gather(*following)
            assert {entry.event.keys for entry in seen} == {(lease.lease_id,)}

    asyncio.run(scenario(address.format(folder=tmp_path)))


def test_a_task_can_be_made_of_a_claim() -> None:
    # `create_task` refused it, because it takes coroutines only.
    async def scenario() -> None:
        async with leasehold.connect_async("memory:", holder="ann") as leases:
            async with asyncio.TaskGroup() as group:
                ink = group.create_task(leases.acquire("ink"))
                both = group.create_task(leases.acquire_all(["paper", "pen"]))
            assert ink.result().resource == "ink"
            assert len(both.result()) == 2

            waiting = asyncio.create_task(leases.acquire("ink", holder="bob", wait=True))
            while not await leases.queue("ink"):
                pass
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await leases.acquire("other")  # behind what leaves the queue
            assert not await leases.queue("ink")

    asyncio.run(scenario())

"""Watching: every entry once, in order, whoever wrote it and whenever one begins to look."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import leasehold
from tests.client.processes import Python
from tests.client.worlds import SIGNAL_SECONDS, World


async def take(entries: Any, count: int) -> list[Any]:
    """The next entries, as many as that."""
    return [await asyncio.wait_for(anext(entries), SIGNAL_SECONDS) for _ in range(count)]


async def test_a_watcher_starts_where_it_is_told_to(leases: Any) -> None:
    for number in range(5):
        await leases.acquire(f"door-{number}")
    history = await leases.history()
    entries = leases.watch(after=history[1].position)

    assert await take(entries, 3) == history[2:]
    await entries.aclose()


async def test_a_watcher_that_says_nothing_sees_what_comes_from_then_on(leases: Any) -> None:
    await leases.acquire("before")
    entries = leases.watch()
    first = asyncio.ensure_future(take(entries, 1))
    while True:
        # Until the watcher has begun to look, what is acquired here comes before it.
        lease = await leases.acquire("door")
        done, _ = await asyncio.wait({first}, timeout=0.1)
        if done:
            break
        await lease.release()

    assert first.result()[0].event.resource == "door"
    await entries.aclose()


async def test_a_watcher_goes_on_when_more_comes(leases: Any, strangers: Any) -> None:
    entries = leases.watch(after=0)
    for number in range(5):
        lease = await strangers.acquire(f"door-{number}")
        (entry,) = await take(entries, 1)
        assert entry.event.keys == (lease.lease_id,)
    await entries.aclose()


async def test_a_watcher_of_one_resource_or_holder_sees_nothing_else(leases: Any, strangers: Any) -> None:
    by_resource = leases.watch(after=0, resource="door")
    by_holder = leases.watch(after=0, holder="bob")
    for number in range(3):
        await leases.acquire(f"other-{number}")
    wanted = await strangers.acquire("door")
    await leases.acquire("other-9")
    last = await strangers.acquire("last")

    assert [entry.event.keys for entry in await take(by_resource, 1)] == [(wanted.lease_id,)]
    assert [entry.event.keys for entry in await take(by_holder, 2)] == [
        (wanted.lease_id,),
        (last.lease_id,),
    ]
    await by_resource.aclose()
    await by_holder.aclose()


async def test_a_watcher_reads_on_over_more_than_a_page(leases: Any) -> None:
    for number in range(1_100):
        await (await leases.acquire(f"door-{number}", ttl=60)).release()
    entries = leases.watch(after=0)

    seen = await take(entries, 2_200)

    positions = [entry.position for entry in seen]
    assert positions == list(range(positions[0], positions[0] + 2_200))
    await entries.aclose()


async def test_a_watcher_misses_nothing_and_repeats_nothing_while_threads_write(world: World) -> None:
    writers = [world.connect(holder=f"writer-{number}") for number in range(4)]
    watcher = world.connect()

    async def write(client: Any) -> None:
        for _ in range(40):
            lease = await client.acquire(f"door-{client.holder}")
            await lease.release()

    crowd = [threading.Thread(target=lambda client=client: asyncio.run(write(client))) for client in writers]
    for thread in crowd:
        thread.start()
    entries = watcher.watch(after=0)
    seen = await take(entries, 4 * 40 * 2)
    for thread in crowd:
        thread.join()

    assert seen == await watcher.history()
    await entries.aclose()


WRITER = """
import sys, leasehold
with leasehold.connect(sys.argv[1], holder=sys.argv[2], durability="fast") as leases:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(100):
        leases.acquire(f"door-{sys.argv[2]}").release()
"""


def test_a_watcher_misses_nothing_and_repeats_nothing_while_other_processes_write(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'leases'}"
    with (
        leasehold.connect(url) as leases,
        Python(WRITER, url, "one") as one,
        Python(WRITER, url, "two") as two,
    ):
        for writer in (one, two):
            assert writer.read_line() == "ready"
        for writer in (one, two):
            writer.write_line("go")
        seen = []
        for entry in leases.watch(after=0):
            seen.append(entry)
            if len(seen) == 400:
                break

        assert seen == leases.history()
        assert {entry.event.actor for entry in seen} == {"one", "two"}


@pytest.mark.parametrize("address", ["memory:", "sqlite:///{folder}/leases"])
def test_a_watcher_of_a_client_that_is_closed_ends_with_an_error(address: str, tmp_path: Path) -> None:
    leases = leasehold.connect(address.format(folder=tmp_path))
    leases.acquire("door")
    seen = threading.Event()
    errors: list[type[BaseException]] = []

    def follow() -> None:
        try:
            for _ in leases.watch(after=0):
                seen.set()
        except leasehold.LeaseholdError as error:
            errors.append(type(error))

    watcher = threading.Thread(target=follow)
    watcher.start()
    assert seen.wait(SIGNAL_SECONDS)
    leases.close()
    watcher.join(SIGNAL_SECONDS)

    assert errors == [leasehold.ClientClosed]


@pytest.mark.parametrize("address", ["memory:", "sqlite:///{folder}/leases"])
async def test_watching_tasks_of_a_client_that_is_closed_end_with_an_error(
    address: str, tmp_path: Path
) -> None:
    leases = await leasehold.connect_async(address.format(folder=tmp_path))
    (await leases.acquire("door")).detach()
    position = await leases.position()
    watchers = [asyncio.ensure_future(anext(leases.watch(after=position))) for _ in range(3)]
    for _ in range(20):  # Most of them, or all, wait by then; an end comes for each, wherever it is.
        await leases.list()

    watchers[0].cancel()
    await leases.close()
    ends = await asyncio.wait_for(asyncio.gather(*watchers, return_exceptions=True), SIGNAL_SECONDS)

    closed = leasehold.ClientClosed
    assert [type(end) for end in ends] == [asyncio.CancelledError, closed, closed]

"""Who is asking: threads and tasks are strangers to each other, a stable name is one holder everywhere."""

import asyncio
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

import leasehold
from leasehold.client.holders import Holders


def in_a_thread(call: Any) -> Any:
    """What a call gives, or raises, in a thread of its own."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(call())
        except leasehold.LeaseholdError as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return results[0]


@pytest.fixture(params=["memory:", "file"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    url = request.param if request.param == "memory:" else str(tmp_path / "leases")
    with leasehold.connect(url) as leases:
        yield leases


def test_one_thread_is_one_holder_from_call_to_call(client: leasehold.Client) -> None:
    client.acquire("door")

    assert client.holder == client.holder
    with pytest.raises(leasehold.AlreadyHeld):
        client.acquire("door")


def test_threads_are_strangers(client: leasehold.Client) -> None:
    lease = client.acquire("door")

    refused = in_a_thread(lambda: client.acquire("door"))
    assert isinstance(refused, leasehold.Held)
    assert refused.holder == lease.holder
    assert isinstance(in_a_thread(lambda: client.renew(lease.lease_id)), leasehold.NotHolder)
    assert in_a_thread(lambda: client.holder) != client.holder
    assert not lease.lost


def test_a_lease_can_be_handed_to_another_thread_with_all_its_rights(client: leasehold.Client) -> None:
    lease = client.acquire("door")

    in_a_thread(lease.ensure)
    in_a_thread(lease.renew)
    assert in_a_thread(lease.release) is True


def test_a_thread_that_comes_later_is_not_mistaken_for_one_that_is_gone(client: leasehold.Client) -> None:
    names = {in_a_thread(lambda: client.holder) for _ in range(50)}

    assert len(names) == 50


def test_a_stable_name_is_one_holder_in_all_threads_and_clients(tmp_path: Path) -> None:
    url = str(tmp_path / "leases")
    with leasehold.connect(url, holder="agent-7") as one, leasehold.connect(url, holder="agent-7") as two:
        one.acquire("door")
        assert isinstance(in_a_thread(lambda: one.acquire("door")), leasehold.AlreadyHeld)
        with pytest.raises(leasehold.AlreadyHeld):
            two.acquire("door")


def test_two_clients_are_strangers(tmp_path: Path) -> None:
    url = str(tmp_path / "leases")
    with leasehold.connect(url) as one, leasehold.connect(url) as two:
        one.acquire("door")
        with pytest.raises(leasehold.Held):
            two.acquire("door")


async def test_tasks_are_strangers() -> None:
    leases = await leasehold.connect_async("memory:")
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def hold() -> str:
        async with leases.acquire("door") as lease:
            entered.set()
            await go_on.wait()
            return lease.holder

    holding = asyncio.create_task(hold())
    await entered.wait()
    with pytest.raises(leasehold.Held) as held:
        await leases.acquire("door")
    go_on.set()

    assert held.value.holder == await holding
    assert held.value.holder != leases.holder
    assert leases.holder == leases.holder
    await leases.close()


async def test_tasks_that_share_a_blocking_client_are_one_holder(client: leasehold.Client) -> None:
    client.acquire("door")

    async def again() -> None:
        client.acquire("door")

    with pytest.raises(leasehold.AlreadyHeld):
        await asyncio.create_task(again())


def test_a_name_says_where_it_comes_from() -> None:
    name = Holders(None, threading.current_thread).current()

    assert name.startswith(f"{socket.gethostname()[:60]}-{os.getpid()}-")
    assert len(name.encode()) <= 128


def test_a_host_with_a_very_long_name_still_gives_names_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "h" * 253)

    assert len(Holders(None, threading.current_thread).current().encode()) <= 128


def test_names_of_threads_that_are_gone_are_forgotten() -> None:
    holders = Holders(None, threading.current_thread)
    for _ in range(100):
        in_a_thread(holders.current)

    assert len(holders._names) <= 1

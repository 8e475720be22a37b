"""Connecting: several clients on one store, in either colour."""

import asyncio
from pathlib import Path

import pytest

import leasehold
from leasehold.engine.batch import Rules, run_batch
from leasehold.kernel.lease.commands import Acquire
from leasehold.kernel.ledger.limits import TTL_MINIMUM_NS
from leasehold.registry import FAMILIES
from leasehold.stores.sqlite import SqliteStore
from tests.client.worlds import SIGNAL_SECONDS
from tests.engine.doubles import registrar_of


def test_what_one_client_does_another_sees(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'leases'}"
    with leasehold.connect(url, holder="ann") as one, leasehold.connect(url, holder="bob") as two:
        lease = one.acquire("door")

        assert two.inspect("door")[0].lease == lease.lease
        assert one.url == two.url == url


def test_a_path_is_an_address(tmp_path: Path) -> None:
    with (
        leasehold.connect(tmp_path / "leases") as one,
        leasehold.connect(str(tmp_path / "leases")) as two,
    ):
        assert one.url == two.url


def test_an_asynchronous_client_is_awaited_or_entered(tmp_path: Path) -> None:
    async def both() -> list[str]:
        awaited = await leasehold.connect_async(tmp_path / "leases")
        async with leasehold.connect_async(tmp_path / "leases") as entered:
            urls = [awaited.url, entered.url]
        await awaited.close()
        return urls

    one, two = asyncio.run(both())
    assert one == two


def test_every_store_in_memory_is_another() -> None:
    with leasehold.connect("memory:") as one, leasehold.connect("memory:") as two:
        one.acquire("door")
        two.acquire("door")


def test_a_store_that_must_exist_already_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(leasehold.StoreUnusable):
        leasehold.connect(tmp_path / "missing.db", create=False)


def test_quotas_are_given_when_connecting(tmp_path: Path) -> None:
    with leasehold.connect(tmp_path / "leases", leases_per_holder=1, leases_per_tenant=2) as leases:
        leases.acquire("one", holder="ann")
        with pytest.raises(leasehold.LimitExceeded, match="ann has 1"):
            leases.acquire("two", holder="ann")
        leases.acquire("two", holder="bob")
        with pytest.raises(leasehold.LimitExceeded, match="default has 2"):
            leases.acquire("three", holder="eve")


def be_patient(leases: leasehold.AsyncClient | leasehold.Client) -> None:
    """Let a client wait longer from now on: the turn of others is over, but a busy machine takes its time."""
    registrar = registrar_of(leases)
    registrar.timeout = registrar._committer._timeout = SIGNAL_SECONDS


def test_a_task_does_not_wait_longer_than_its_timeout_for_another_writer(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "leases", families=FAMILIES)

    async def try_in_vain() -> None:
        async with leasehold.connect_async(tmp_path / "leases", timeout=0.05) as leases:
            with store.write():
                with pytest.raises(leasehold.StoreBusy, match="nothing was changed") as busy:
                    await leases.acquire("door")
                assert busy.value.process_id is not None
            be_patient(leases)
            assert (await leases.acquire("door", holder="another")).holder == "another"

    asyncio.run(try_in_vain())
    store.close()


def test_a_sweep_does_not_wait_longer_than_the_timeout_for_another_writer(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "leases", families=FAMILIES)
    with leasehold.connect(tmp_path / "leases", timeout=0.05) as leases:
        with store.write():
            assert leases.sweep() == 0
        overdue = Acquire(lease_id="x", request_id="x", resource="door", holder="ann", ttl_ns=TTL_MINIMUM_NS)
        run_batch(store, [overdue], Rules())
        while leases.inspect("door"):
            pass  # Its millisecond is not over.
        with store.write(), pytest.raises(leasehold.StoreBusy, match="nothing was changed"):
            leases.sweep()
        be_patient(leases)
        assert leases.sweep() == 1
    store.close()


def test_a_client_does_not_wait_longer_than_its_timeout_for_another_writer(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "leases", families=FAMILIES)
    leases = leasehold.connect(tmp_path / "leases", timeout=0.05)
    with store.write():
        with pytest.raises(leasehold.StoreBusy, match="nothing was changed") as busy:
            leases.acquire("door")
        assert busy.value.process_id is not None
        assert leases.inspect("door") == []
        leases.close()

    with leasehold.connect(tmp_path / "leases") as others:
        others.acquire("door")
    store.close()

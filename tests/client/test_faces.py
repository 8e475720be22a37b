"""A face is written once, as coroutines, and speaks through the session of the client it is hung on."""

import inspect
from typing import Any

import pytest

import leasehold
from leasehold.engine.registrar import Registrar
from leasehold.stores.memory import MemoryStore
from tests.client import toy_face
from tests.client.toy_face import AsyncCounters
from tests.client.toy_question import FindCounter, find_counter
from tests.families.toy import toy_families
from tools.generate_sync import blocking


@pytest.fixture
def desk() -> Registrar:
    return Registrar(MemoryStore(families=toy_families()), also={FindCounter: find_counter})


async def test_a_face_sends_and_asks_through_the_session_of_its_client(desk: Registrar) -> None:
    async with leasehold.AsyncClient(desk, tenant="acme") as leases:
        counters = AsyncCounters(leases._session)
        lease = await leases.acquire("job")

        assert await counters.begin("steps", lease) == 1
        assert await counters.value("steps") == 1
        await lease.release()
        assert await counters.value("steps") is None
        assert {entry.event.actor for entry in await leases.history()} == {leases.holder}
        with pytest.raises(leasehold.Refused):
            await counters.begin("more", lease)


def test_the_blocking_half_of_a_face_is_generated_from_the_other(desk: Registrar) -> None:
    generated: dict[str, Any] = {}
    exec(blocking(inspect.getsource(toy_face)), generated)

    with leasehold.Client(desk, tenant="acme") as leases:
        counters = generated["Counters"](leases._session)
        lease = leases.acquire("job")

        assert counters.begin("steps", lease) == 1
        assert counters.value("steps") == 1
        lease.release()
        assert counters.value("steps") is None
        assert {entry.event.actor for entry in leases.history()} == {leases.holder}
        with pytest.raises(leasehold.Refused):
            counters.begin("more", lease)

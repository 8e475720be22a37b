"""Access keys as programs see them, on every store and over a wire."""

from datetime import timedelta
from typing import Any

import pytest

from leasehold.access import AccessKeyEnded, AccessKeyNotFound, LastAdminKey, NotAuthenticated, authenticate
from leasehold.client.blocking.client import Client
from leasehold.engine.registrar import Registrar
from leasehold.errors import InvalidInput, LeaseholdError, NotPermitted
from tests.client.worlds import World
from tests.engine.doubles import registrar_of


def bearer_of(client: Any, text: str, **named: Any) -> Client:
    """A client of whoever shows a key, at the same registrar."""
    registrar: Registrar = registrar_of(client)
    caller = authenticate(registrar, text)
    assert caller is not None
    return Client(registrar.for_caller(caller), tenant=caller.tenant or "default", **named)


async def test_a_key_is_created_and_shown_once(leases: Any) -> None:
    issued = await leases.access.create("holder", holders=["ci-*"], description="builds", expires=60)
    key = issued.key
    assert (key.tenant, key.role, key.holders, key.description) == ("default", "holder", ("ci-*",), "builds")
    assert (key.created_by, key.is_live, key.rotations) == ("ann", True, 0)
    assert issued.text.startswith(f"lh_{key.key_id}_")
    assert issued.text not in repr(issued)
    assert await leases.access.list() == [key]


async def test_a_bearer_does_what_the_key_is_for(leases: Any) -> None:
    issued = await leases.access.create("holder")
    with bearer_of(leases, issued.text) as client:
        assert client.access.bearer() == issued.key
        with client.acquire("door", ttl=30) as lease:
            assert lease.certificate()
        with pytest.raises(NotPermitted, match="the role of this access key is holder, and that needs admin"):
            client.access.create("viewer")
        with pytest.raises(NotPermitted):
            client.settings.set("max_renewals", 1)
    assert await leases.access.bearer() is None


async def test_a_text_that_was_given_for_an_id_is_not_repeated(leases: Any) -> None:
    issued = await leases.access.create("holder")
    with pytest.raises(LeaseholdError, match="give the second part of its text") as refused:
        await leases.access.rotate(issued.text)
    assert issued.text not in str(refused.value)


async def test_a_client_whose_key_is_revoked_can_do_nothing_more(leases: Any) -> None:
    issued = await leases.access.create("holder")
    with bearer_of(leases, issued.text) as client:
        client.acquire("door", ttl=30)
        revoked = await leases.access.revoke(issued.key.key_id, reason="lost")
        assert revoked.is_live is False
        with pytest.raises(NotAuthenticated, match="ask an admin for another"):
            client.acquire("window", ttl=30)
        with pytest.raises(NotAuthenticated):
            client.list()
    (standing,) = await leases.inspect("door")
    assert standing.is_live, "it stands until it expires, or is revoked itself"


async def test_a_key_is_rotated(leases: Any) -> None:
    first = await leases.access.create("viewer", all_tenants=True)
    second = await leases.access.rotate(first.key.key_id, overlap=timedelta(hours=1))
    assert (second.key.rotations, second.key.tenant) == (1, None)
    assert second.key.earlier_until_ns is not None
    assert second.text != first.text
    registrar = registrar_of(leases)
    assert all(authenticate(registrar, one.text) is not None for one in (first, second))


async def test_keys_are_listed_by_tenant(world: World, leases: Any) -> None:
    others = world.connect(tenant="blue")
    mine = await leases.access.create("viewer")
    theirs = await others.access.create("admin")
    root = await others.access.create("admin", all_tenants=True)
    assert await leases.access.list(tenant="blue") == [theirs.key]
    everything = sorted([mine.key, theirs.key, root.key], key=lambda one: str(one.key_id))
    assert await leases.access.list() == everything
    with bearer_of(leases, theirs.text) as client:
        assert client.access.list() == [theirs.key]


async def test_every_change_is_in_history(leases: Any) -> None:
    issued = await leases.access.create("viewer")
    await leases.access.rotate(issued.key.key_id)
    await leases.access.revoke(issued.key.key_id, reason="done")
    events = [one.event for one in await leases.history() if one.event.type.startswith("access.")]
    assert [one.type for one in events] == ["access.created", "access.rotated", "access.revoked"]
    assert {(one.key_id, one.actor) for one in events} == {(issued.key.key_id, "ann")}
    assert (await leases.verify()).problems == []


async def test_what_there_is_not_cannot_be_changed(leases: Any) -> None:
    for ask in (leases.access.rotate, leases.access.revoke):
        with pytest.raises(AccessKeyNotFound, match="list them to find the right id"):
            await ask("nothing")
    issued = await leases.access.create("viewer")
    await leases.access.revoke(issued.key.key_id)
    assert (await leases.access.revoke(issued.key.key_id)).revoked_at_ns is not None
    with pytest.raises(AccessKeyEnded, match="create another"):
        await leases.access.rotate(issued.key.key_id)


async def test_the_last_admin_key_stays(leases: Any) -> None:
    issued = await leases.access.create("admin", all_tenants=True)
    with pytest.raises(LastAdminKey, match="create another one first"):
        await leases.access.revoke(issued.key.key_id)


@pytest.mark.parametrize(
    "given",
    [
        {"role": "root"},
        {"role": 7},
        {"role": "holder", "holders": "ann"},
        {"role": "holder", "holders": [7]},
        {"role": "viewer", "expires": 0},
        {"role": "viewer", "expires": -1},
        {"role": "viewer", "expires": float("nan")},
        {"role": "viewer", "expires": 10**30},
        {"role": "viewer", "description": b"x"},
    ],
)
async def test_what_makes_no_sense_is_refused(leases: Any, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        await leases.access.create(**given)
    assert await leases.access.list() == []

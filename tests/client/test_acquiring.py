"""Acquiring: granted whole or refused with all a caller needs to know."""

from typing import Any

import pytest

import leasehold
from leasehold.kernel.lease.quotas import Quotas
from leasehold.testing.clock import FakeClock
from tests.client.worlds import World


async def test_a_free_resource_is_granted(leases: Any) -> None:
    lease = await leases.acquire("report-42", ttl=30)

    assert (lease.resource, lease.holder, lease.mode) == ("report-42", "ann", leasehold.Mode.EXCLUSIVE)
    assert lease.token > 0
    assert lease.remaining == 30
    assert not lease.lost
    lease.ensure()
    assert lease.lease.lease_id == lease.lease_id


async def test_everything_a_caller_says_is_on_record(leases: Any) -> None:
    lease = await leases.acquire(
        "camera-7",
        ttl=90,
        mode="Shared",
        holder="runner-1",
        max_renewals=5,
        metadata={"site": "north", "ports": [1, 2]},
        config_version="c1",
        zone_version="z1",
        survives_reboot=True,
    )

    status = await leases.get(lease.lease_id)

    assert status.lease == lease.lease
    assert (status.lease.holder, status.lease.mode, status.lease.ttl_ns) == ("runner-1", "shared", 90 * 10**9)
    assert (status.lease.max_renewals, status.lease.bound_to_boot) == (5, False)
    assert status.lease.metadata == {"site": "north", "ports": [1, 2]}
    assert (status.lease.config_version, status.lease.zone_version) == ("c1", "z1")


async def test_what_a_caller_changes_later_does_not_change_the_lease(leases: Any) -> None:
    metadata = {"site": "north"}
    lease = await leases.acquire("camera-7", metadata=metadata)
    metadata["site"] = "south"

    assert lease.lease.metadata == {"site": "north"}


async def test_a_refusal_says_who_holds_it_since_when_and_until_when(
    leases: Any, strangers: Any, clock: FakeClock
) -> None:
    lease = await leases.acquire("door", ttl=30)
    clock.advance(10)

    with pytest.raises(leasehold.Held, match=r"door is held by ann for at most 20\.0 s more") as held:
        await strangers.acquire("door")

    assert (held.value.holder, held.value.lease_id, held.value.token) == ("ann", lease.lease_id, lease.token)
    assert (held.value.expires_in, held.value.retry_after) == (20.0, 20.0)
    assert held.value.since == lease.lease.issued_at_ns / 10**9
    assert held.value.facts["holder"] == "ann"


async def test_try_acquire_returns_none_if_somebody_else_holds_it(leases: Any, strangers: Any) -> None:
    lease = await leases.try_acquire("door", ttl=5, metadata={"a": 1})

    assert lease.lease.metadata == {"a": 1}
    assert await strangers.try_acquire("door") is None
    with pytest.raises(leasehold.AlreadyHeld):
        await leases.try_acquire("door")


async def test_what_one_holds_already_is_refused_and_named(leases: Any) -> None:
    lease = await leases.acquire("door")

    with pytest.raises(leasehold.AlreadyHeld, match="adopt=True") as already:
        await leases.acquire("door")
    assert already.value.lease_id == lease.lease_id


async def test_shared_leases_stand_side_by_side_and_keep_an_exclusive_one_out(
    world: World, leases: Any, strangers: Any
) -> None:
    one = await leases.acquire("hall", mode=leasehold.Mode.SHARED)
    two = await strangers.acquire("hall", mode="shared")

    third = world.connect(holder="eve")
    with pytest.raises(leasehold.Held) as held:
        await third.acquire("hall")
    assert held.value.mode == "shared"
    await one.release()
    await two.release()
    await third.acquire("hall")
    with pytest.raises(leasehold.Held):
        await leases.acquire("hall", mode="shared")


async def test_an_expired_lease_blocks_nobody(leases: Any, strangers: Any, clock: FakeClock) -> None:
    old = await leases.acquire("door", ttl=30)
    clock.advance(30)

    new = await strangers.acquire("door")

    assert new.token > old.token
    history = [entry.event.type for entry in await strangers.history(resource="door")]
    assert history == ["lease.issued", "lease.expired", "lease.issued"]


async def test_a_released_resource_is_free_at_once_under_a_higher_token(leases: Any, strangers: Any) -> None:
    tokens = []
    for client in (leases, strangers) * 3:
        lease = await client.acquire("door")
        tokens.append(lease.token)
        await lease.release()

    assert tokens == sorted(set(tokens))


async def test_a_request_id_makes_a_second_call_a_retry(
    leases: Any, strangers: Any, clock: FakeClock
) -> None:
    first = await leases.acquire("door", ttl=30, request_id="order-7")
    clock.advance(10)
    again = await leases.acquire("door", ttl=30, request_id="order-7")

    assert (again.lease_id, again.token, again.remaining) == (first.lease_id, first.token, 20.0)
    with pytest.raises(leasehold.AlreadyHeld):
        await leases.acquire("door", ttl=31, request_id="order-7")
    with pytest.raises(leasehold.Held):
        await strangers.acquire("door", ttl=30, request_id="order-7")


async def test_a_retry_is_told_if_its_lease_has_ended_since(leases: Any) -> None:
    first = await leases.acquire("door", request_id="order-7")
    await first.release()

    with pytest.raises(leasehold.LeaseTerminal, match="new request id") as ended:
        await leases.acquire("door", request_id="order-7")
    assert (ended.value.lease_id, ended.value.request_id) == (first.lease_id, "order-7")


async def test_quotas_hold_and_name_themselves(world: World) -> None:
    leases = world.connect(holder="ann", quotas=Quotas(leases_per_holder=2, leases_per_tenant=3))
    await leases.acquire("one")
    two = await leases.acquire("two")
    with pytest.raises(leasehold.LimitExceeded, match="at most 2") as limit:
        await leases.acquire("three")
    assert (limit.value.field, limit.value.limit) == ("leases_per_holder", 2)
    await leases.acquire("three", holder="bob")
    with pytest.raises(leasehold.LimitExceeded) as limit:
        await leases.acquire("four", holder="eve")
    assert (limit.value.field, limit.value.limit) == ("leases_per_tenant", 3)
    await two.release()
    await leases.acquire("four", holder="eve")


async def test_tenants_do_not_see_each_other(world: World) -> None:
    one, two = world.connect(tenant="one", holder="ann"), world.connect(tenant="two", holder="bob")
    lease = await one.acquire("door")

    other = await two.acquire("door")
    assert await two.get(lease.lease_id) is None
    assert [status.lease.holder for status in await two.inspect("door")] == ["bob"]
    assert [status.lease.lease_id for status in (await two.list()).statuses] == [other.lease_id]
    assert {entry.event.keys for entry in await two.history()} == {(other.lease_id,)}
    with pytest.raises(leasehold.LeaseNotFound):
        await two.renew(lease.lease_id, holder="ann")
    with pytest.raises(leasehold.LeaseNotFound):
        await two.revoke(lease.lease_id, reason="no business of theirs")


async def test_a_client_keeps_what_it_acquired_until_it_is_closed(world: World) -> None:
    leases, strangers = world.connect(holder="ann"), world.connect(holder="bob")
    for number in range(5):
        await leases.acquire(f"door-{number}")
    await leases.close()
    await leases.close()

    for number in range(5):
        await strangers.acquire(f"door-{number}")
    for use in (leases.acquire, leases.get):
        with pytest.raises(leasehold.ClientClosed):
            await use("door")


async def test_a_client_is_closed_at_the_end_of_its_block(world: World, strangers: Any) -> None:
    async with world.connect(holder="ann") as leases:
        lease = await leases.acquire("door")
        assert leases.url.startswith(("memory:", "sqlite:///", "http://"))

    await strangers.acquire("door")
    with pytest.raises(leasehold.LeaseLost, match="released"):
        lease.ensure()

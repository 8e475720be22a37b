"""Looking: who holds what, since when, and what happened before."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

import leasehold
from leasehold.testing.clock import FakeClock


async def test_inspect_says_who_holds_a_resource_since_and_until_when(
    leases: Any, strangers: Any, clock: FakeClock
) -> None:
    lease = await leases.acquire("door", ttl=30)
    clock.advance(10)
    await lease.renew()
    clock.advance(5)

    (status,) = await strangers.inspect("door")

    assert status == await strangers.get(lease.lease_id)
    assert (status.lease.holder, status.lease.token) == ("ann", lease.token)
    assert (status.expires_in, status.is_live, status.lease.renewal_count) == (25.0, True, 1)
    assert status.lease.last_renewed_at_ns - status.lease.issued_at_ns == 10 * 10**9


async def test_inspect_shows_only_what_stands(leases: Any, clock: FakeClock) -> None:
    assert await leases.inspect("door") == []
    await leases.acquire("door", ttl=5)
    clock.advance(5)
    assert await leases.inspect("door") == []


async def test_get_finds_what_has_ended_and_nothing_that_never_was(leases: Any) -> None:
    lease = await leases.acquire("door")
    await lease.release()

    status = await leases.get(lease.lease_id)
    assert (status.lease.state, status.is_live) == (leasehold.LeaseState.RELEASED, False)
    assert await leases.get("nonsense") is None


async def test_pages_follow_each_other_in_the_order_of_the_grants(leases: Any) -> None:
    granted = [(await leases.acquire(f"door-{number}")).lease_id for number in range(25)]
    found, after, sizes = [], None, []
    while True:
        page = await leases.list(limit=10, after=after)
        found += [status.lease.lease_id for status in page.statuses]
        sizes.append(len(page.statuses))
        after = page.next
        if after is None:
            break

    assert found == granted
    assert sizes == [10, 10, 5]


async def test_a_page_that_is_just_full_is_followed_by_an_empty_one(leases: Any) -> None:
    for number in range(4):
        await leases.acquire(f"door-{number}")

    page = await leases.list(limit=4)
    assert (await leases.list(limit=4, after=page.next)).statuses == []


async def test_lists_are_narrowed_by_prefix_resource_holder_and_state(
    leases: Any, strangers: Any, clock: FakeClock
) -> None:
    await leases.acquire("rooms/1")
    await strangers.acquire("rooms/2")
    await leases.acquire("rooms%")
    ended = await leases.acquire("rooms/3")
    await ended.release()
    await leases.acquire("rooms/old", ttl=5)
    clock.advance(5)

    async def found(**narrow: Any) -> list[str]:
        return sorted(status.lease.resource for status in (await leases.list(**narrow)).statuses)

    assert await found() == ["rooms%", "rooms/1", "rooms/2", "rooms/old"]
    assert await found(prefix="rooms/") == ["rooms/1", "rooms/2", "rooms/old"]
    assert await found(prefix="rooms%") == ["rooms%"]
    assert await found(prefix="") == await found()
    assert await found(resource="rooms/2") == ["rooms/2"]
    assert await found(holder="bob") == ["rooms/2"]
    assert await found(states=["RELEASED"]) == ["rooms/3"]
    assert await found(states=[], prefix="rooms/") == ["rooms/1", "rooms/2", "rooms/3", "rooms/old"]


async def test_what_has_expired_unnoticed_is_listed_with_nothing_left(leases: Any, clock: FakeClock) -> None:
    await leases.acquire("door", ttl=5)
    clock.advance(5)

    (status,) = (await leases.list()).statuses
    assert (status.lease.state, status.expires_in, status.is_live) == ("active", 0.0, False)


async def test_history_tells_everything_about_a_lease_in_order(
    leases: Any, strangers: Any, clock: FakeClock
) -> None:
    lease = await leases.acquire("door", ttl=30)
    other = await leases.acquire("window", ttl=30)
    clock.advance(1)
    await lease.renew()
    clock.advance(1)
    await leases.renew_many([lease, other])
    await lease.release()
    theirs = await strangers.acquire("door")

    history = await leases.history(lease_id=lease.lease_id)

    assert [entry.event.type for entry in history] == [
        "lease.issued",
        "lease.renewed",
        "lease.renewed",
        "lease.released",
    ]
    assert [entry.position for entry in history] == sorted(entry.position for entry in history)
    assert all(lease.lease_id in entry.event.keys for entry in history)
    of_resource = await leases.history(resource="door", types=["lease.issued"])
    assert [entry.event.token for entry in of_resource] == [lease.token, theirs.token]
    assert {entry.event.holder for entry in await leases.history(holder="bob")} == {"bob"}
    assert await leases.history(lease_id="nonsense") == []


async def test_history_is_read_page_by_page(leases: Any) -> None:
    for number in range(7):
        await leases.acquire(f"door-{number}")
    everything = await leases.history()
    pages, after = [], 0
    while page := await leases.history(after=after, limit=3):
        pages.append(page)
        after = page[-1].position

    assert [len(page) for page in pages] == [3, 3, 1]
    assert [entry for page in pages for entry in page] == everything


@pytest.mark.parametrize("tenant", ["default", "another"])
async def test_history_is_a_tenants_own(world: Any, tenant: str) -> None:
    for name in ("default", "another"):
        await world.connect(tenant=name, holder=name).acquire("door")

    history = await world.connect(tenant=tenant).history()

    assert [entry.event.holder for entry in history] == [tenant]


async def test_history_tells_who_held_a_resource_at_any_moment(leases: Any, clock: FakeClock) -> None:
    first = await leases.acquire("door", ttl=10)
    clock.advance(20)
    second = await leases.acquire("door", ttl=10)
    start = clock.wall_ns() / 1e9 - 20

    async def tokens(after_seconds: float) -> list[int]:
        page = await leases.held_at(start + after_seconds, resource="door")
        return [status.lease.token for status in page.statuses]

    assert [await tokens(seconds) for seconds in (-1, 5, 15, 25)] == [[], [first.token], [], [second.token]]
    with pytest.raises(leasehold.InvalidInput, match="time zone"):
        await leases.held_at(datetime(2026, 1, 30))
    assert (await leases.held_at(datetime(2026, 1, 30, tzinfo=UTC))).statuses == []


async def test_a_client_verifies_the_ledger_and_tells_its_head(leases: Any) -> None:
    await leases.acquire("door")
    head = await leases.head()
    found = await leases.verify(head=head)
    assert (found.problems, found.head, found.entries) == ([], head, 2)
    assert (await leases.verify(first_key="0123456789abcdef")).first_bad == 1


async def test_what_is_printed_of_a_client_and_a_lease_says_what_they_are(leases: Any) -> None:
    lease = await leases.acquire("door")
    assert re.fullmatch("<(Async)?Client of (memory:|sqlite:///.*|http://.*), tenant default>", repr(leases))
    assert re.fullmatch(r"<lease on door by ann, token \d+, [\d.]+ s left>", repr(lease))
    await lease.release()
    assert repr(lease).endswith(", released or detached>")

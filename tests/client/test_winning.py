"""What was won by waiting is had at once, and confirmed soon.

A thread that was woken only looks, and its lease is confirmed by whatever is done next; a task has confirmed
it by asking.
"""

import asyncio
from typing import Any

import pytest

from leasehold import Budget, Scope
from tests.client.test_waiting import meanwhile, queued, soon
from tests.client.worlds import SIGNAL_SECONDS, World

_WINDOW = 40.0


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give winners time, and let no keeper come before us, however slow the machine is."""
    for module in ("kernel.lease.queue", "engine.status", "engine.kept"):
        monkeypatch.setattr(f"leasehold.{module}.CLAIM_WINDOW_NS", int(_WINDOW * 1e9))
    monkeypatch.setattr("leasehold.engine.keeper._CONFIRM_AFTER_NS", int(_WINDOW * 1e9) // 2)


async def win(world: World, **claim: Any) -> Any:
    """Return a lease that somebody else has released, and we have waited for.

    Who waits has a steady line: a claim that is sent again confirms what it finds.
    """
    ann, bob = world.connect(holder="ann"), world.connect(holder="bob", is_steady=True)
    first = await ann.acquire("door", ttl=60)

    async def wait() -> Any:
        return await bob.acquire("door", ttl=60, wait=SIGNAL_SECONDS, **claim)

    waiting = meanwhile(world, wait())
    await queued(ann)
    await first.release()
    return await soon(waiting)


async def confirmed(client: Any, lease_id: str) -> None:
    """Return once the registrar has heard of a winner."""

    async def follow() -> None:
        async for entry in client.watch(after=0):
            if entry.event.type == "lease.renewed" and lease_id in entry.event.keys:
                return

    await asyncio.wait_for(follow(), SIGNAL_SECONDS)


@pytest.mark.usefixtures("unhurried")
async def test_what_was_won_lasts_for_the_claim_window_until_it_is_confirmed(real_world: World) -> None:
    won = await win(real_world)
    assert won.is_unconfirmed is real_world.blocking
    assert (0 < won.remaining < _WINDOW) is real_world.blocking
    won.ensure()


@pytest.mark.parametrize("client_kind", ["blocking"])
@pytest.mark.parametrize("max_renewals", [-1, 0])
async def test_the_keeper_confirms_what_was_won(real_world: World, max_renewals: int) -> None:
    won = await win(real_world, max_renewals=max_renewals)

    onlooker = real_world.connect()

    await confirmed(onlooker, won.lease_id)

    seen = await onlooker.get(won.lease_id)
    assert seen.expires_in > 50
    assert seen.lease.renewal_count == 0, "a confirmation is no renewal"


@pytest.mark.usefixtures("unhurried")
async def test_what_is_given_back_at_once_was_never_confirmed(real_world: World) -> None:
    won = await win(real_world)
    await won.release()
    events = await real_world.connect().history(lease_id=won.lease_id)
    confirmation = [] if real_world.blocking else ["lease.confirmed"]
    types = ["lease.queued", "lease.issued", *confirmation, "lease.released"]
    assert [one.event.type for one in events] == types


@pytest.mark.parametrize("act", ["downgrade", "certificate"])
async def test_who_acts_on_what_was_won_confirms_it_first(real_world: World, act: str) -> None:
    won = await win(real_world)
    await getattr(won, act)()
    assert not won.is_unconfirmed
    assert won.remaining > 50


async def test_what_was_won_can_be_handed_on_at_once(real_world: World) -> None:
    won = await win(real_world)
    assert (await won.transfer("cid")).holder == "cid"


async def test_what_was_won_can_be_spent_and_derived_from_at_once(real_world: World) -> None:
    won = await win(real_world, scope=Scope(unlimited=True), budget=Budget(tool_calls=5))
    child = await won.derive("room", ttl=30, budget=Budget(tool_calls=2))
    assert child.remaining > 20, "not only as long as the claim window"
    assert (await won.spend(tool_calls=3)).tool_calls == 0


async def test_what_was_won_and_is_detached_lasts_its_whole_time(real_world: World) -> None:
    won = await win(real_world)
    lease = won.detach()
    if real_world.blocking:
        await confirmed(real_world.connect(), lease.lease_id)
    assert (await real_world.connect().get(lease.lease_id)).expires_in > 50

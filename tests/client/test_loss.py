"""Loss is loud: seen, waited for, called back about, and never taken back."""

import queue
import threading
from contextlib import suppress
from typing import Any

import pytest

import leasehold
from leasehold.engine.desk import Failure
from leasehold.testing.clock import FakeClock
from tests.client.worlds import SIGNAL_SECONDS, World
from tests.engine.doubles import claim


async def test_a_lease_found_to_be_revoked_is_lost_and_says_why(
    world: World, leases: Any, strangers: Any, clock: FakeClock
) -> None:
    lease = await leases.acquire("door", ttl=30)
    await strangers.revoke(lease.lease_id, reason="stuck")
    lease.ensure()  # Nobody has told us yet.
    clock.advance(11)
    world.keep()

    assert await lease.lost.wait(SIGNAL_SECONDS) is True
    assert lease.lost
    assert lease.remaining == 0
    assert lease.lost.error.state == "revoked"
    assert (lease.lost.error.ended_by, lease.lost.error.end_reason) == ("bob", "stuck")
    assert "is over (revoked by bob: stuck)" in str(lease.lost.error)
    with pytest.raises(leasehold.LeaseTerminal):
        lease.ensure()
    with pytest.raises(leasehold.LeaseTerminal):
        lease.detach()
    assert "lost" in repr(lease)


async def test_waiting_for_a_loss_that_does_not_come_ends_in_time(leases: Any) -> None:
    lease = await leases.acquire("door")

    assert await lease.lost.wait(0) is False
    assert await lease.lost.wait(0.01) is False
    assert lease.hearers == []  # Who has gone is not told.
    assert not lease.lost


async def test_ensure_asks_the_clock_and_needs_no_keeper(leases: Any, clock: FakeClock) -> None:
    lease = await leases.acquire("door", ttl=30)
    clock.advance(29.999)
    lease.ensure()
    clock.advance(0.001)

    with pytest.raises(leasehold.LeaseExpired, match="could not be renewed in time"):
        lease.ensure()
    assert lease.lost
    assert await lease.lost.wait(SIGNAL_SECONDS)


async def test_asking_again_and_again_does_not_make_the_error_grow(leases: Any, clock: FakeClock) -> None:
    lease = await leases.acquire("door", ttl=5)
    clock.advance(5)
    depths = []
    for _ in range(50):
        with pytest.raises(leasehold.LeaseExpired) as lost:
            lease.ensure()
        depths.append(len(lost.traceback))

    assert depths[-1] <= depths[0]


async def test_whoever_wants_to_be_called_is_called_once_from_another_thread(
    world: World, leases: Any, clock: FakeClock
) -> None:
    calls: list[tuple[str, str | None]] = []
    called = threading.Event()

    def on_lost(error: leasehold.LeaseholdError) -> None:
        calls.append((threading.current_thread().name, error.lease_id))
        called.set()

    lease = await leases.acquire("door", ttl=30, on_lost=on_lost)
    clock.advance(30)
    world.keep()
    with pytest.raises(leasehold.LeaseExpired):
        lease.ensure()
    world.keep()

    assert called.wait(SIGNAL_SECONDS)
    assert calls == [("leasehold-on-lost", lease.lease_id)]


async def test_whoever_is_called_may_use_the_client(world: World, strangers: Any, clock: FakeClock) -> None:
    # A thread that renews, or commits, would wait here for itself.
    leases = world.connect(holder="ann", is_steady=True)
    plain = getattr(leases, "target", leases)
    answered: list[Any] = []
    called = threading.Event()

    def take_another(error: leasehold.LeaseholdError) -> None:
        answered.append(plain._session.desk.call(claim("another")))
        called.set()

    lease = await leases.acquire("door", ttl=30, on_lost=take_another)
    await strangers.revoke(lease.lease_id, reason="stuck")
    clock.advance(11)
    world.keep()

    assert called.wait(SIGNAL_SECONDS)
    assert answered[0].lease.resource == "another"


async def test_whoever_fails_when_called_hurts_nobody_else(
    world: World, leases: Any, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    called = threading.Event()

    def fail(error: leasehold.LeaseholdError) -> None:
        raise RuntimeError("a defect of the callers")

    await leases.acquire("one", ttl=30, on_lost=fail)
    await leases.acquire("two", ttl=40, on_lost=lambda error: called.set(), max_renewals=0)
    three = await leases.acquire("three", ttl=90)
    clock.advance(30)
    world.keep()
    clock.advance(10)
    world.keep()

    assert called.wait(SIGNAL_SECONDS)
    assert "a defect of the callers" in caplog.text
    three.ensure()


async def test_nobody_is_called_for_a_lease_that_was_released_or_detached(
    world: World, leases: Any, clock: FakeClock
) -> None:
    calls: list[object] = []
    released = await leases.acquire("one", ttl=5, on_lost=calls.append)
    detached = await leases.acquire("two", ttl=5, on_lost=calls.append)
    heard = threading.Event()
    await leases.acquire("three", ttl=5, on_lost=lambda error: heard.set())
    await released.release()
    detached.detach()
    clock.advance(5)
    world.keep()

    assert heard.wait(SIGNAL_SECONDS)
    assert calls == []


async def test_a_store_that_is_down_for_a_while_loses_nothing(
    world: World, leases: Any, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = await leases.acquire("door", ttl=30)
    registrar = getattr(leases, "target", leases)._session.desk

    def down(command: Any, deliver: Any) -> None:
        deliver(Failure.of(leasehold.StoreFailed("the disk is away")))

    with monkeypatch.context() as broken:
        broken.setattr(registrar, "submit", down)
        for _ in range(20):
            clock.advance(1.3)
            world.keep()
            lease.ensure()
    clock.advance(1.3)
    renewed = await leases.history(types=["lease.renewed"])
    assert renewed == []
    world.keep()
    entries = leases.watch(after=0)
    while (await anext(entries)).event.type != "lease.renewed":
        pass

    assert not lease.lost
    await entries.aclose()


async def test_a_store_that_is_down_for_too_long_loses_the_lease_in_time(
    world: World, leases: Any, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = await leases.acquire("door", ttl=30)
    registrar = getattr(leases, "target", leases)._session.desk
    monkeypatch.setattr(
        registrar, "submit", lambda command, deliver: deliver(Failure.of(leasehold.StoreFailed("away")))
    )
    for _ in range(30):
        assert not lease.lost
        clock.advance(1)
        world.keep()

    assert lease.lost
    with pytest.raises(leasehold.LeaseExpired):
        lease.ensure()
    monkeypatch.undo()


async def test_the_keeper_renews_while_nobody_looks(
    real_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # More often than usual, so that a busy machine has time until the lease is over.
    monkeypatch.setattr("leasehold.engine.keeper._RENEWALS_PER_TTL", 20)
    leases, strangers = real_world.connect(holder="ann"), real_world.connect(holder="bob")
    lease = await leases.acquire("door", ttl=1)
    entries = strangers.watch(after=0)
    first = (await anext(entries)).event.tick.value
    while (await anext(entries)).event.tick.value < first + 1_100_000_000:
        pass  # Until the first TTL is over.

    lease.ensure()
    with pytest.raises(leasehold.Held):
        await strangers.acquire("door")
    await entries.aclose()


async def test_a_detached_lease_is_not_kept_and_expires(
    world: World, leases: Any, strangers: Any, clock: FakeClock
) -> None:
    lease = await leases.acquire("door", ttl=30)
    lease.detach()
    clock.advance(29)
    world.keep()
    await leases.acquire("window")  # behind what the keeper may have sent
    clock.advance(1)

    await strangers.acquire("door")
    assert [entry.event.type for entry in await leases.history(lease_id=lease.lease_id)] == [
        "lease.issued",
        "lease.expired",
    ]


def fail_renewals(client: Any, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Let every command from now on fail, as for a server that is gone, or that does not know the key."""
    desk = getattr(client, "target", client)._session.desk
    monkeypatch.setattr(desk, "submit", lambda command, deliver: deliver(Failure.of(error)))


async def test_a_lease_that_could_not_be_renewed_says_what_kept_it_from_that(
    world: World, leases: Any, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    heard: queue.SimpleQueue[leasehold.LeaseholdError] = queue.SimpleQueue()
    lease = await leases.acquire("door", ttl=30, on_lost=heard.put)
    with monkeypatch.context() as patched:
        refused = leasehold.NotAuthenticated("the key was revoked")
        fail_renewals(leases, patched, refused)
        clock.advance(11)
        world.keep()
        lease.ensure()  # It stands until it expires, and what is the matter may pass.
        clock.advance(19)
        world.keep()

    with pytest.raises(leasehold.LeaseExpired, match=r"in time \(the key was revoked\)") as lost:
        lease.ensure()
    assert (lost.value.cause, lost.value.__cause__) == ("NOT_AUTHENTICATED", refused)
    assert heard.get(timeout=SIGNAL_SECONDS) is lost.value
    early, late = [one for one in caplog.records if one.name == "leasehold.losses"]
    assert early.levelname == late.levelname == "WARNING"
    assert "leases of ann (1) could not be renewed" in early.getMessage()
    assert str(lost.value) in late.getMessage()


async def test_a_trouble_that_has_passed_is_not_what_a_later_loss_comes_from(
    world: World, leases: Any, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = await leases.acquire("door", ttl=30)
    with monkeypatch.context() as patched:
        fail_renewals(leases, patched, leasehold.StoreBusy("busy"))
        clock.advance(11)
        world.keep()
    clock.advance(5)
    await lease.renew()
    clock.advance(30)

    with pytest.raises(leasehold.LeaseExpired, match="in time, so") as lost:
        lease.ensure()
    assert (lost.value.cause, lost.value.__cause__) == (None, None)


async def test_the_end_of_a_block_raises_the_loss_with_its_cause(
    world: World, leases: Any, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        async with leases.acquire("door", ttl=30) as lease:
            with monkeypatch.context() as patched:
                fail_renewals(leases, patched, leasehold.StoreFull("no space"))
                clock.advance(11)
                world.keep()
            clock.advance(20)
            with suppress(leasehold.LeaseExpired):
                lease.ensure()

    with pytest.raises(leasehold.LeaseExpired) as lost:
        await work()
    assert isinstance(lost.value.__cause__, leasehold.StoreFull)

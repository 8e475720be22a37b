"""The block: entered only with the lease, released at its end, and loud if the lease was gone before."""

from contextlib import suppress
from typing import Any

import pytest

import leasehold
from leasehold.engine.desk import Failure
from leasehold.kernel.lease.commands import Release
from leasehold.testing.clock import FakeClock


async def test_the_lease_is_released_at_the_end_of_the_block(leases: Any, strangers: Any) -> None:
    async with leases.acquire("door") as lease:
        with pytest.raises(leasehold.Held):
            await strangers.acquire("door")

    status = await leases.get(lease.lease_id)
    assert status.lease.release_reason == "completed"
    await strangers.acquire("door")


async def test_a_lease_acquired_before_can_be_entered_too(leases: Any, strangers: Any) -> None:
    lease = await leases.acquire("door")
    async with lease as entered:
        assert entered.lease_id == lease.lease_id

    await strangers.acquire("door")


async def test_the_bodys_error_comes_through_and_the_lease_is_released_as_aborted(leases: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        async with leases.acquire("door") as lease:
            raise ZeroDivisionError

    status = await leases.get(lease.lease_id)
    assert (status.lease.state, status.lease.release_reason) == ("released", "aborted")


async def test_a_body_is_never_entered_without_the_lease(leases: Any, strangers: Any) -> None:
    await strangers.acquire("door")
    entered = False

    with pytest.raises(leasehold.Held):
        async with leases.acquire("door"):
            entered = True
    assert not entered


async def test_a_body_is_never_entered_with_a_lease_that_expired_before(
    leases: Any, clock: FakeClock
) -> None:
    lease = await leases.acquire("door", ttl=5)
    clock.advance(5)
    entered = False

    with pytest.raises(leasehold.LeaseExpired):
        async with lease:
            entered = True
    assert not entered


async def test_a_body_is_never_entered_twice_with_one_lease(leases: Any) -> None:
    lease = await leases.acquire("door")
    async with lease:
        pass

    with pytest.raises(leasehold.LeaseLost, match="acquire the resource again"):
        async with lease:
            pytest.fail("entered without the lease")


async def test_the_end_of_the_block_raises_if_the_lease_had_expired_by_then(
    leases: Any, clock: FakeClock
) -> None:
    with pytest.raises(leasehold.LeaseLost, match="had ended before the block did"):
        async with leases.acquire("door", ttl=5) as lease:
            clock.advance(5)

    assert lease.remaining == 0


async def test_the_end_of_the_block_raises_if_the_lease_was_revoked_by_then(
    leases: Any, strangers: Any
) -> None:
    with pytest.raises(leasehold.LeaseLost, match="had ended before the block did") as lost:
        async with leases.acquire("door") as lease:
            await strangers.revoke(lease.lease_id, reason="stuck")

    assert (lost.value.lease_id, lost.value.token) == (lease.lease_id, lease.token)
    assert "(revoked by bob: stuck)" in str(lost.value)
    assert (lost.value.ended_by, lost.value.end_reason) == ("bob", "stuck")


async def test_the_bodys_own_error_goes_before_the_loss(leases: Any, clock: FakeClock) -> None:
    async def work() -> None:
        async with leases.acquire("door", ttl=5):
            clock.advance(5)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work()


async def test_what_ensure_raises_in_the_body_comes_through(leases: Any, clock: FakeClock) -> None:
    async def work() -> None:
        async with leases.acquire("door", ttl=5) as lease:
            clock.advance(5)
            lease.ensure()
            pytest.fail("went on without the lease")

    with pytest.raises(leasehold.LeaseExpired):
        await work()


async def test_a_lease_released_in_the_body_is_nothing_to_complain_about(leases: Any, strangers: Any) -> None:
    async with leases.acquire("door") as lease:
        assert await lease.release() is True
        theirs = await strangers.acquire("door")

    theirs.ensure()


async def test_a_lease_detached_in_the_body_is_not_released(leases: Any, strangers: Any) -> None:
    async with leases.acquire("door") as lease:
        assert lease.detach().lease_id == lease.lease_id

    with pytest.raises(leasehold.Held):
        await strangers.acquire("door")


def fail_releases(client: Any, monkeypatch: pytest.MonkeyPatch, error: leasehold.LeaseholdError) -> None:
    """Make every release fail from now on."""
    desk = getattr(client, "target", client)._session.desk
    call, submit = desk.call, desk.submit
    failure = Failure.of(error)

    def call_and_fail(command: Any) -> Any:
        return failure if isinstance(command, Release) else call(command)

    def submit_and_fail(command: Any, deliver: Any) -> Any:
        return deliver(failure) if isinstance(command, Release) else submit(command, deliver)

    monkeypatch.setattr(desk, "call", call_and_fail)
    monkeypatch.setattr(desk, "submit", submit_and_fail)


FAILURES = [
    leasehold.StoreFull("no space"),
    leasehold.ClientClosed("closed elsewhere"),
    leasehold.NotAuthenticated("the key was revoked"),
    leasehold.NotPermitted("the key is another's"),
    leasehold.RateLimited("too often"),
    leasehold.NotHolder("somebody else's"),
]
every_failure = pytest.mark.parametrize("failure", FAILURES, ids=lambda error: type(error).__name__)


@every_failure
async def test_a_release_that_fails_at_the_end_of_the_block_is_reported(
    leases: Any, monkeypatch: pytest.MonkeyPatch, failure: leasehold.LeaseholdError
) -> None:
    with pytest.raises(type(failure)):
        async with leases.acquire("door"):
            fail_releases(leases, monkeypatch, failure)


@every_failure
async def test_the_bodys_error_goes_before_that_of_a_failing_release(
    leases: Any, monkeypatch: pytest.MonkeyPatch, failure: leasehold.LeaseholdError
) -> None:
    async def work() -> None:
        async with leases.acquire("door"):
            fail_releases(leases, monkeypatch, failure)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work()


@every_failure
async def test_what_ensure_raised_in_the_body_goes_before_the_error_of_a_failing_release(
    leases: Any, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, failure: leasehold.LeaseholdError
) -> None:
    async def work() -> None:
        async with leases.acquire("door", ttl=5) as lease:
            fail_releases(leases, monkeypatch, failure)
            clock.advance(5)
            lease.ensure()

    with pytest.raises(leasehold.LeaseExpired):
        await work()


@every_failure
async def test_the_loss_goes_before_the_error_of_a_failing_release(
    leases: Any, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, failure: leasehold.LeaseholdError
) -> None:
    async def work() -> None:
        async with leases.acquire("door", ttl=5) as lease:
            fail_releases(leases, monkeypatch, failure)
            clock.advance(5)
            with suppress(leasehold.LeaseExpired):
                lease.ensure()

    with pytest.raises(leasehold.LeaseExpired):
        await work()

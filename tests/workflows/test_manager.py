"""What operators do with the leases of workflows."""

from datetime import UTC, datetime
from typing import Any

import pytest

from leasehold.errors import InvalidInput, LimitExceeded
from leasehold.testing.clock import FakeClock
from leasehold.workflows import EventType, WorkflowLeaseNotFound
from leasehold.workflows.aio import manager as aio_manager
from leasehold.workflows.blocking import manager as blocking_manager


async def test_active_leases_are_those_under_which_somebody_may_act_now(
    clock: FakeClock, leases: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (aio_manager, blocking_manager):
        monkeypatch.setattr(module, "_PAGE", 2)  # More than one page.
    lasting = [await leases.workflows.claim(f"order-{number}", ttl=300) for number in range(3)]
    expiring = await leases.workflows.claim("order-3", ttl=10)
    done = await leases.workflows.claim("order-4")
    await done.complete()
    assert expiring.lease_id in await leases.workflows.manager.active_leases()
    clock.advance(11)

    active = await leases.workflows.manager.active_leases()

    assert set(active) == {one.lease_id for one in lasting}
    assert active[lasting[0].lease_id].ttl_seconds == 300


async def test_a_revocation_is_an_event_with_its_reason_and_its_time(
    clock: FakeClock, leases: Any, strangers: Any
) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    clock.advance(5)

    event = await strangers.workflows.manager.revoke_lease(orchestrator.lease_id, "hangs", operator="olga")

    at = datetime.fromtimestamp(clock.wall_ns() / 1e9, UTC)
    assert event.event_type is EventType.LEASE_REVOKED
    assert event.payload == {
        "lease_id": orchestrator.lease_id,
        "reason": "hangs",
        "revoked_at": at.isoformat(),
    }
    (told,) = (one.message for one in (await leases.workflows.actions("order-1"))[1:])
    assert {name: told.payload[name] for name in event.payload} == event.payload
    assert (await leases.get(orchestrator.lease_id)).lease.ended_by == "olga"
    assert await leases.workflows.manager.active_leases() == {}


async def test_what_is_no_active_lease_of_a_workflow_is_not_found(clock: FakeClock, leases: Any) -> None:
    plain = await leases.acquire("door")
    impostor = await leases.acquire("workflow:nobody")
    expired = await leases.workflows.claim("order-1", ttl=10)
    clock.advance(11)
    revoked = await leases.workflows.claim("order-2")
    await leases.workflows.manager.revoke_lease(revoked.lease_id, "once")

    for lease in (plain.lease_id, impostor.lease_id, expired.lease_id, revoked.lease_id, "unknown"):
        with pytest.raises(WorkflowLeaseNotFound) as missing:
            await leases.workflows.manager.revoke_lease(lease, "twice")
        assert missing.value.error_code == "LEASE_NOT_FOUND"
    assert (await leases.get(plain.lease_id)).is_live
    assert (await leases.get(impostor.lease_id)).is_live


@pytest.mark.parametrize("reason", ["", "x" * 1025, None])
async def test_a_revocation_needs_a_reason(leases: Any, reason: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")

    with pytest.raises((InvalidInput, LimitExceeded)) as refused:
        await leases.workflows.manager.revoke_lease(orchestrator.lease_id, reason)

    assert refused.value.field == "reason"
    assert (await orchestrator.emit("compute")).epoch == 0


async def test_expiry_is_recorded_so_that_the_bus_tells_of_it(clock: FakeClock, leases: Any) -> None:
    await leases.workflows.claim("order-1", ttl=10)
    clock.advance(10)

    assert await leases.workflows.manager.expire_leases() == 1

    assert (await leases.workflows.actions("order-1"))[-1].message.event_type is EventType.LEASE_EXPIRED

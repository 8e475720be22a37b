from typing import Any

import pytest

from leasehold.kernel.lease.answers import Ended
from leasehold.kernel.lease.events import LeaseReleased, LeaseRevoked
from leasehold.kernel.lease.model import LeaseState, ReleaseReason
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from tests.kernel.records import a_lease
from tests.kernel.registrar import SECOND, TTL, Registrar, expect


@pytest.fixture
def registrar() -> Registrar:
    return Registrar()


@pytest.mark.parametrize("reason", list(ReleaseReason))
def test_the_holder_gives_a_lease_back_with_a_reason(registrar: Registrar, reason: ReleaseReason) -> None:
    lease = registrar.grant("ann")
    registrar.advance(1)
    registrar.wall_ns += 77

    ended = expect(Ended, registrar.release(lease, reason=reason, request_id="back")[0])

    assert not ended.already
    assert ended.lease == registrar.lease(lease.lease_id)
    assert (ended.lease.state, ended.lease.release_reason) == (LeaseState.RELEASED, reason)
    assert (ended.lease.terminated_at_ns, ended.lease.ended_by) == (registrar.wall_ns, "ann")
    event = registrar.ledger[-1]
    assert isinstance(event, LeaseReleased)
    assert (event.actor, event.reason, event.token, event.resource) == ("ann", reason, lease.token, "door")
    assert event.request == "back"


def test_a_released_resource_is_free_at_once(registrar: Registrar) -> None:
    before = registrar.grant("ann")
    registrar.end(before)

    assert registrar.grant("bob").token > before.token


def test_a_second_release_answers_already_and_changes_nothing(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    first = registrar.end(lease, ReleaseReason.COMPLETED)
    history = registrar.history()

    second = registrar.end(lease, ReleaseReason.ABORTED)

    assert second == Ended(lease=first.lease, already=True)
    assert registrar.history() == history


def test_only_the_holder_releases(registrar: Registrar) -> None:
    lease = registrar.grant("ann")

    refusal = expect(Refusal, registrar.release(lease, holder="bob")[0])

    assert (refusal.code, refusal.holder, refusal.lease_id) == ("NOT_HOLDER", "ann", lease.lease_id)
    assert registrar.lease(lease.lease_id) == lease


def test_for_a_lease_that_has_ended_it_does_not_matter_who_asks(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    registrar.end(lease)

    answer = registrar.release(lease, holder="bob")[0]

    assert answer == Ended(lease=registrar.lease(lease.lease_id), already=True)


def test_somebody_else_cannot_end_even_a_lease_whose_time_is_over(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    registrar.advance(10)

    assert expect(Refusal, registrar.release(lease, holder="bob")[0]).code == "NOT_HOLDER"


def test_a_lease_that_does_not_exist_is_not_found(registrar: Registrar) -> None:
    nowhere = a_lease(lease_id="nowhere")

    assert expect(Refusal, registrar.release(nowhere)[0]).code == "LEASE_NOT_FOUND"
    assert expect(Refusal, registrar.revoke(nowhere)).code == "LEASE_NOT_FOUND"
    assert registrar.sweep(nowhere) == ()


def test_another_tenants_lease_can_be_neither_released_nor_revoked_nor_seen(registrar: Registrar) -> None:
    lease = registrar.grant("ann", tenant="acme")

    refusals = [
        expect(Refusal, registrar.release(lease, tenant="umbrella")[0]),
        expect(Refusal, registrar.revoke(lease, tenant="umbrella")),
    ]
    registrar.end(lease)
    refusals += [
        expect(Refusal, registrar.release(lease, tenant="umbrella")[0]),
        expect(Refusal, registrar.revoke(lease, tenant="umbrella")),
    ]

    assert refusals == [Refusal(code=RefusalCode.LEASE_NOT_FOUND, lease_id=lease.lease_id)] * 4


def test_a_release_that_comes_too_late_is_recorded_as_the_expiry_it_was(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    registrar.advance(10)

    ended = registrar.end(lease)

    assert ended.already
    assert (ended.lease.state, ended.lease.release_reason) == (LeaseState.EXPIRED, None)
    assert registrar.history()[-1] == "lease.expired"


def test_a_revocation_that_comes_too_late_is_recorded_as_the_expiry_it_was(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    registrar.advance(10)

    ended = expect(Ended, registrar.revoke(lease))

    assert (ended.already, ended.lease.state, ended.lease.end_reason) == (True, LeaseState.EXPIRED, None)
    assert registrar.history()[-1] == "lease.expired"


@pytest.mark.parametrize("expires", [TTL - 1, TTL])
def test_the_expiry_tick_itself_is_too_late(registrar: Registrar, expires: int) -> None:
    lease = registrar.grant("ann")
    registrar.clock += expires

    assert registrar.end(lease).already == (expires == TTL)


def test_a_release_after_the_reboot_is_recorded_as_the_end_it_was(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    registrar.reboot()

    ended = registrar.end(lease)

    assert (ended.already, ended.lease.end_reason) == (True, "reboot")
    assert registrar.history()[-1] == "lease.revoked"


def test_a_remote_holder_releases_across_a_reboot(registrar: Registrar) -> None:
    lease = registrar.grant("ann", bound_to_boot=False)
    registrar.reboot()

    ended = registrar.end(lease)

    assert (ended.already, ended.lease.state) == (False, LeaseState.RELEASED)
    assert registrar.history()[-2:] == ["lease.rearmed", "lease.released"]


def test_each_lease_of_a_batch_is_answered_in_the_order_asked(registrar: Registrar) -> None:
    good, over, foreign = (
        registrar.grant("ann", "a"),
        registrar.grant("ann", "b"),
        registrar.grant("bob", "c"),
    )
    late, missing = registrar.grant("ann", "d", ttl_ns=SECOND), a_lease(lease_id="nowhere")
    registrar.end(over)
    registrar.advance(2)

    outcomes = registrar.release(foreign, good, missing, over, late, good, holder="ann")

    assert [
        outcome.code if isinstance(outcome, Refusal) else f"{outcome.lease.state} {outcome.already}"
        for outcome in outcomes
    ] == [
        "NOT_HOLDER",
        "released False",
        "LEASE_NOT_FOUND",
        "released True",
        "expired True",
        "released False",
    ]
    assert registrar.history()[-2:] == ["lease.released", "lease.expired"]


def test_an_operator_revokes_and_history_says_who_and_why(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    registrar.wall_ns += 77

    ended = expect(Ended, registrar.revoke(lease, operator="olga", reason="key compromise"))

    assert not ended.already
    assert ended.lease == registrar.lease(lease.lease_id)
    assert (ended.lease.state, ended.lease.ended_by) == (LeaseState.REVOKED, "olga")
    assert (ended.lease.end_reason, ended.lease.terminated_at_ns) == ("key compromise", registrar.wall_ns)
    event = registrar.ledger[-1]
    assert isinstance(event, LeaseRevoked)
    assert (event.actor, event.holder, event.reason) == ("olga", "ann", "key compromise")
    assert event.request is not None
    registrar.grant("bob")


def test_a_second_revocation_answers_already_and_keeps_the_first_reason(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    registrar.revoke(lease, reason="fire")

    ended = expect(Ended, registrar.revoke(lease, operator="otto", reason="flood"))

    assert (ended.already, ended.lease.end_reason, ended.lease.ended_by) == (True, "fire", "olga")
    assert registrar.history().count("lease.revoked") == 1


def test_a_sweep_records_what_time_has_ended_and_leaves_the_rest_alone(registrar: Registrar) -> None:
    short, long = registrar.grant("ann", "a", ttl_ns=SECOND), registrar.grant("ann", "b")
    over, foreign = registrar.grant("ann", "c"), registrar.grant("bob", "d", tenant="acme", ttl_ns=SECOND)
    registrar.end(over)
    registrar.advance(1)

    swept = registrar.sweep(short, long, over, foreign, short, a_lease(lease_id="nowhere"))

    assert [lease.lease_id for lease in swept] == [short.lease_id, foreign.lease_id]
    assert {lease.state for lease in swept} == {LeaseState.EXPIRED}
    assert registrar.lease(long.lease_id) == long
    assert registrar.history()[-2:] == ["lease.expired", "lease.expired"]
    assert registrar.sweep(short, foreign) == ()


def test_a_sweep_after_a_reboot_ends_local_leases_and_rearms_remote_ones(registrar: Registrar) -> None:
    local, remote = registrar.grant("ann", "a"), registrar.grant("bob", "b", bound_to_boot=False)
    registrar.reboot()

    swept = registrar.sweep(local, remote)

    assert [lease.lease_id for lease in swept] == [local.lease_id]
    assert registrar.history()[-2:] == ["lease.revoked", "lease.rearmed"]
    assert registrar.lease(remote.lease_id).state is LeaseState.ACTIVE


@pytest.mark.parametrize("how", [{"release": True}, {"revoke": True}, {"expire": True}, {"reboot": True}])
def test_every_end_has_an_event_that_says_who_ended_it_and_when(
    registrar: Registrar, how: dict[str, Any]
) -> None:
    lease = registrar.grant("ann")
    if "release" in how:
        registrar.end(lease)
    elif "revoke" in how:
        registrar.revoke(lease)
    elif "expire" in how:
        registrar.advance(10)
        registrar.sweep(lease)
    else:
        registrar.reboot()
        registrar.sweep(lease)

    ended = registrar.lease(lease.lease_id)
    assert ended.is_terminal
    assert ended.ended_by == registrar.ledger[-1].actor
    assert registrar.ledger[-1].keys == (lease.lease_id,)
    assert ended.terminated_at_ns is not None

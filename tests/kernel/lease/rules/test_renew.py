from typing import Any

import pytest

from leasehold.kernel.lease.answers import Renewal, Renewed
from leasehold.kernel.lease.commands import Renew
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Tick
from tests.kernel.records import a_lease
from tests.kernel.registrar import SECOND, TTL, Registrar, expect


@pytest.fixture
def registrar() -> Registrar:
    return Registrar()


def test_a_renewal_gives_the_leases_own_time_again_from_now(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    registrar.advance(4)
    registrar.wall_ns += 77

    renewal = registrar.extend(lease)

    assert renewal.expires_in_ns == TTL
    assert renewal.lease == registrar.lease(lease.lease_id)
    assert renewal.lease.expires_tick == Tick(value=registrar.clock + TTL)
    assert renewal.lease.expires_at_ns == registrar.wall_ns + TTL
    assert (renewal.lease.renewal_count, renewal.lease.last_renewed_at_ns) == (1, registrar.wall_ns)
    assert renewal.lease.token == lease.token


def test_a_renewal_can_ask_for_another_time_to_live_which_the_lease_keeps(registrar: Registrar) -> None:
    lease = registrar.grant("ann")

    assert registrar.extend(lease, ttl_ns=3 * TTL).expires_in_ns == 3 * TTL
    registrar.advance(15)
    assert registrar.extend(lease).expires_in_ns == 3 * TTL


def test_a_renewal_never_shortens(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    registrar.advance(4)

    refusal = expect(Refusal, registrar.renew(lease, ttl_ns=6 * SECOND - 1)[0])

    assert (refusal.code, refusal.expires_in_ns) == ("RENEWAL_DOES_NOT_EXTEND", 6 * SECOND)
    assert registrar.lease(lease.lease_id) == lease


def test_a_clock_that_stands_still_is_no_reason_to_lose_a_lease(registrar: Registrar) -> None:
    lease = registrar.grant("ann")

    renewal = registrar.extend(lease)

    assert renewal == Renewal(lease=lease, expires_in_ns=TTL)
    assert "lease.renewed" not in registrar.history()


def test_a_lease_is_renewed_until_one_tick_before_its_expiry(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    registrar.clock += TTL - 1
    registrar.extend(lease)
    registrar.clock += TTL

    assert registrar.refuse_renewal(lease) == "LEASE_EXPIRED"
    assert registrar.lease(lease.lease_id).state is LeaseState.ACTIVE, "who is refused has changed nothing"


def test_a_refusal_for_expiry_says_that_nothing_is_left(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    registrar.advance(99)

    refusal = expect(Refusal, registrar.renew(lease)[0])

    assert (refusal.state, refusal.expires_in_ns) == (LeaseState.EXPIRED, 0)


@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_lease_is_renewed_as_often_as_it_may_be_and_then_stands_until_it_expires(
    registrar: Registrar, times: int
) -> None:
    lease = registrar.grant("ann", max_renewals=times)
    for _ in range(times):
        registrar.advance(5)
        registrar.extend(lease)
    registrar.advance(5)

    refusal = expect(Refusal, registrar.renew(lease)[0])

    assert (refusal.code, refusal.expires_in_ns) == ("RENEWALS_EXHAUSTED", 5 * SECOND)
    assert not refusal.code.means_loss


def test_without_a_limit_a_lease_is_renewed_for_ever(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    for count in range(1, 101):
        registrar.advance(9)
        assert registrar.extend(lease).lease.renewal_count == count


def test_a_lease_that_does_not_exist_is_not_found(registrar: Registrar) -> None:
    refusal = expect(Refusal, registrar.renew(a_lease(lease_id="nowhere"))[0])

    assert refusal == Refusal(code=RefusalCode.LEASE_NOT_FOUND, lease_id="nowhere")


def test_another_tenants_lease_does_not_exist(registrar: Registrar) -> None:
    lease = registrar.grant("ann", tenant="acme")

    refusal = expect(Refusal, registrar.renew(lease, tenant="umbrella")[0])

    assert refusal == Refusal(code=RefusalCode.LEASE_NOT_FOUND, lease_id=lease.lease_id)
    registrar.advance(1)
    registrar.extend(lease)


def test_only_the_holder_renews(registrar: Registrar) -> None:
    lease = registrar.grant("ann")

    refusal = expect(Refusal, registrar.renew(lease, holder="bob")[0])

    assert (refusal.code, refusal.holder) == ("NOT_HOLDER", "ann")


@pytest.mark.parametrize("how", ["released", "revoked", "expired"])
def test_a_renewal_never_resurrects(registrar: Registrar, how: str) -> None:
    lease = registrar.grant("ann", ttl_ns=TTL)
    match how:
        case "released":
            registrar.end(lease)
        case "revoked":
            registrar.revoke(lease)
        case _:
            registrar.advance(10)
            registrar.sweep(lease)

    refusal = expect(Refusal, registrar.renew(lease)[0])

    assert (refusal.code, refusal.state) == ("LEASE_TERMINAL", how)
    assert refusal.code.means_loss


def test_a_lease_that_ended_with_its_boot_is_not_renewed(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    registrar.reboot()

    refusal = expect(Refusal, registrar.renew(lease)[0])

    assert (refusal.code, refusal.state) == ("LEASE_TERMINAL", LeaseState.REVOKED)


@pytest.mark.parametrize(
    "expires",
    [None, Tick(value=1, rate=9), Tick(value=1, era=7)],
    ids=["no ticks", "other rate", "other era"],
)
def test_a_lease_of_unknown_time_is_not_renewed_and_not_lost_either(
    registrar: Registrar, expires: Tick | None
) -> None:
    lease = registrar.put(a_lease(token=1, issued_tick=None, expires_tick=expires))

    refusal = expect(Refusal, registrar.renew(lease)[0])

    assert (refusal.code, refusal.expires_in_ns) == ("UNKNOWN_TIME", None)
    assert not refusal.code.means_loss


@pytest.mark.parametrize(
    ("fields", "changes", "code"),
    [
        ({}, {"state": LeaseState.RELEASED}, "LEASE_TERMINAL"),
        ({"holder": "bob"}, {"state": LeaseState.RELEASED}, "LEASE_TERMINAL"),
        ({"holder": "bob"}, {"expires_tick": Tick(value=1)}, "NOT_HOLDER"),
        ({"holder": "bob"}, {"expires_tick": None}, "NOT_HOLDER"),
        ({}, {"expires_tick": Tick(value=1), "max_renewals": 0}, "LEASE_EXPIRED"),
        ({}, {"expires_tick": None, "max_renewals": 0}, "UNKNOWN_TIME"),
        ({"ttl_ns": 10**6}, {"expires_tick": Tick(value=10**15), "max_renewals": 0}, "RENEWALS_EXHAUSTED"),
        ({"ttl_ns": 10**6}, {"expires_tick": Tick(value=10**15)}, "RENEWAL_DOES_NOT_EXTEND"),
        ({"tenant": "acme", "holder": "bob"}, {"state": LeaseState.RELEASED}, "LEASE_NOT_FOUND"),
    ],
)
def test_the_order_of_checks_is_found_ended_holder_time_count_extends(
    registrar: Registrar, fields: dict[str, Any], changes: dict[str, Any], code: str
) -> None:
    # Each lease here gives two reasons to refuse, and the earlier check is the answer.
    registrar.now()
    registrar.state.of("lease")["lease-1"] = a_lease(token=1, **changes)
    command = Renew(**({"request_id": "r", "lease_ids": ("lease-1",), "holder": "ann"} | fields))

    decided = expect(Decision, registrar.decide(command))

    assert decided.events == []
    assert expect(Refusal, expect(Renewed, decided.answer).outcomes[0]).code == code


def test_a_lease_that_is_rearmed_with_all_its_time_is_no_renewal(registrar: Registrar) -> None:
    lease = registrar.grant("ann", bound_to_boot=False)
    registrar.reboot()

    renewal = registrar.extend(lease)

    assert renewal.expires_in_ns == TTL
    assert registrar.history()[-1] == "lease.rearmed"

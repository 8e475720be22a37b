"""What time alone does to a lease. The registrar of these tests stands at tick 1000 s of boot 1."""

import pytest

from leasehold.kernel.lease.age import age
from leasehold.kernel.lease.events import LeaseExpired, LeaseRevoked
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.ledger.authority import Authority
from leasehold.kernel.ledger.tick import Tick
from tests.kernel.records import a_lease, an_authority, an_era, at
from tests.kernel.registrar import SECOND, TTL, Registrar

REBOOTED = an_authority(era=2, era_first_tick=3, tick=5, boot_id="boot-2")
CLOCK_WENT_BACK = an_authority(era=2, era_first_tick=3, tick=5, boot_id="boot-1")
HOME = {1: an_era()}


def test_a_lease_with_time_left_does_not_age() -> None:
    assert age(a_lease(), at(99), an_authority(), {}) == ([], a_lease())


@pytest.mark.parametrize("tick", [100, 101, 10_000])
def test_a_lease_expires_at_its_tick_or_whenever_it_is_met_later(tick: int) -> None:
    events, lease = age(a_lease(), at(tick), an_authority(), {})

    assert [type(event) for event in events] == [LeaseExpired]
    assert events[0].tick == Tick(value=tick)
    assert (events[0].actor, events[0].at_ns, events[0].request) == ("registrar", 9_000, None)
    assert (lease.state, lease.terminated_at_ns, lease.ended_by) == (LeaseState.EXPIRED, 5_050, "registrar")


@pytest.mark.parametrize(
    "lease",
    [
        pytest.param(a_lease(expires_tick=None), id="missing ticks"),
        pytest.param(a_lease(expires_tick=Tick(value=1, rate=9)), id="another rate"),
        pytest.param(a_lease(expires_tick=Tick(value=1, era=2)), id="a later era"),
    ],
)
@pytest.mark.parametrize("tick", [1, 10_000])
def test_a_lease_of_unknown_time_is_left_as_it_is(lease: Lease, tick: int) -> None:
    assert age(lease, at(tick), an_authority(), {}) == ([], lease)


@pytest.mark.parametrize("bound_to_boot", [True, False])
@pytest.mark.parametrize("authority", [REBOOTED, CLOCK_WENT_BACK])
def test_a_lease_of_a_forgotten_era_is_left_as_it_is(bound_to_boot: bool, authority: Authority) -> None:
    lease = a_lease(bound_to_boot=bound_to_boot)

    assert age(lease, at(10_000, era=2), authority, {}) == ([], lease)


def test_a_lease_of_a_local_process_ends_with_its_boot() -> None:
    events, lease = age(a_lease(), at(5, era=2), REBOOTED, HOME)

    assert [type(event) for event in events] == [LeaseRevoked]
    assert (lease.state, lease.end_reason, lease.ended_by) == (LeaseState.REVOKED, "reboot", "registrar")


def test_a_lease_of_a_remote_holder_gets_what_it_had_left_on_the_new_clock() -> None:
    events, lease = age(a_lease(bound_to_boot=False), at(5, era=2), REBOOTED, HOME)

    assert [event.type for event in events] == ["lease.rearmed"]
    assert lease.state is LeaseState.ACTIVE
    assert lease.expires_tick == Tick(value=3 + 50, era=2)
    assert lease.expires_at_ns == 9_000 + 48


def test_what_a_remote_holder_had_left_runs_out_like_any_other_time() -> None:
    events, lease = age(a_lease(bound_to_boot=False), at(53, era=2), REBOOTED, HOME)

    assert [event.type for event in events] == ["lease.rearmed", "lease.expired"]
    assert lease.state is LeaseState.EXPIRED


@pytest.mark.parametrize("bound_to_boot", [True, False])
def test_a_clock_that_went_back_without_a_reboot_ends_no_lease(bound_to_boot: bool) -> None:
    events, lease = age(a_lease(bound_to_boot=bound_to_boot), at(5, era=2), CLOCK_WENT_BACK, HOME)

    assert [event.type for event in events] == ["lease.rearmed"]
    assert lease.expires_tick == Tick(value=3 + 50, era=2)


@pytest.mark.parametrize("bound_to_boot", [True, False])
@pytest.mark.parametrize("expires", [50, 20])
def test_a_lease_that_had_run_out_before_the_reboot_has_expired(bound_to_boot: bool, expires: int) -> None:
    lease = a_lease(bound_to_boot=bound_to_boot, issued_tick=Tick(value=10), expires_tick=Tick(value=expires))

    events, lease = age(lease, at(5, era=2), REBOOTED, HOME)

    assert [event.type for event in events] == ["lease.rearmed", "lease.expired"]
    assert lease.state is LeaseState.EXPIRED


def test_nobody_is_granted_a_resource_whose_holder_has_unknown_time() -> None:
    registrar = Registrar()
    foreign = registrar.put(a_lease(lease_id="foreign", token=1, expires_tick=None))
    registrar.advance(10**6)

    refusal = registrar.deny("bob")

    assert (refusal.code, refusal.lease_id, refusal.expires_in_ns) == ("HELD", foreign.lease_id, None)
    assert registrar.refuse_renewal(foreign) == "UNKNOWN_TIME"
    assert registrar.sweep(foreign) == ()


def test_a_lease_of_unknown_time_can_be_given_back_revoked_and_adopted() -> None:
    registrar = Registrar()
    given_back = registrar.put(a_lease(lease_id="a", token=1, resource="a", expires_tick=None))
    revoked = registrar.put(a_lease(lease_id="b", token=2, resource="b", expires_tick=None))
    adopted = registrar.put(a_lease(lease_id="c", token=3, resource="c", expires_tick=None))

    assert registrar.end(given_back).lease.state is LeaseState.RELEASED
    registrar.revoke(revoked)
    assert registrar.lease("b").state is LeaseState.REVOKED
    assert registrar.grant("ann", "c", adopt=True).adopted_from == adopted.lease_id


def test_a_remote_holder_renews_across_reboots_and_keeps_others_out() -> None:
    registrar = Registrar()
    lease = registrar.grant("ann", bound_to_boot=False, ttl_ns=TTL)
    registrar.advance(4)
    registrar.grant("somebody", "else")  # The last moment that the registrar saw of this era.
    registrar.reboot(clock=2 * SECOND)
    registrar.now()
    registrar.advance(3)
    registrar.reboot(clock=7 * SECOND)
    registrar.now()
    registrar.advance(1)

    refusal = registrar.deny("bob")

    assert (refusal.code, refusal.expires_in_ns) == ("HELD", 5 * SECOND)
    assert registrar.extend(lease).expires_in_ns == TTL
    assert registrar.history()[-2:] == ["lease.rearmed", "lease.renewed"]
    assert registrar.lease(lease.lease_id).token == lease.token


def test_after_a_reboot_the_next_claim_records_the_end_of_the_lease_it_replaces() -> None:
    registrar = Registrar()
    before = registrar.grant("ann")
    registrar.reboot()

    after = registrar.grant("bob")

    assert registrar.lease(before.lease_id).end_reason == "reboot"
    assert registrar.history()[-3:] == ["store.epoch_raised", "lease.revoked", "lease.issued"]
    assert after.token > before.token

from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.ledger.tick import Tick
from leasehold.reducer import (
    InvalidExpiration,
    InvalidInput,
    Lease,
    LeaseAlreadyExists,
    LeaseExpired,
    LeaseState,
    RenewalDoesNotExtend,
)
from tests.reducer.histories import SECOND, History, tick


def test_a_grant_makes_a_lease_with_everything_it_said(history: History) -> None:
    history.issue_with_ticks()
    lease = history.lease()
    assert (lease.lease_id, lease.work_id, lease.actor_id) == ("lease-1", "work-1", "ann")
    assert (lease.issued_at, lease.expires_at) == (1 * SECOND, 2 * SECOND)
    assert (lease.issued_at_tick, lease.expires_at_tick) == (tick(100), tick(200))
    assert (lease.state, lease.registrar_signature) == (LeaseState.ACTIVE, b"signed")
    assert (lease.renewal_count, lease.last_renewed_at) == (0, None)
    assert (lease.release_reason, lease.terminated_at) == (None, None)


def test_inv_0301_a_lease_id_is_used_once_even_after_its_lease_has_ended(history: History) -> None:
    history.issue("lease-1", "work-1")
    with pytest.raises(LeaseAlreadyExists):
        history.issue("lease-1", "work-2")
    history.release("lease-1")
    with pytest.raises(LeaseAlreadyExists):
        history.issue("lease-1", "work-1")
    assert len(history.state) == 1


@pytest.mark.parametrize("expires_at", [0, SECOND - 1, SECOND])
def test_inv_0302_a_lease_of_no_or_less_than_no_time_is_refused(history: History, expires_at: int) -> None:
    with pytest.raises(InvalidInput) as refused:
        history.issue(issued_at=SECOND, expires_at=expires_at)
    assert refused.value.field == "expires_at"
    assert len(history.state) == 0


def test_inv_0302_one_nanosecond_is_a_lease(history: History) -> None:
    history.issue(issued_at=SECOND, expires_at=SECOND + 1)
    assert history.lease().expires_at == SECOND + 1


@pytest.mark.parametrize("expires_value", [99, 100])
def test_inv_0302_ticks_have_to_rise_too(history: History, expires_value: int) -> None:
    with pytest.raises(InvalidInput) as refused:
        history.issue_with_ticks(expires_at_tick=tick(expires_value))
    assert refused.value.field == "expires_at_tick"


def test_inv_0303_the_count_of_renewals_stops_at_32_bits(history: History) -> None:
    history.issue()
    lease = history.lease()
    worn = replace(lease, record=replace(lease.record, renewal_count=2**32 - 1))
    history.reducer.state_mut.put(worn)
    assert history.lease().renewal_count == 2**32 - 1
    history.renew()
    assert history.lease().renewal_count == 2**32 - 1


def test_inv_0304_a_late_notice_does_not_move_the_end(history: History) -> None:
    history.issue()
    history.expire(expired_at=2**63)
    assert history.lease().terminated_at == history.lease().expires_at == 2 * SECOND


def test_inv_0305_turning_the_wall_clock_does_not_expire_a_lease_with_ticks(history: History) -> None:
    history.issue_with_ticks()
    lease = history.lease()
    assert not lease.is_expired_at_tick(tick(199))
    assert lease.is_expired_at_tick(tick(200))
    with pytest.raises(InvalidInput) as refused:
        history.expire(expired_at=1_000 * SECOND)
    assert refused.value.field == "expired_at_tick"
    with pytest.raises(InvalidExpiration) as early:
        history.expire(expired_at=1_000 * SECOND, expired_at_tick=tick(199))
    assert (early.value.provided, early.value.lease_expires_at) == (199, 200)
    history.expire(expired_at=1_000 * SECOND, expired_at_tick=tick(200))
    assert history.lease().state is LeaseState.EXPIRED


def test_inv_0305_a_renewal_in_time_by_ticks_counts_though_the_wall_clock_jumped(history: History) -> None:
    history.issue_with_ticks()
    history.renew(at=1_000 * SECOND, renewed_at_tick=tick(199), new_expires_at_tick=tick(300))
    assert history.lease().expires_at_tick == tick(300)
    assert history.lease().expires_at == 3 * SECOND


def test_inv_0305_wall_time_alone_does_not_lengthen_what_ticks_say(history: History) -> None:
    history.issue_with_ticks()
    history.renew(new_expires_at=1_000 * SECOND)
    assert history.lease().expires_at == 1_000 * SECOND
    assert not history.lease().is_expired_at_tick(tick(199))
    assert history.lease().is_expired_at_tick(tick(200))


@pytest.mark.parametrize(
    ("now", "expired"), [(0, False), (199, False), (200, True), (201, True), (2**64, True)]
)
def test_ctr_0301_a_lease_is_expired_from_its_expiry_tick_on(
    history: History, now: int, expired: bool
) -> None:
    history.issue_with_ticks()
    assert history.lease().is_expired_at_tick(tick(now)) is expired


def test_ctr_0301_without_ticks_a_lease_is_expired_for_its_holder_and_still_nobody_else_s(
    history: History,
) -> None:
    history.issue()
    for now in (0, 1, 2**63):
        assert history.lease().is_expired_at_tick(tick(now))
    assert history.state.get_expired_but_active_at_tick(tick(0)) == [history.lease()]
    assert history.state.has_active_lease("work-1")


@pytest.mark.parametrize("stranger", [tick(150, rate=999), Tick(value=150, era=2, rate=1_000)])
def test_ctr_0301_a_tick_of_another_clock_says_nothing_so_the_lease_counts_as_expired(
    history: History, stranger: Tick
) -> None:
    history.issue_with_ticks()
    assert history.lease().is_expired_at_tick(stranger)
    assert history.lease().ticks_remaining(stranger) == 0


def test_ctr_0301_an_ended_lease_does_not_expire_any_more(history: History) -> None:
    history.issue_with_ticks()
    history.release()
    assert not history.lease().is_expired_at_tick(tick(500))


@pytest.mark.parametrize(("now", "left"), [(0, 200), (150, 50), (199, 1), (200, 0), (900, 0)])
def test_ctr_0302_what_is_left_never_falls_below_nothing(history: History, now: int, left: int) -> None:
    history.issue_with_ticks()
    assert history.lease().ticks_remaining(tick(now)) == left


def test_ctr_0302_without_ticks_and_after_the_end_nothing_is_left(history: History) -> None:
    history.issue("lease-1", "work-1")
    history.issue_with_ticks("lease-2", "work-2")
    history.release("lease-2")
    assert history.lease("lease-1").ticks_remaining(tick(0)) == 0
    assert history.lease("lease-2").ticks_remaining(tick(0)) == 0


def test_ctr_0303_a_summary_has_no_signature(history: History) -> None:
    history.issue(registrar_signature=b"a secret-looking signature")
    summary = history.lease().summary()
    assert (summary.lease_id, summary.work_id, summary.actor_id) == ("lease-1", "work-1", "ann")
    assert (summary.state, summary.renewal_count) == (LeaseState.ACTIVE, 0)
    assert "secret" not in repr(summary)


@pytest.mark.parametrize(("now", "expired"), [(2 * SECOND - 1, False), (2 * SECOND, True)])
def test_ctr_0304_the_wall_time_question_still_answers_and_warns(
    history: History, now: int, expired: bool
) -> None:
    history.issue()
    with pytest.warns(DeprecationWarning, match="is_expired_at_tick"):
        assert history.lease().is_expired_at(now) is expired


def test_ctr_0305_the_wall_time_left_is_still_told_and_warns(history: History) -> None:
    history.issue()
    for now, left in ((0, 2 * SECOND), (2 * SECOND - 1, 1), (5 * SECOND, 0)):
        with pytest.warns(DeprecationWarning, match="ticks_remaining") as warned:
            assert history.lease().time_remaining(now) == left
        assert warned[0].filename == __file__
    history.release()
    with pytest.warns(DeprecationWarning, match="ticks_remaining"):
        assert history.lease().time_remaining(0) == 0


def test_a_renewal_moves_the_expiry_and_keeps_the_signature_of_the_grant(history: History) -> None:
    history.issue_with_ticks()
    history.renew(
        signature=b"other", at=1_500_000_000, renewed_at_tick=tick(150), new_expires_at_tick=tick(300)
    )
    lease = history.lease()
    assert (lease.expires_at, lease.expires_at_tick) == (3 * SECOND, tick(300))
    assert (lease.renewal_count, lease.last_renewed_at) == (1, 1_500_000_000)
    assert (lease.issued_at, lease.issued_at_tick) == (1 * SECOND, tick(100))
    assert lease.registrar_signature == b"signed"


@pytest.mark.parametrize("late", [200, 201])
def test_a_renewal_after_expiry_by_ticks_is_refused(history: History, late: int) -> None:
    history.issue_with_ticks()
    with pytest.raises(LeaseExpired) as refused:
        history.renew(renewed_at_tick=tick(late), new_expires_at_tick=tick(300))
    assert (refused.value.lease_id, refused.value.expired_at) == ("lease-1", 2 * SECOND)
    assert history.lease().renewal_count == 0


def test_without_ticks_a_renewal_recorded_after_expiry_is_refused(history: History) -> None:
    history.issue()
    with pytest.raises(LeaseExpired):
        history.renew(at=2 * SECOND)
    history.renew(at=2 * SECOND - 1)
    assert history.lease().last_renewed_at == 2 * SECOND - 1


def test_a_record_without_a_time_counts_as_of_what_happened_to_the_lease_last(history: History) -> None:
    history.issue()
    history.renew()
    assert history.lease().last_renewed_at == history.lease().issued_at
    history.renew(new_expires_at=4 * SECOND, at=2_500_000_000)
    history.release()
    assert history.lease().terminated_at == 2_500_000_000


def test_a_renewal_that_shortens_the_ticks_is_refused(history: History) -> None:
    history.issue_with_ticks()
    with pytest.raises(RenewalDoesNotExtend) as refused:
        history.renew(new_expires_at_tick=tick(200))
    assert (refused.value.current_expires_at, refused.value.new_expires_at) == (200, 200)


@pytest.mark.parametrize("field", ["new_expires_at_tick", "renewed_at_tick"])
def test_a_renewal_on_another_clock_is_refused(history: History, field: str) -> None:
    history.issue_with_ticks("lease-1", "work-1")
    history.issue("lease-2", "work-2")
    for lease_id, stranger in (("lease-1", tick(300, rate=5)), ("lease-2", tick(300))):
        ticks: dict[str, Any] = {field: stranger}
        with pytest.raises(InvalidInput) as refused:
            history.renew(lease_id, **ticks)
        assert refused.value.field == field


@pytest.mark.parametrize(
    "ticks",
    [
        {"issued_at_tick": None},
        {"expires_at_tick": None},
        {"expires_at_tick": tick(200, rate=5)},
    ],
)
def test_a_grant_names_both_ticks_of_one_clock_or_none(history: History, ticks: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        history.issue_with_ticks(**ticks)
    assert refused.value.field == "expires_at_tick"


def test_a_lease_cannot_be_changed_by_whoever_looks_at_it(history: History) -> None:
    history.issue()
    with pytest.raises(AttributeError):
        history.lease().state = LeaseState.RELEASED  # type: ignore[misc]
    assert isinstance(history.lease(), Lease)

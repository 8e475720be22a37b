"""The contract's security properties and attacks: each test mounts the attack."""

from typing import Any

import pytest

from leasehold.reducer import (
    InvalidExpiration,
    InvalidInput,
    LeaseAlreadyTerminal,
    LeaseReducer,
    LeaseState,
    MissingSignature,
    Unauthorized,
    WorkAlreadyLeased,
)
from tests.reducer.histories import SECOND, History, tick


def test_early_expiration_attack_somebody_else_s_lease_cannot_be_expired_to_take_its_work(
    history: History,
) -> None:
    history.issue("lease-1", actor_id="ann")
    for claimed in (0, SECOND, 2 * SECOND - 1):
        with pytest.raises(InvalidExpiration) as refused:
            history.expire("lease-1", claimed)
        assert (refused.value.provided, refused.value.lease_expires_at) == (claimed, 2 * SECOND)
    with pytest.raises(WorkAlreadyLeased):
        history.issue("lease-2", actor_id="mallory")


def test_early_expiration_attack_an_old_notice_does_not_hit_a_lease_that_was_renewed(
    history: History,
) -> None:
    history.issue()
    history.renew(new_expires_at=3 * SECOND)
    with pytest.raises(InvalidExpiration):
        history.expire(expired_at=2 * SECOND)
    assert history.lease().state is LeaseState.ACTIVE


def test_early_expiration_attack_turning_the_wall_clock_does_not_help(history: History) -> None:
    history.issue_with_ticks()
    claims: list[dict[str, Any]] = [
        {},
        {"expired_at_tick": tick(199)},
        {"expired_at_tick": tick(10**6, rate=7)},
    ]
    for ticks in claims:
        with pytest.raises((InvalidExpiration, InvalidInput)):
            history.expire(expired_at=2**63, **ticks)
    assert history.state.has_active_lease("work-1")


def test_unauthorized_release_attack_a_stranger_cannot_free_work_to_claim_it(history: History) -> None:
    history.issue("lease-1", actor_id="ann")
    with pytest.raises(Unauthorized):
        history.release("lease-1", actor="mallory")
    with pytest.raises(WorkAlreadyLeased):
        history.issue("lease-2", actor_id="mallory")
    assert history.lease().actor_id == "ann"


def test_pruning_evasion_attack_a_far_future_expiry_does_not_keep_an_ended_lease_alive(
    history: History,
) -> None:
    history.issue()
    history.expire(expired_at=2**64 - 1)
    assert history.lease().terminated_at == 2 * SECOND
    assert history.reducer.state_mut.prune_terminal_leases_before(2 * SECOND + 1) == 1


def test_registrar_signing_unsigned_grants_and_renewals_do_not_count(history: History) -> None:
    with pytest.raises(MissingSignature):
        history.issue(registrar_signature=b"")
    history.issue()
    with pytest.raises(MissingSignature):
        history.renew(signature=b"")
    assert history.lease().expires_at == 2 * SECOND


def test_duplicate_rejection_a_second_lease_on_the_same_work_fails(history: History) -> None:
    history.issue("lease-1")
    for number in range(2, 20):
        with pytest.raises(WorkAlreadyLeased):
            history.issue(f"lease-{number}", actor_id=f"actor-{number}")
    assert history.state.active_count() == 1


def test_expiration_enforcement_nothing_that_lapsed_is_overlooked(history: History) -> None:
    for number in range(10):
        history.issue_with_ticks(f"lease-{number}", f"work-{number}", expires_at_tick=tick(110 + 10 * number))
    found = history.state.get_expired_but_active_at_tick(tick(150))
    assert [lease.lease_id for lease in found] == [f"lease-{number}" for number in range(5)]


def test_fail_closed_unknown_time_helps_neither_the_holder_nor_a_newcomer(history: History) -> None:
    history.issue("lease-1", actor_id="ann")
    assert history.lease().is_expired_at_tick(tick(0)), "the holder may not rely on it"
    assert history.lease().ticks_remaining(tick(0)) == 0
    with pytest.raises(WorkAlreadyLeased):
        history.issue("lease-2", actor_id="bob")
    with pytest.raises(InvalidInput):
        history.expire("lease-1", 2 * SECOND, expired_at_tick=tick(10**6))
    assert history.state.get_active_lease_for_work("work-1").actor_id == "ann"


def test_input_validation_long_ids_do_not_reach_the_state(history: History) -> None:
    for field in ("lease_id", "work_id", "actor_id"):
        with pytest.raises(InvalidInput):
            history.issue(**{field: "x" * 129})
    with pytest.raises(InvalidInput):
        history.issue(registrar_signature=bytes(513))
    assert history.reducer.state == LeaseReducer().state


def test_replay_protection_is_the_ledger_s_business_once_a_lease_is_pruned(history: History) -> None:
    """The contract says so; this keeps the documentation honest about it."""
    history.issue()
    history.release()
    with pytest.raises(LeaseAlreadyTerminal):
        history.release()
    history.reducer.state_mut.prune_terminal_leases()
    history.issue()
    assert history.lease().state is LeaseState.ACTIVE

import pytest

from leasehold.reducer import LeaseReducerState, LeaseState, WorkAlreadyLeased
from tests.reducer.histories import SECOND, History, tick


def a_busy_history() -> History:
    """One active lease, one released at 5 s, one that expired at 2 s and was noticed at 9 s."""
    history = History()
    for number in (1, 2, 3):
        history.issue(f"lease-{number}", f"work-{number}", actor_id="ann" if number < 3 else "bob")
    history.release("lease-2", at=5 * SECOND)
    history.expire("lease-3", 9 * SECOND)
    return history


def check_index(state: LeaseReducerState) -> None:
    for work_id, lease_id in state.active_leases_by_work.items():
        lease = state.leases[lease_id]
        assert (lease.work_id, lease.state) == (work_id, LeaseState.ACTIVE)
    works = [lease.work_id for lease in state.active_leases()]
    assert sorted(works) == sorted(state.active_leases_by_work)


def test_inv_0401_what_is_named_as_active_exists_and_is(history: History) -> None:
    check_index(history.state)
    history.issue()
    check_index(history.state)
    assert history.state.active_leases_by_work == {"work-1": "lease-1"}
    history.renew()
    check_index(history.state)
    history.release()
    check_index(history.state)
    assert history.state.active_leases_by_work == {}
    history.reducer.state_mut.prune_terminal_leases()
    check_index(history.state)


def test_inv_0402_work_has_at_most_one_active_lease(history: History) -> None:
    history.issue("lease-1")
    with pytest.raises(WorkAlreadyLeased):
        history.issue("lease-2")
    assert history.state.active_leases_by_work == {"work-1": "lease-1"}
    history.expire("lease-1")
    history.issue("lease-2")
    assert history.state.active_leases_by_work == {"work-1": "lease-2"}


def test_ctr_0401_only_active_leases_are_found_by_their_work(history: History) -> None:
    assert history.state.get_active_lease_for_work("work-1") is None
    history.issue()
    assert history.state.get_active_lease_for_work("work-1") == history.lease()
    assert history.state.has_active_lease("work-1")
    history.release()
    assert history.state.get_active_lease_for_work("work-1") is None
    assert not history.state.has_active_lease("work-1")


def test_ctr_0402_pruning_removes_what_has_ended_and_nothing_else() -> None:
    history = a_busy_history()
    active = history.lease("lease-1")
    assert history.reducer.state_mut.prune_terminal_leases() == 2
    assert list(history.state.leases.values()) == [active]
    assert history.reducer.state_mut.prune_terminal_leases() == 0


def test_ctr_0403_pruning_by_time_looks_at_the_lease_s_own_end() -> None:
    history = a_busy_history()
    prune = history.reducer.state_mut.prune_terminal_leases_before
    assert prune(2 * SECOND) == 0, "strictly before"
    assert prune(2 * SECOND + 1) == 1
    assert history.state.get("lease-3") is None, "the notice came at 9 s, the end was at 2 s"
    assert prune(5 * SECOND) == 0
    assert prune(2**64) == 1
    assert list(history.state.leases) == ["lease-1"]


def test_every_lease_is_counted_once() -> None:
    state = a_busy_history().reducer.state
    assert len(state) == 3
    assert (state.active_count(), state.released_count(), state.expired_count()) == (1, 1, 1)
    assert (state.terminal_count(), state.revoked_count()) == (2, 0)


def test_leases_are_found_by_id_and_by_actor() -> None:
    history = a_busy_history()
    assert history.state.get("no such lease") is None
    assert [lease.lease_id for lease in history.state.leases_by_actor("ann")] == ["lease-1", "lease-2"]
    assert [lease.lease_id for lease in history.state.leases_by_actor("bob")] == ["lease-3"]
    assert history.state.leases_by_actor("eve") == []
    assert [lease.lease_id for lease in history.state.active_leases()] == ["lease-1"]


def test_expired_leases_that_nobody_has_ended_are_found_by_tick(history: History) -> None:
    history.issue_with_ticks("lease-1", "work-1")
    history.issue_with_ticks("lease-2", "work-2", expires_at_tick=tick(300))
    history.issue_with_ticks("lease-3", "work-3")
    history.release("lease-3")
    found = history.state.get_expired_but_active_at_tick
    assert found(tick(199)) == []
    assert [lease.lease_id for lease in found(tick(200))] == ["lease-1"]
    assert [lease.lease_id for lease in found(tick(300))] == ["lease-1", "lease-2"]


def test_expired_leases_that_nobody_has_ended_are_found_by_wall_time_with_a_warning(history: History) -> None:
    history.issue()
    for now, found in ((2 * SECOND - 1, []), (2 * SECOND, ["lease-1"])):
        with pytest.warns(DeprecationWarning, match="get_expired_but_active_at_tick"):
            expired = history.state.get_expired_but_active(now)
        assert [lease.lease_id for lease in expired] == found


def test_states_are_equal_when_their_leases_are(history: History) -> None:
    other = History()
    history.issue()
    assert history.state != other.state
    other.issue()
    assert history.state == other.state
    assert history.state != {"lease-1": history.lease()}

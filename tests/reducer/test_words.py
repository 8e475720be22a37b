import pytest

from leasehold.kernel.lease import model as kernel
from leasehold.reducer import (
    InvalidLeaseState,
    InvalidReleaseReason,
    LeaseAlreadyTerminal,
    LeaseState,
    ReleaseReason,
)
from tests.reducer.histories import SECOND, History


@pytest.mark.parametrize("end", ["release", "expire"])
def test_inv_0101_no_event_leads_out_of_a_terminal_state(history: History, end: str) -> None:
    history.issue()
    getattr(history, end)()
    ended = history.lease()
    for following in (history.renew, history.release, history.expire):
        with pytest.raises(LeaseAlreadyTerminal):
            following()
    assert history.lease() == ended


def test_inv_0102_released_and_expired_are_terminal_and_active_is_not() -> None:
    assert LeaseState.RELEASED.is_terminal
    assert LeaseState.EXPIRED.is_terminal
    assert not LeaseState.ACTIVE.is_terminal


@pytest.mark.parametrize("text", ["active", "Active", "ACTIVE", "aCtIvE"])
def test_ctr_0101_states_are_read_in_any_case(text: str) -> None:
    assert LeaseState.parse(text) is LeaseState.ACTIVE


@pytest.mark.parametrize("text", ["", "ACTIVE ", "gone", "is_terminal", "parse"])
def test_ctr_0101_an_unknown_state_is_refused_and_named(text: str) -> None:
    with pytest.raises(InvalidLeaseState) as refused:
        LeaseState.parse(text)
    assert refused.value.value == text


@pytest.mark.parametrize("state", LeaseState)
def test_ctr_0102_states_are_written_in_capitals_and_read_back(state: LeaseState) -> None:
    assert state.as_str() == state.name == state.as_str().upper()
    assert LeaseState.parse(state.as_str()) is state


@pytest.mark.parametrize("text", ["completed", "Completed", "COMPLETED"])
def test_ctr_0201_reasons_are_read_in_any_case(text: str) -> None:
    assert ReleaseReason.parse(text) is ReleaseReason.COMPLETED
    assert ReleaseReason.parse(text).as_str() == "COMPLETED"


def test_ctr_0201_an_unknown_reason_is_refused_and_named(history: History) -> None:
    history.issue()
    with pytest.raises(InvalidReleaseReason) as refused:
        history.release(reason="bored")
    assert refused.value.value == "bored"
    assert history.lease().state is LeaseState.ACTIVE


@pytest.mark.parametrize("reason", ReleaseReason)
def test_ctr_0202_the_reason_is_kept_and_changes_nothing_else(reason: ReleaseReason) -> None:
    told, plain = History(), History()
    for history, why in ((told, reason.as_str()), (plain, "VOLUNTARY")):
        history.issue()
        history.release(reason=why, at=1 * SECOND)
    assert told.lease().release_reason is reason
    assert told.lease().summary() == plain.lease().summary()
    assert told.lease().terminated_at == plain.lease().terminated_at
    assert not told.state.has_active_lease("work-1")


def test_the_words_are_the_kernel_s_own_in_another_spelling() -> None:
    assert [state.name for state in LeaseState] == [state.name for state in kernel.LeaseState]
    assert [reason.name for reason in ReleaseReason] == [reason.name for reason in kernel.ReleaseReason]

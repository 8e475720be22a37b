import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.model import LeaseState, Mode, ReleaseReason, UnknownWord
from leasehold.kernel.ledger.tick import Tick
from tests.kernel.records import a_lease

ENDED = [LeaseState.RELEASED, LeaseState.EXPIRED, LeaseState.REVOKED, LeaseState.FAILED]


@pytest.mark.parametrize("text", ["shared", "SHARED", "Shared", "sHaReD"])
def test_words_are_read_in_any_case(text: str) -> None:
    assert Mode.parse(text) is Mode.SHARED


@pytest.mark.parametrize("word", [*Mode, *LeaseState, *ReleaseReason])
def test_every_word_is_written_in_lower_case_and_read_back(
    word: Mode | LeaseState | ReleaseReason,
) -> None:
    assert str(word) == word.value == word.value.lower()
    assert type(word).parse(word) is word
    assert type(word).parse(word.value.upper()) is word


@pytest.mark.parametrize("text", ["", "activ", "active ", "exclusive", "aktiv"])
def test_an_unknown_word_is_an_error_that_names_the_known_ones(text: str) -> None:
    with pytest.raises(UnknownWord, match="is not one of: pending, active, released, expired, revoked,"):
        LeaseState.parse(text)


def test_only_shared_with_shared_does_not_conflict() -> None:
    assert Mode.EXCLUSIVE.conflicts_with(Mode.EXCLUSIVE)
    assert Mode.EXCLUSIVE.conflicts_with(Mode.SHARED)
    assert Mode.SHARED.conflicts_with(Mode.EXCLUSIVE)
    assert not Mode.SHARED.conflicts_with(Mode.SHARED)


def test_pending_and_active_are_the_states_that_are_not_terminal() -> None:
    assert [state for state in LeaseState if state.is_terminal] == ENDED


def test_a_lease_expires_at_its_expiry_tick_and_not_one_before() -> None:
    lease = a_lease(expires_tick=Tick(value=100))

    assert lease.ticks_remaining(Tick(value=99)) == 1
    assert not lease.is_expired_at(Tick(value=99))
    assert lease.ticks_remaining(Tick(value=100)) == 0
    assert lease.is_expired_at(Tick(value=100))
    assert lease.ticks_remaining(Tick(value=101)) == 0
    assert lease.is_expired_at(Tick(value=101))


@pytest.mark.parametrize(
    ("expires", "now"),
    [
        pytest.param(None, Tick(value=1), id="missing ticks"),
        pytest.param(Tick(value=100, rate=1_000), Tick(value=1), id="another rate"),
        pytest.param(Tick(value=100, era=1), Tick(value=1, era=2), id="an earlier era"),
        pytest.param(Tick(value=100, era=2), Tick(value=1, era=1), id="a later era"),
    ],
)
def test_unknown_time_counts_as_expired_for_the_holder(expires: Tick | None, now: Tick) -> None:
    lease = a_lease(expires_tick=expires)

    assert lease.ticks_remaining(now) == 0
    assert lease.is_expired_at(now)


@pytest.mark.parametrize("state", ENDED)
def test_a_lease_that_has_ended_has_no_time_left_and_does_not_expire_again(state: LeaseState) -> None:
    lease = replace(a_lease(expires_tick=Tick(value=100)), state=state)

    assert lease.is_terminal
    assert lease.ticks_remaining(Tick(value=1)) == 0
    assert not lease.is_expired_at(Tick(value=1))
    assert not lease.is_expired_at(Tick(value=200))


@pytest.mark.parametrize("state", list(LeaseState))
def test_a_lease_is_terminal_when_its_state_is(state: LeaseState) -> None:
    assert a_lease(state=state).is_terminal == state.is_terminal


def test_a_lease_is_a_value_that_nobody_changes_in_place() -> None:
    lease = a_lease()

    with pytest.raises(AttributeError):
        lease.holder = "bob"  # type: ignore[misc]
    assert lease == a_lease()


def test_a_lease_was_held_from_its_grant_to_its_end() -> None:
    standing = a_lease()
    assert [standing.was_held_at(at_ns) for at_ns in (4_999, 5_000, 5_049, 5_050)] == [
        False,
        True,
        True,
        False,
    ]
    ended = a_lease(state=LeaseState.RELEASED, terminated_at_ns=5_020)
    assert [ended.was_held_at(at_ns) for at_ns in (5_000, 5_019, 5_020)] == [True, True, False]

import pytest

from leasehold.kernel.lease.budget import DIMENSIONS, Amounts, Budget
from leasehold.kernel.lease.delegation import Delegation

FULL = Budget(episodes=1, tool_calls=2, tokens=3, duration_ms=4)


def test_amounts_are_added_and_taken_away_part_by_part() -> None:
    some = Amounts(episodes=1, tool_calls=2, tokens=3, duration_ms=4)

    assert some.plus(some) == Amounts(episodes=2, tool_calls=4, tokens=6, duration_ms=8)
    assert some.plus(some).minus(some) == some
    assert some.minus(some) == Amounts()


def test_what_has_no_limit_still_has_none_after_a_spending() -> None:
    assert Budget(tokens=5).minus(Amounts(tokens=2, episodes=7)) == Budget(tokens=3)


@pytest.mark.parametrize("part", DIMENSIONS)
def test_a_budget_is_exhausted_when_any_part_of_it_is_0(part: str) -> None:
    assert FULL.used_up() is None
    assert Budget().used_up() is None
    assert FULL.minus(Amounts(**{part: getattr(FULL, part)})).used_up() == part


@pytest.mark.parametrize("part", DIMENSIONS)
def test_asking_for_one_more_than_is_left_is_too_much(part: str) -> None:
    rest = getattr(FULL, part)

    assert FULL.short_of(Amounts(**{part: rest})) is None
    assert FULL.short_of(Amounts(**{part: rest + 1})) == part
    assert Budget().short_of(Amounts(**{part: 2**70})) is None


def test_no_limit_is_more_than_any_limit() -> None:
    assert FULL.short_of(FULL) is None
    assert FULL.short_of(Budget()) == "episodes"
    assert Budget(tokens=9).short_of(Budget(tokens=9)) is None
    assert Budget(tokens=9).short_of(Budget(episodes=1)) == "tokens"
    assert Budget().short_of(Budget()) is None


def test_what_remains_is_what_was_neither_spent_nor_set_aside() -> None:
    account = Delegation(budget=Budget(tokens=10), spent=Amounts(tokens=3), delegated=Amounts(tokens=5))

    assert account.remaining == Budget(tokens=2)


def test_a_child_that_ends_gives_back_what_neither_it_nor_its_children_have() -> None:
    account = Delegation(budget=Budget(tokens=10), delegated=Amounts(tokens=6))

    after = account.reclaimed(Amounts(tokens=6), Amounts(tokens=1), Amounts(tokens=2))

    assert (after.spent, after.delegated) == (Amounts(tokens=1), Amounts(tokens=2))
    assert after.remaining == Budget(tokens=7)

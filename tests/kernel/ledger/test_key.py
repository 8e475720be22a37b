import hypothesis.strategies as st
import pytest
from hypothesis import given

from leasehold.kernel.ledger.key import (
    SEPARATOR,
    read_number,
    shown,
    spell_key,
    spell_number,
    split_key,
    under,
)
from leasehold.kernel.ledger.limits import NUMBER_MAXIMUM, NUMBER_MINIMUM, check_text

NAMES = st.text(min_size=1, max_size=4).filter(lambda text: check_text("name", text) is None)
NUMBERS = st.integers(NUMBER_MINIMUM, NUMBER_MAXIMUM) | st.integers(-2, 2)


@given(one=st.lists(NAMES, min_size=1, max_size=3), other=st.lists(NAMES, min_size=1, max_size=3))
def test_keys_sort_as_the_names_they_are_made_of_even_by_bytes(one: list[str], other: list[str]) -> None:
    assert (spell_key(*one) < spell_key(*other)) == (one < other)
    assert (spell_key(*one).encode() < spell_key(*other).encode()) == (one < other)


@given(one=NUMBERS, other=NUMBERS)
def test_numbers_sort_as_numbers_below_and_above_zero(one: int, other: int) -> None:
    assert (spell_key("a", one) < spell_key("a", other)) == (one < other)
    assert (spell_key("a", one, "b") < spell_key("a", other, "a")) == ((one, "b") < (other, "a"))


@given(number=NUMBERS)
def test_a_number_reads_back_as_it_was_spelled_in_sixteen_digits(number: int) -> None:
    assert len(spell_number(number)) == 16
    assert read_number(spell_number(number)) == number


def test_the_least_and_the_greatest_number_fit_and_nothing_beyond_them() -> None:
    assert spell_number(NUMBER_MINIMUM) == "0" * 16
    assert spell_number(0) == "8" + "0" * 15
    assert spell_number(NUMBER_MAXIMUM) == "f" * 16
    for number in (NUMBER_MINIMUM - 1, NUMBER_MAXIMUM + 1):
        with pytest.raises(ValueError, match="does not fit into 64 bits"):
            spell_key("a", number)


@given(parts=st.lists(NAMES, min_size=1, max_size=4))
def test_a_key_is_split_into_the_parts_it_was_made_of(parts: list[str]) -> None:
    assert split_key(spell_key(*parts)) == parts
    assert split_key(spell_key(*parts, 7)) == [*parts, spell_number(7)]


@given(prefix=st.lists(NAMES, min_size=1, max_size=2), other=st.lists(NAMES, min_size=1, max_size=4))
def test_the_range_under_a_prefix_has_all_that_go_on_from_it_and_nothing_else(
    prefix: list[str], other: list[str]
) -> None:
    low, high = under(*prefix)
    goes_on = len(other) > len(prefix) and other[: len(prefix)] == prefix

    assert (low <= spell_key(*other) < high) == goes_on
    assert low <= spell_key(*prefix, *other) < high
    assert not low <= spell_key(*prefix) < high


def test_a_longer_name_is_not_under_a_shorter_one() -> None:
    low, high = under("acme", "ann")

    assert low == f"acme{SEPARATOR}ann{SEPARATOR}"
    assert low <= spell_key("acme", "ann", "x") < high
    assert not low <= spell_key("acme", "anna", "x") < high


def test_people_are_shown_a_key_without_what_they_cannot_see() -> None:
    assert shown(spell_key("acme", "ann")) == "acme/ann"

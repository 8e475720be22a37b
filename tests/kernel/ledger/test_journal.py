from collections import OrderedDict

import hypothesis.strategies as st
from hypothesis import given

from leasehold.kernel.ledger.journal import ABSENT, Change, Journal

NAMES = st.sampled_from("abc")
STEPS = st.one_of(
    st.tuples(st.just("put"), NAMES, st.integers(0, 3) | st.none()),
    st.tuples(st.just("add"), NAMES, st.none()),
    st.tuples(st.just("append"), NAMES, st.none()),
    st.tuples(st.just("clear"), NAMES, st.none()),
)


@given(
    values=st.dictionaries(NAMES, st.integers(0, 3) | st.none()),
    members=st.sets(NAMES),
    steps=st.lists(STEPS, max_size=12),
)
def test_whatever_was_done_since_the_journal_was_cleared_is_undone(
    values: dict[str, int | None], members: set[str], steps: list[tuple[str, str, int | None]]
) -> None:
    journal, lines = Journal(), ["first"]
    before = (dict(values), set(members), list(lines))
    for what, name, value in steps:
        match what:
            case "put":
                journal.put(values, name, value)
                assert values[name] == value
            case "add":
                journal.add(members, name)
                assert name in members
            case "append":
                lines.append(name)
                journal.note(lines.pop)
            case _:
                journal.steps.clear()
                before = (dict(values), set(members), list(lines))

    journal.undo()
    assert (values, members, lines) == before
    journal.undo()
    assert (values, members, lines) == before, "what was undone is not undone again"


def test_a_value_of_none_is_told_from_no_value() -> None:
    journal, values = Journal(), OrderedDict[str, int | None](a=None)
    journal.put(values, "a", 1)
    journal.put(values, "b", None)

    journal.undo()

    assert values == {"a": None}


def test_what_undoes_is_called_with_what_was_noted_the_last_first() -> None:
    journal, called = Journal(), list[str]()
    journal.note(called.append, "first")
    journal.note(called.append, "second")

    journal.undo()

    assert called == ["second", "first"]


def test_a_name_that_is_gone_by_itself_needs_no_undoing() -> None:
    journal, values = Journal(), dict[str, int]()
    journal.put(values, "a", 1)
    del values["a"]

    journal.undo()

    assert values == {}


def test_a_change_has_the_record_before_and_after() -> None:
    change = Change("counter", "a", None, 1)

    assert (change.family, change.key, change.before, change.after) == ("counter", "a", None, 1)
    assert ABSENT is not None

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from leasehold.kernel.ledger.commands import REQUEST_MEMORY_NS
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.family import Reaction, Stage
from leasehold.kernel.ledger.limits import invalid
from leasehold.kernel.ledger.records import Keys, Missing, Records, Wanted
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Tick
from tests.kernel.counters import (
    COUNTER,
    FIRST,
    LAST,
    Counter,
    CounterDrawn,
    CounterGone,
    CounterSet,
    Do,
    after_gone,
    blank_draft,
    bystander,
    draft_of,
    drop,
    due,
    families,
    happening,
    load,
    nothing,
    numbers,
    put,
)
from tests.kernel.records import an_era, at

DO = Do(request_id="r")


def names(draft: Draft) -> list[str]:
    """The numbers that events were about, in order."""
    return [event.keys[0] for event in draft.events]


def missing(ask: Callable[..., object], *arguments: Any) -> Keys:
    with pytest.raises(Missing) as caught:
        ask(*arguments)
    return caught.value.keys


class TestAppending:
    def test_every_later_read_sees_what_was_appended(self) -> None:
        draft = draft_of(families(), a=1, b=2)
        put(draft, "c", 3)
        put(draft, "a", 4)
        drop(draft, "b")

        assert draft.get(COUNTER, "a") == Counter(name="a", number=4)
        assert draft.get(COUNTER, "b") is None
        assert [one.number for one in draft.scan(COUNTER, FIRST, LAST)] == [4, 3]
        assert draft.count(COUNTER, FIRST, LAST) == 2
        assert names(draft) == ["c", "a", "b"]

    def test_an_event_whose_record_nobody_has_loaded_is_not_taken(self) -> None:
        draft = blank_draft(families())

        assert missing(put, draft, "a", 1) == Keys(families={COUNTER: Wanted(keys={"a"})})
        assert draft.events == []

    def test_numbers_are_drawn_from_the_counter_of_the_store(self) -> None:
        draft = draft_of(families())
        first = draft.next_number()
        draft.append(CounterDrawn(**happening(draft), name="a", value=first))

        assert draft.next_number() == first + 1
        assert numbers(draft) == {"a": first}

    def test_a_request_is_remembered_for_an_hour(self) -> None:
        draft = draft_of(families())
        draft.view.load(Keys(requests={DO.request_key}), Records())
        assert draft.remembered(DO) is None
        put(draft, "a", 1, request=DO.request_key)
        (event,) = draft.events

        def later(elapsed: int, era: int = 1) -> Draft:
            tick = Tick(value=draft.now.tick.value + elapsed, era=era)
            return Draft(draft.view, type(draft.now)(tick=tick, wall_ns=0))

        assert draft.remembered(DO) == event
        assert later(REQUEST_MEMORY_NS - 1).remembered(DO) == event
        assert later(REQUEST_MEMORY_NS).remembered(DO) is None
        assert later(0, era=2).remembered(DO) == event, "nobody can tell how long ago that was"

    def test_what_is_not_to_be_remembered_is_not(self) -> None:
        draft = draft_of(families(), a=1)
        draft.view.load(Keys(requests={DO.request_key}), Records())
        draft.append(CounterGone(**happening(draft), name="a", request=DO.request_key))

        assert draft.remembered(DO) is None

    def test_what_was_due_in_an_earlier_era_is_carried_over(self) -> None:
        draft = draft_of(families(), era=2)

        assert missing(draft.carried, Tick(value=70)) == Keys(eras={1})
        draft.view.load(Keys(eras={1}), Records(eras={1: an_era()}))
        assert draft.carried(Tick(value=70)) == Tick(value=30, era=2)
        assert draft.carried(Tick(value=70, era=2)) is None


STEPS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3) | st.none(), st.booleans()), max_size=8)


class TestUndoing:
    @given(kept=STEPS, undone=STEPS)
    def test_everything_since_the_command_began_is_taken_back_and_nothing_else(
        self, kept: list[tuple[str, int | None, bool]], undone: list[tuple[str, int | None, bool]]
    ) -> None:
        draft = draft_of(families(), a=1, b=2)

        def do(steps: list[tuple[str, int | None, bool]]) -> None:
            for name, number, is_drawn in steps:
                if number is None:
                    drop(draft, name)
                elif is_drawn:
                    draft.append(CounterDrawn(**happening(draft), name=name, value=draft.next_number()))
                else:
                    put(draft, name, number, request=f"{name}:{number}")
                draft.wakes.append(name)

        do(kept)
        draft.begin()
        before = (numbers(draft), draft.view.authority, draft.view.changes())
        remembered = {request for request in ("a:0", "b:1", "c:2") if draft.view.knows_request(request)}
        do(undone)
        draft.undo()

        assert (numbers(draft), draft.view.authority, draft.view.changes()) == before
        assert (draft.events, draft.wakes) == ([], [])
        assert remembered == {
            request for request in ("a:0", "b:1", "c:2") if draft.view.knows_request(request)
        }

    def test_what_was_appended_before_the_command_began_stands(self) -> None:
        draft = draft_of(families())
        put(draft, "a", 1)
        draft.wakes.append("ann")
        draft.begin()
        assert (draft.events, draft.wakes) == ([], [])
        put(draft, "b", 2)

        draft.undo()

        assert numbers(draft) == {"a": 1}

    def test_a_draft_goes_on_at_a_later_moment(self) -> None:
        draft = draft_of(families(), tick=60, a=due("a", 1, tick=70))
        put(draft, "b", 2)
        assert draft.get(COUNTER, "a") is not None

        draft.now = at(70)
        draft.begin()
        assert draft.get(COUNTER, "a") is None
        draft.undo()

        assert numbers(draft) == {"a": 1, "b": 2}
        assert draft.view.authority.tick == 60

    def test_nothing_follows_from_what_was_undone(self) -> None:
        followed: list[str] = []
        reaction = after_gone(Stage.THEN, lambda event, _: followed.append(event.name))
        free = after_gone(Stage.FREE, lambda event, _: followed.append(event.name))
        draft = draft_of(families(nothing, bystander("free", reacts=free), reacts=reaction), a=1)
        drop(draft, "a")

        draft.undo()
        draft.settle()

        assert followed == []


class TestFollowing:
    def test_what_belongs_to_an_event_comes_with_it_then_what_follows_then_who_is_entitled(self) -> None:
        happened: list[str] = []

        def note(what: str) -> Callable[[CounterGone, Draft], None]:
            return lambda event, _: happened.append(f"{what} {event.name}")

        known = families(
            nothing,
            bystander("free", reacts=after_gone(Stage.FREE, note("free"))),
            bystander("with", reacts=after_gone(Stage.WITH, note("with"))),
            reacts=after_gone(Stage.THEN, note("then")),
        )
        draft = draft_of(known, a=1, b=2)
        drop(draft, "a")
        drop(draft, "b")
        assert happened == ["with a", "with b"]

        draft.settle()

        assert happened[2:] == ["then a", "then b", "free a", "free b"]

    def test_families_react_in_the_order_of_the_list_and_what_a_reaction_appends_comes_last(self) -> None:
        happened: list[str] = []

        def first(event: CounterGone, draft: Draft) -> None:
            happened.append(f"first {event.name}")
            if event.name == "a":
                drop(draft, "c")
            happened.append(f"first {event.name} is done")

        def second(event: CounterGone, draft: Draft) -> None:
            del draft
            happened.append(f"second {event.name}")

        known = families(
            nothing,
            bystander("second", reacts=after_gone(Stage.THEN, second)),
            reacts=after_gone(Stage.THEN, first),
        )
        draft = draft_of(known, a=1, b=2, c=3)
        drop(draft, "a")
        drop(draft, "b")
        draft.settle()

        assert [one for one in happened if "done" not in one] == [
            "first a",
            "second a",
            "first b",
            "second b",
            "first c",
            "second c",
        ]
        assert happened[1] == "first a is done", "never one inside another"
        assert names(draft) == ["a", "b", "c"]

    @pytest.mark.parametrize("count", [1, 2, 3], ids=["one", "two", "three"])
    def test_what_follows_from_a_grant_comes_before_the_next_grant(self, count: int) -> None:
        happened: list[str] = []

        def free(event: CounterGone, draft: Draft) -> None:
            happened.append(f"free {event.name}")
            put(draft, event.name, 9)

        def then(event: CounterSet, draft: Draft) -> None:
            del draft
            happened.append(f"then {event.name}")

        known = families(
            nothing,
            bystander("then", reacts={CounterSet: Reaction(Stage.THEN, then)}),
            reacts=after_gone(Stage.FREE, free),
        )
        draft = draft_of(known, a=1, b=2, c=3)
        gone = ["a", "b", "c"][:count]
        for name in gone:
            drop(draft, name)
        draft.settle()

        assert happened == [f"{what} {name}" for name in gone for what in ("free", "then")]

    def test_those_who_wait_are_not_looked_for_twice(self) -> None:
        happened: list[str] = []
        then = after_gone(Stage.THEN, lambda event, _: happened.append(f"then {event.name}"))
        free = after_gone(Stage.FREE, lambda event, _: happened.append(f"free {event.name}"))
        draft = draft_of(families(nothing, bystander("free", reacts=free), reacts=then))
        events = [CounterGone(**happening(draft), name=name) for name in ("a", "b")]

        draft.took(events[:1], promoted=True)
        draft.took(events[1:])
        draft.settle()

        assert happened == ["then a", "then b", "free b"]
        assert draft.events == events

    def test_a_number_that_is_drawn_with_an_event_comes_behind_those_of_its_decision(self) -> None:
        def draw(event: CounterGone, draft: Draft) -> None:
            draft.append(CounterDrawn(**happening(draft), name="c", value=draft.next_number()))

        draft = draft_of(families(reacts=after_gone(Stage.WITH, draw)), a=1)
        first = draft.next_number()
        gone = CounterGone(**happening(draft), name="a")
        drawn = CounterDrawn(**happening(draft), name="b", value=first)

        draft.took([gone, drawn])

        assert names(draft) == ["a", "b", "c"]
        assert numbers(draft)["c"] == first + 1

    def test_a_rule_may_have_everything_settled_before_it_goes_on(self) -> None:
        follow = after_gone(Stage.FREE, lambda event, draft: put(draft, event.name, 9))
        draft = draft_of(families(reacts=follow), a=1)
        drop(draft, "a")

        draft.settle()
        assert numbers(draft) == {"a": 9}
        draft.settle()
        assert names(draft) == ["a", "a"], "once"


class TestLacking:
    """What several reactions lack is asked for at once."""

    def gathering(self, stage: Stage) -> Draft:
        """A draft on which each number that goes takes one with it of which nothing is known."""

        def follow(event: CounterGone, draft: Draft) -> None:
            if event.name in "abc" and draft.get(COUNTER, event.name.upper()) is not None:
                drop(draft, event.name.upper())

        draft = blank_draft(families(reacts=after_gone(stage, follow)))
        wanted = Wanted(keys={"a", "b", "c"})
        load(draft, Missing(Keys(families={COUNTER: wanted})), a=1, b=2, c=3)
        return draft

    def test_of_those_who_are_entitled_all_at_once(self) -> None:
        draft = self.gathering(Stage.FREE)
        for name in ("a", "b", "c"):
            drop(draft, name)

        assert missing(draft.settle) == Keys(families={COUNTER: Wanted(keys={"A", "B", "C"})})

    def test_of_a_single_one_what_it_lacks(self) -> None:
        draft = self.gathering(Stage.FREE)
        drop(draft, "b")

        assert missing(draft.settle) == Keys(families={COUNTER: Wanted(keys={"B"})})

    def test_of_what_follows_the_first(self) -> None:
        draft = self.gathering(Stage.THEN)
        drop(draft, "a")
        drop(draft, "b")

        assert missing(draft.settle) == Keys(families={COUNTER: Wanted(keys={"A"})})

    def test_once_it_is_loaded_everything_follows(self) -> None:
        draft = self.gathering(Stage.FREE)
        while True:
            for name in ("a", "b", "c"):
                drop(draft, name)
            try:
                draft.settle()
            except Missing as lacking:
                draft.undo()
                assert numbers_known(draft) == {"a": 1, "b": 2, "c": 3}
                load(draft, lacking, A=1, B=2)
            else:
                break

        assert names(draft) == ["a", "b", "c", "A", "B"]

    def test_what_follows_from_one_of_them_lacks_is_asked_for_with_the_rest(self) -> None:
        def free(event: CounterGone, draft: Draft) -> None:
            put(draft, event.name, 9)

        def then(event: CounterSet, draft: Draft) -> None:
            draft.get(COUNTER, event.name.upper())

        known = families(
            nothing,
            bystander("then", reacts={CounterSet: Reaction(Stage.THEN, then)}),
            reacts=after_gone(Stage.FREE, free),
        )
        draft = blank_draft(known)
        load(draft, Missing(Keys(families={COUNTER: Wanted(keys={"a", "b"})})), a=1, b=2)
        drop(draft, "a")
        drop(draft, "b")

        assert missing(draft.settle) == Keys(families={COUNTER: Wanted(keys={"A", "B"})})


def numbers_known(draft: Draft) -> dict[str, int]:
    return {name: draft.view.parts[COUNTER].get(name).number for name in ("a", "b", "c")}


class TestAging:
    """Whoever looks at a record sees what time has done to it, and that is appended."""

    def test_a_record_that_is_due_is_aged_on_sight_and_once(self) -> None:
        draft = draft_of(families(), tick=60, a=due("a", 1, tick=60), b=due("b", 2, tick=61), c=3)

        assert draft.get(COUNTER, "a") is None
        assert draft.get(COUNTER, "a") is None
        assert draft.get(COUNTER, "b") == due("b", 2, tick=61)
        assert draft.get(COUNTER, "c") == Counter(name="c", number=3)
        assert draft.get(COUNTER, "d") is None
        assert [event.type for event in draft.events] == ["counter.gone"]

    def test_a_record_of_an_earlier_era_is_due_whatever_its_tick(self) -> None:
        seen: list[Counter] = []
        known = families(age=lambda name, record, draft: seen.append(record))
        draft = draft_of(known, tick=60, era=2, a=due("a", 1, tick=1_000), b=due("b", 2, tick=1, era=3))

        assert draft.get(COUNTER, "a") == due("a", 1, tick=1_000), "time may find that there is nothing to do"
        assert draft.get(COUNTER, "b") == due("b", 2, tick=1, era=3)
        assert [one.name for one in seen] == ["a"]

    def test_what_time_does_to_a_record_may_look_at_it_and_at_others(self) -> None:
        def age(name: str, record: Counter, draft: Draft) -> None:
            assert draft.get(COUNTER, name) == record, "as it is: it is being aged"
            other = "b" if name == "a" else "a"
            if draft.get(COUNTER, other) is not None:
                drop(draft, name)

        draft = draft_of(families(age=age), a=due("a", 1, tick=1), b=due("b", 2, tick=1))

        assert draft.get(COUNTER, "a") == due("a", 1, tick=1)
        assert names(draft) == ["b"]

    def test_a_scan_goes_on_where_time_has_ended_something(self) -> None:
        a, c, e = (due(name, 1, tick=1) for name in ("a", "c", "e"))
        draft = draft_of(families(), a=a, b=2, c=c, d=4, e=e, f=6)

        assert [one.name for one in draft.scan(COUNTER, FIRST, LAST, 2)] == ["b", "d"]
        assert names(draft) == ["a", "c"], "and leaves alone what it did not come to"
        assert [one.name for one in draft.scan(COUNTER, FIRST, LAST, 2, reverse=True)] == ["f", "d"]
        assert names(draft) == ["a", "c", "e"]

    def test_a_record_that_is_due_again_is_aged_again(self) -> None:
        def age(name: str, record: Counter, draft: Draft) -> None:
            put(draft, name, record.number - 1, until=1 if record.number > 1 else None)

        draft = draft_of(families(age=age), a=due("a", 2, tick=1))

        assert draft.get(COUNTER, "a").number == 1
        assert draft.get(COUNTER, "a") == Counter(name="a", number=0)
        assert [one.number for one in draft.scan(COUNTER, FIRST, LAST)] == [0]
        assert names(draft) == ["a", "a"]

    def test_a_count_is_of_what_is_recorded(self) -> None:
        draft = draft_of(families(), a=due("a", 1, tick=1), b=2)

        assert draft.count(COUNTER, FIRST, LAST) == 2
        assert draft.events == []

    def test_what_time_has_done_is_undone_with_the_command_and_can_be_seen_again(self) -> None:
        draft = draft_of(families(), a=due("a", 1, tick=1))
        assert draft.get(COUNTER, "a") is None

        draft.undo()

        assert numbers(draft) == {"a": 1}
        assert draft.get(COUNTER, "a") is None

    def test_a_record_whose_ageing_lacked_something_is_aged_the_next_time(self) -> None:
        def age(name: str, record: Counter, draft: Draft) -> None:
            if draft.get(COUNTER, "why") is not None:
                drop(draft, name)

        draft = blank_draft(families(age=age))
        load(draft, Missing(Keys(families={COUNTER: Wanted(keys={"a"})})), a=due("a", 1, tick=1))
        with pytest.raises(Missing) as lacking:
            draft.get(COUNTER, "a")
        draft.undo()
        load(draft, lacking.value, why=1)

        assert draft.get(COUNTER, "a") is None


class Redo(Do, frozen=True, kw_only=True, omit_defaults=True, tag="redo"):
    """Do what another family says."""


class TestCalling:
    """A rule may have a command of another family decided on the same draft."""

    def draft(self) -> Draft:
        def redo(command: Redo, draft: Draft) -> Refusal | Callable[[], Any]:
            if command.what == "refuse":
                return Refusal(code=RefusalCode.REFUSED, rule="NO")
            put(draft, command.what, 1)
            return lambda: numbers(draft)

        def check(command: Redo) -> Refusal | None:
            return None if command.what else invalid("what", "must not be empty")

        other = bystander("other", rules={Redo: redo}, check=check)
        return Draft(draft_of(families(nothing, other)).view, at(60))

    def test_what_it_appends_is_there_and_its_answer_is_made_when_asked_for(self) -> None:
        draft = self.draft()
        made = draft.call(Redo(request_id="r", what="a"))
        put(draft, "b", 2)

        assert callable(made)
        assert made() == {"a": 1, "b": 2}
        assert names(draft) == ["a", "b"]

    def test_a_malformed_command_is_refused_unread(self) -> None:
        refusal = self.draft().call(Redo(request_id="r"))

        assert isinstance(refusal, Refusal)
        assert refusal.field == "what"

    def test_a_refusal_is_handed_on(self) -> None:
        refusal = self.draft().call(Redo(request_id="r", what="refuse"))

        assert isinstance(refusal, Refusal)
        assert refusal.rule == "NO"


def test_a_draft_goes_on_at_a_later_moment() -> None:
    draft = draft_of(families(), a=1)
    later = at(draft.now.tick.value + 1)
    draft.now = later
    put(draft, "a", 2)
    assert draft.events[0].tick == later.tick


def test_a_part_that_is_refused_changes_nothing_whatever_becomes_of_the_whole() -> None:
    def refuse(command: Do, draft: Draft) -> Refusal:
        put(draft, "a", 9)
        drop(draft, "b")
        return Refusal(code=RefusalCode.REFUSED, rule="NO")

    happened: list[str] = []
    follow = after_gone(Stage.THEN, lambda event, _: happened.append(event.name))
    draft = draft_of(families(refuse, reacts=follow), a=1, b=2)
    put(draft, "c", 3)

    assert isinstance(draft.call(DO), Refusal)

    draft.settle()
    assert (names(draft), numbers(draft), happened) == (["c"], {"a": 1, "b": 2, "c": 3}, [])


def test_what_fails_because_something_was_lacking_before_is_decided_again() -> None:
    def follow(event: CounterGone, draft: Draft) -> None:
        if event.name == "a":
            draft.get(COUNTER, "unknown")
        raise ZeroDivisionError("it relies on what the first has done")

    draft = blank_draft(families(reacts=after_gone(Stage.FREE, follow)))
    load(draft, Missing(Keys(families={COUNTER: Wanted(keys={"a", "b"})})), a=1, b=2)
    drop(draft, "a")
    drop(draft, "b")

    assert missing(draft.settle).families[COUNTER].keys == {"unknown"}


def test_what_fails_for_a_reason_of_its_own_is_told() -> None:
    def fail(event: CounterGone, draft: Draft) -> None:
        raise ZeroDivisionError(event.name)

    draft = draft_of(families(reacts=after_gone(Stage.FREE, fail)), a=1, b=2)
    drop(draft, "a")
    drop(draft, "b")

    with pytest.raises(ZeroDivisionError):
        draft.settle()

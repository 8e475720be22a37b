from collections.abc import Callable
from typing import Any

import pytest

from leasehold.kernel.ledger.commands import LOCAL, Caller, Command, Sweep, SweepDue, Swept, SweptDue
from leasehold.kernel.ledger.decide import decide
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.family import Rule, Stage
from leasehold.kernel.ledger.records import Keys, Missing, Wanted
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from tests.kernel.counters import (
    COUNTER,
    FIRST,
    LAST,
    Counter,
    Do,
    after_gone,
    blank_draft,
    bystander,
    draft_of,
    drop,
    due,
    families,
    load,
    nothing,
    numbers,
    put,
)

DO = Do(request_id="r")
NO = Refusal(code=RefusalCode.REFUSED, rule="NO")


def sweep(key: str, family: str = COUNTER) -> Sweep:
    return Sweep(request_id="r", family=family, key=key)


def test_a_command_is_decided_by_the_rule_of_its_family_and_its_events_are_in_the_draft() -> None:
    def rule(command: Do, draft: Draft) -> Callable[[], str]:
        put(draft, "a", 1)
        return lambda: f"did {command.what}"

    draft = draft_of(families(rule))

    assert decide(Do(request_id="r", what="it"), LOCAL, draft) == "did it"
    assert [event.type for event in draft.events] == ["counter.set"]
    assert numbers(draft) == {"a": 1}


def test_a_rule_may_answer_at_once_and_what_follows_from_it_still_settles() -> None:
    def rule(command: Do, draft: Draft) -> str:
        drop(draft, "a")
        return f"did {command.what}"

    follow = after_gone(Stage.FREE, lambda event, draft: put(draft, event.name, 9))
    draft = draft_of(families(rule, reacts=follow), a=1)

    assert decide(Do(request_id="r", what="it"), LOCAL, draft) == "did it"
    assert numbers(draft) == {"a": 9}


def test_the_answer_is_made_last() -> None:
    def rule(command: Do, draft: Draft) -> Callable[[], dict[str, int]]:
        del command
        drop(draft, "a")
        return lambda: numbers(draft)

    follow = after_gone(Stage.FREE, lambda event, draft: put(draft, event.name, 9))

    assert decide(DO, LOCAL, draft_of(families(rule, reacts=follow), a=1)) == {"a": 9}


def test_an_answer_that_had_to_look_and_found_what_time_had_done_is_made_again() -> None:
    made: list[list[str]] = []

    def rule(command: Do, draft: Draft) -> Callable[[], list[str]]:
        del command

        def answer() -> list[str]:
            made.append([one.name for one in draft.scan(COUNTER, FIRST, LAST)])
            return made[-1]

        return answer

    follow = after_gone(Stage.FREE, lambda event, draft: put(draft, f"{event.name}+", 9))
    draft = draft_of(families(rule, reacts=follow), a=due("a", 1, tick=1), b=2)

    assert decide(DO, LOCAL, draft) == ["a+", "b"]
    assert made == [["b"], ["a+", "b"]]
    assert [event.type for event in draft.events] == ["counter.gone", "counter.set"]


@pytest.mark.parametrize("lacks", [False, True], ids=["refused", "for lack of a record"])
def test_nothing_is_left_of_a_command_that_was_not_decided(lacks: bool) -> None:
    def rule(command: Do, draft: Draft) -> Refusal | Callable[[], Any]:
        del command
        drop(draft, "a")
        draft.wakes.append("ann")
        draft.settle()
        put(draft, "b", 2, request="r:1")
        if lacks:
            draft.get("other", "x")
        return NO

    follow = after_gone(Stage.THEN, lambda event, draft: put(draft, "c", 9))
    known = families(rule, bystander("other"), reacts=follow)
    draft = blank_draft(known)
    load(draft, Missing(Keys(families={COUNTER: Wanted(keys={"a", "b", "c"})})), a=1)
    authority = draft.view.authority

    if lacks:
        with pytest.raises(Missing) as missing:
            decide(DO, LOCAL, draft)
        assert missing.value.keys == Keys(families={"other": Wanted(keys={"x"})})
    else:
        assert decide(DO, LOCAL, draft) == NO

    assert (draft.events, draft.wakes, draft.view.changes()) == ([], [], [])
    assert draft.view.authority == authority
    assert not draft.view.knows_request("r:1")
    assert draft.get(COUNTER, "a") == Counter(name="a", number=1)


@pytest.mark.parametrize("where", ["reaction", "answer", "admission"])
def test_a_record_that_is_lacking_wherever_it_is_looked_for_undoes_the_command(where: str) -> None:
    def rule(command: Do, draft: Draft) -> Callable[[], Any]:
        del command
        drop(draft, "a")
        return lambda: draft.get(COUNTER, "x") if where == "answer" else "done"

    def react(event: object, draft: Draft) -> None:
        del event
        if where == "reaction":
            draft.get(COUNTER, "x")

    def admits(caller: Caller, command: Command, draft: Draft) -> None:
        del caller, command
        if where == "admission":
            draft.get(COUNTER, "x")

    known = families(rule, reacts=after_gone(Stage.THEN, react), admits=admits)
    draft, caller = blank_draft(known), Caller(access="known")
    load(draft, Missing(Keys(families={COUNTER: Wanted(keys={"a"})})), a=1)

    with pytest.raises(Missing) as missing:
        decide(DO, caller, draft)
    assert (draft.events, draft.view.changes()) == ([], [])

    load(draft, missing.value, a=1)
    assert decide(DO, caller, draft) in ("done", None)
    assert [event.type for event in draft.events] == ["counter.gone"]


def test_commands_on_one_draft_see_what_those_before_them_did_and_a_refusal_undoes_only_its_own() -> None:
    def rule(command: Do, draft: Draft) -> Refusal | Callable[[], Any]:
        put(draft, command.what, len(numbers(draft)))
        return NO if command.what == "no" else lambda: numbers(draft)

    draft = draft_of(families(rule))

    assert decide(Do(request_id="r", what="a"), LOCAL, draft) == {"a": 0}
    assert decide(Do(request_id="r", what="no"), LOCAL, draft) == NO
    assert decide(Do(request_id="r", what="b"), LOCAL, draft) == {"a": 0, "b": 1}
    assert [event.keys for event in draft.events] == [("b",)], "those of the present command"
    assert [change.key for change in draft.view.changes()] == ["a", "b"]


class TestAdmission:
    """Every family may refuse to admit a caller, whatever is asked for."""

    def known(self, rule: Rule = nothing) -> tuple[Draft, list[str]]:
        asked: list[str] = []

        def gate(caller: Caller, command: Command, draft: Draft) -> Refusal | None:
            asked.append(f"gate {type(command).__name__}")
            draft.get(COUNTER, "a")
            return NO if caller.access == "barred" else None

        def door(caller: Caller, command: Command, draft: Draft) -> Refusal | None:
            del command, draft
            asked.append("door")
            return NO if caller.access == "lost" else None

        known = families(
            rule, bystander("gate", admits=gate), bystander("open"), bystander("door", admits=door)
        )
        return draft_of(known, a=due("a", 1, tick=1)), asked

    def test_nobody_is_asked_about_a_local_caller(self) -> None:
        draft, asked = self.known()

        assert decide(DO, LOCAL, draft) == "done"
        assert (asked, draft.events) == ([], [])

    def test_families_are_asked_in_order_and_then_the_rule_decides(self) -> None:
        draft, asked = self.known()

        assert decide(DO, Caller(access="known"), draft) == "done"
        assert asked == ["gate Do", "door"]
        assert [event.type for event in draft.events] == ["counter.gone"], "to look at a record ages it"

    @pytest.mark.parametrize(
        ("caller", "asks"),
        [(Caller(access="barred"), ["gate Do"]), (Caller(access="lost"), ["gate Do", "door"])],
        ids=["by the first", "by the second"],
    )
    def test_who_is_not_admitted_is_refused_before_any_rule_and_has_changed_nothing(
        self, caller: Caller, asks: list[str]
    ) -> None:
        def never(command: Do, draft: Draft) -> Refusal:
            raise AssertionError((command, draft))

        draft, asked = self.known(never)

        assert decide(DO, caller, draft) == NO
        assert asked == asks
        assert (draft.events, numbers(draft)) == ([], {"a": 1})

    def test_a_sweep_has_to_be_admitted_too(self) -> None:
        draft, asked = self.known()

        assert decide(sweep("a"), Caller(access="barred"), draft) == NO
        assert asked == ["gate Sweep"]


class TestSweeping:
    @pytest.mark.parametrize(
        ("key", "ended"),
        [("over", True), ("later", False), ("lasting", False), ("nowhere", False)],
    )
    def test_a_record_of_any_family_that_time_has_ended_is_recorded_as_ended(
        self, key: str, ended: bool
    ) -> None:
        def age(name: str, record: Counter, draft: Draft) -> None:
            assert record.until is not None
            if record.until.value <= draft.now.tick.value:
                drop(draft, name)

        over, later = due("over", 1, tick=60), due("later", 2, tick=61)
        draft = draft_of(families(age=age), over=over, later=later, lasting=3)

        assert decide(sweep(key), LOCAL, draft) == Swept(ended=ended)
        assert [event.keys for event in draft.events] == ([(key,)] if ended else [])

    def test_a_record_that_lasts_for_good_from_now_on_has_nothing_left_for_time_to_do(self) -> None:
        def age(name: str, record: Counter, draft: Draft) -> None:
            put(draft, name, record.number)

        assert decide(sweep("a"), LOCAL, draft_of(families(age=age), a=due("a", 1, tick=1))) == Swept(
            ended=True
        )

    def test_a_record_that_time_only_moves_on_has_not_ended(self) -> None:
        def age(name: str, record: Counter, draft: Draft) -> None:
            put(draft, name, record.number, until=100)

        draft = draft_of(families(age=age), a=due("a", 1, tick=1))

        assert decide(sweep("a"), LOCAL, draft) == Swept(ended=False)
        assert [event.type for event in draft.events] == ["counter.set"]

    def test_what_a_reaction_makes_of_it_counts(self) -> None:
        follow = after_gone(Stage.FREE, lambda event, draft: put(draft, event.name, 9, until=100))
        draft = draft_of(families(reacts=follow), a=due("a", 1, tick=1))

        assert decide(sweep("a"), LOCAL, draft) == Swept(ended=False)
        assert numbers(draft) == {"a": 9}


def test_an_answer_that_turns_out_to_be_a_refusal_undoes_everything() -> None:
    def rule(command: Do, draft: Draft) -> Callable[[], Refusal]:
        put(draft, "a", 2)
        return lambda: NO

    draft = draft_of(families(rule), a=1)

    assert decide(DO, LOCAL, draft) == NO
    assert (draft.events, numbers(draft)) == ([], {"a": 1})


def test_a_sweep_of_whatever_is_due_is_left_to_the_engine() -> None:
    draft = draft_of(families(), a=due("a", 1, 10))

    assert decide(SweepDue(limit=1, request_id="r"), LOCAL, draft) == SweptDue(ended=0)
    assert draft.events == []


def test_a_record_that_is_not_due_is_not_aged_by_a_sweep() -> None:
    draft = draft_of(families(), a=due("a", 1, 61))

    assert decide(sweep("a"), LOCAL, draft) == Swept(ended=False)
    assert numbers(draft) == {"a": 1}


def test_a_caller_bound_to_a_tenant_is_refused_for_another_before_anybody_is_asked() -> None:
    def nobody(*given: object) -> None:
        raise AssertionError("the command is of another tenant")

    bound = Caller(access="key-1", tenant="acme")
    draft = draft_of(families(nobody, admits=nobody), a=due("a", 1, 10))

    for command in (DO, sweep("a"), SweepDue(tenant="acme", limit=1, request_id="r")):
        refusal = decide(command, bound, draft)
        assert isinstance(refusal, Refusal)
        assert refusal.rule == "NOT_PERMITTED"
    assert (draft.events, numbers(draft)) == ([], {"a": 1})


def test_a_caller_bound_to_a_tenant_acts_for_that_one() -> None:
    draft = draft_of(families(lambda command, draft: "done"))

    assert decide(Do(tenant="acme", request_id="r", what="it"), Caller(tenant="acme"), draft) == "done"

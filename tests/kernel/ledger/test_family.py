import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.family import LEASES, lease_family
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.ledger.commands import Command, Sweep, SweepDue
from leasehold.kernel.ledger.events import DecodeError, Event, StoreOpened, encode_event
from leasehold.kernel.ledger.family import Families, Reaction, Stage
from leasehold.kernel.ledger.limits import BATCH_LEASES
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick
from leasehold.kernel.ledger.view import View
from tests.kernel.counters import (
    COUNTER,
    COUNTERS,
    Counter,
    CounterGone,
    CounterSet,
    Do,
    bystander,
    draft_of,
    families,
    nothing,
    state_of,
)
from tests.kernel.records import ACQUIRE, COMMANDS, OF_STORE, an_authority

DO = Do(request_id="r")
SET = CounterSet(tick=Tick(value=1), at_ns=1, actor="ann", name="a", value=1)


class Alien(Event, frozen=True, kw_only=True, omit_defaults=True, tag="alien.landed"):
    """An event that does not say of which family it is."""


def test_families_are_found_by_name_event_and_command_and_come_in_their_order() -> None:
    lease = lease_family()
    known = Families((lease, COUNTERS))

    assert list(known) == [lease, COUNTERS]
    assert known.named == {"lease": lease, COUNTER: COUNTERS}
    assert known.of_event[CounterSet] is COUNTERS
    assert known.of_command[Do] is COUNTERS
    assert known.rules[Do] is nothing
    assert known.versions == {"lease": 1, COUNTER: 1}


@pytest.mark.parametrize("name", ["", "two words", "dotted.name", "1st"])
def test_the_name_of_a_family_is_an_identifier(name: str) -> None:
    with pytest.raises(ValueError, match="is not a name for one family"):
        Families((bystander(name),))


def test_no_two_families_have_one_name() -> None:
    with pytest.raises(ValueError, match="'counter' is not a name for one family"):
        Families((COUNTERS, bystander(COUNTER)))


def test_an_event_begins_with_the_name_of_its_family() -> None:
    with pytest.raises(
        ValueError, match=r"alien\.landed does not begin with the name of its family, counter"
    ):
        Families((replace(COUNTERS, events=(*COUNTERS.events, Alien)),))


def test_a_command_that_no_family_has_a_rule_for_is_of_none() -> None:
    refusal = Families((replace(COUNTERS, rules={}),)).check(DO)

    assert refusal is not None
    assert refusal.detail == "Do is of no family that is known here"


def test_reactions_of_several_families_to_one_event_come_in_the_order_of_the_list() -> None:
    first, second = (Reaction(stage, lambda event, draft: None) for stage in (Stage.FREE, Stage.WITH))
    known = families(nothing, bystander("other", reacts={CounterGone: second}), reacts={CounterGone: first})

    assert known.reactions == {CounterGone: (first, second)}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_checked_by_its_family(command: Command) -> None:
    assert LEASES.check(command) is None


def test_a_command_of_no_family_that_is_known_is_refused() -> None:
    refusal = LEASES.check(DO)

    assert refusal == Refusal(
        code=RefusalCode.INVALID_INPUT, field="command", detail="Do is of no family that is known here"
    )
    assert families().check(DO) is None


def test_what_can_never_be_right_is_refused_by_the_family() -> None:
    refusal = Refusal(code=RefusalCode.REFUSED, rule="NO")

    assert families(nothing, check=lambda command: refusal).check(DO) == refusal


def test_a_sweep_names_a_family_that_is_known() -> None:
    sweep = Sweep(request_id="r", family=COUNTER, key="a")

    assert families().check(sweep) is None
    assert LEASES.check(sweep) == Refusal(
        code=RefusalCode.INVALID_INPUT, field="family", detail="'counter' is not known here"
    )


@pytest.mark.parametrize(("limit", "is_right"), [(0, False), (1, True), (BATCH_LEASES, True), (1_001, False)])
def test_a_sweep_of_what_is_due_has_a_limit(*, limit: int, is_right: bool) -> None:
    refusal = LEASES.check(SweepDue(request_id="r", limit=limit))

    assert (refusal is None) == is_right
    assert refusal is None or (refusal.field, refusal.detail) == ("limit", "must be from 1 to 1000")


def test_events_of_all_families_and_of_the_registrar_are_read_and_no_others() -> None:
    opened = StoreOpened(**OF_STORE, epoch=1)
    both = Families((lease_family(), COUNTERS))

    for known in (both, families()):
        assert known.decode_event(encode_event(SET)) == SET
        assert known.decode_event(encode_event(opened).decode()) == opened
    with pytest.raises(DecodeError, match=r"counter\.set"):
        LEASES.decode_event(encode_event(SET))
    with pytest.raises(DecodeError, match=r"counter\.set has schema 2, and 1 is the newest known here"):
        both.decode_event(encode_event(replace(SET, schema=2)))


def test_a_ledger_of_the_registrar_alone_can_be_read() -> None:
    opened = StoreOpened(**OF_STORE, epoch=1)

    assert Families(()).decode_event(encode_event(opened)) == opened


@pytest.mark.parametrize(
    ("ledger", "lacking", "new"),
    [
        ({}, {}, {"lease": 1, COUNTER: 2}),
        ({"lease": 1}, {}, {COUNTER: 2}),
        ({"lease": 1, COUNTER: 1}, {}, {COUNTER: 2}),
        ({"lease": 1, COUNTER: 2}, {}, {}),
        ({"lease": 1, COUNTER: 3}, {COUNTER: 3}, {}),
        ({"work": 1}, {"work": 1}, {"lease": 1, COUNTER: 2}),
    ],
)
def test_an_engine_knows_which_families_it_lacks_and_which_are_new_to_a_ledger(
    ledger: dict[str, int], lacking: dict[str, int], new: dict[str, int]
) -> None:
    known = Families((lease_family(), replace(COUNTERS, version=2)))

    assert known.lacking(ledger) == lacking
    assert known.new_to(ledger) == new


def test_a_family_that_says_nothing_more_needs_nothing_never_ages_and_keeps_nothing() -> None:
    plain = bystander("plain")
    known = families(nothing, plain)
    draft, state = draft_of(known), State()

    assert plain.check(DO) is None
    assert plain.needs([DO], draft.view) is None
    assert plain.due(Counter(name="a", number=1)) is None
    plain.age("a", Counter(name="a", number=1), draft)
    assert draft.events == []
    assert plain.admits is None
    assert list(plain.invariants(state)) == []
    assert plain.keeps(state, {"position": b"7"}) is None
    assert (plain.version, plain.rules, plain.part) == (1, {}, None)


def test_a_family_that_says_nothing_more_forgets_nothing() -> None:
    assert list(COUNTERS.forgotten(state_of(a=1), None)) == []  # type: ignore[arg-type]


def test_leases_can_have_quotas() -> None:
    quotas = Quotas(leases_per_holder=1)
    view = View(Families((lease_family(quotas),)), an_authority())

    assert view.parts["lease"].quotas == quotas
    assert View(LEASES, an_authority()).parts["lease"].quotas == Quotas()
    assert LEASES.of_command[type(ACQUIRE)] is LEASES.named["lease"]


def test_the_versions_of_a_family_begin_with_one() -> None:
    with pytest.raises(ValueError, match="begin with 1"):
        families(version=0)

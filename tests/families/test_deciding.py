"""A family of the tests' own is decided, committed, repeated and refused like leases are."""

from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from leasehold.engine.batch import Recall, Request, Rules, run_taken
from leasehold.engine.port import LeaseQuery
from leasehold.errors import error_of
from leasehold.kernel.lease.answers import Granted, Renewal, Waiting
from leasehold.kernel.lease.commands import Acquire, Derive, Release, Renew, Revoke
from leasehold.kernel.lease.events import LeaseExpired, LeaseRevoked
from leasehold.kernel.lease.family import lease_family
from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.commands import Command, Sweep, SweepDue
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.family import Families, Family, Reaction, Stage
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.stores.memory import MemoryStore
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import claim, expect, granted, release
from tests.families.conftest import House
from tests.families.toy import (
    BARRED,
    Bump,
    Close,
    Closed,
    CounterBumped,
    CounterClosed,
    Finish,
    Record,
    Value,
    own_key,
    toy_families,
)

SECOND = 1_000_000_000


def bump(name: str, request: str, **fields: Any) -> Bump:
    return Bump(name=name, request_id=request, **fields)


def test_a_counter_counts(house: House) -> None:
    first, second, other = house.run(bump("a", "1"), bump("a", "2", by=5), bump("b", "3"))
    assert (first.value, second.value, other.value) == (1, 6, 1)
    assert first.fence < second.fence < other.fence


def test_numbers_are_drawn_together_with_the_tokens_of_leases(house: House) -> None:
    before, lease, after = house.run(bump("a", "1"), claim("door"), bump("a", "2"))
    assert before.fence < granted(lease).token < after.fence


def test_a_retry_is_not_a_second_request(house: House) -> None:
    command = bump("a", "1")
    first, position = house.one(command), house.position()
    assert house.one(command) == Value(value=1, fence=first.fence, repeated=True)
    assert house.run(command, command)[1].repeated
    assert house.position() == position


def test_a_retry_in_the_same_batch_is_recognised(house: House) -> None:
    command = bump("a", "1")
    assert [one.value for one in house.run(command, command, bump("a", "2"))] == [1, 1, 2]


def test_a_retry_is_forgotten_after_an_hour(house: House) -> None:
    house.one(bump("a", "1"))
    house.clock.advance(3600)
    assert house.one(bump("a", "1")).value == 2


@pytest.mark.parametrize(
    ("command", "field"),
    [(bump("", "1"), "name"), (bump("a", ""), "request_id"), (bump("a", "1", by=0), "by")],
)
def test_what_can_never_be_right_is_refused_unread(house: House, command: Command, field: str) -> None:
    assert expect(Refusal, house.one(command)).field == field
    assert house.events() == []


def test_a_refusal_has_the_code_and_the_facts_that_the_family_gives_it(house: House) -> None:
    refusal = expect(Refusal, house.one(bump("a", "1", lease_id="nobody's")))
    error = error_of(refusal)
    assert (refusal.rule, error.facts["tries"]) == ("NO_SUCH_LEASE", 1)
    assert "there is no lease nobody's" in str(error)
    assert house.events() == []


def test_a_counter_is_closed_in_the_commit_in_which_its_lease_ends(house: House) -> None:
    lease = granted(house.one(claim("door")))
    house.one(bump("a", "1", lease_id=lease.lease_id))
    position = house.position()
    house.one(release(lease))
    assert house.position() == position + 2
    assert expect(CounterClosed, house.events()[-1]).reason == f"{lease.lease_id} ended"
    assert house.one(bump("a", "2")).value == 1


def test_other_families_react_before_anybody_is_promoted(house: House) -> None:
    lease = granted(house.one(claim("door")))
    house.one(bump("a", "1", lease_id=lease.lease_id))
    expect(Waiting, house.one(claim("door", "bob", wait=True)))
    position = house.position()
    house.one(release(lease))
    with house.store.snapshot() as snapshot:
        from leasehold.engine.port import EntryQuery

        types = [entry.event.type for entry in snapshot.entries(EntryQuery(after=position))]
    assert types == ["lease.released", "counter.closed", "lease.issued"]


@pytest.mark.parametrize("how", ["expired", "revoked", "taken over"])
def test_a_counter_is_closed_however_its_lease_ends(house: House, how: str) -> None:
    lease = granted(house.one(claim("door")))
    house.one(bump("a", "1", lease_id=lease.lease_id))
    if how == "revoked":
        house.one(Revoke(lease_id=lease.lease_id, operator="olga", reason="why not", request_id="r"))
    else:
        house.clock.advance(10)
        if how == "expired":
            assert house.sweep() == 1
        else:
            granted(house.one(claim("door", "bob")))
    assert isinstance(house.events()[-1], CounterClosed)


def test_a_rule_can_call_a_rule_of_another_family(house: House) -> None:
    lease = granted(house.one(claim("door")))
    house.one(bump("a", "1", lease_id=lease.lease_id))
    finished = house.one(Finish(name="a", holder="ann", request_id="2"))
    assert finished.value == 1
    assert [type(event) for event in house.events()] == [CounterBumped, CounterClosed]
    with house.store.snapshot() as snapshot:
        ended = snapshot.lease(lease.lease_id)
    assert ended is not None
    assert ended.state is LeaseState.RELEASED


def test_a_command_that_is_refused_in_the_end_has_changed_nothing(house: House) -> None:
    lease = granted(house.one(claim("door")))
    house.one(bump("a", "1", lease_id=lease.lease_id))
    position = house.position()
    # The other commands of the batch see nothing of what it had begun.
    outcomes = house.run(
        Finish(name="a", holder="bob", request_id="2"),
        bump("a", "3"),
        Finish(name="b", holder="b", request_id="4"),
    )
    assert expect(Refusal, outcomes[0]).code == "NOT_HOLDER"
    assert outcomes[1].value == 2
    assert expect(Refusal, outcomes[2]).rule == "NOT_BOUND"
    assert house.position() == position + 1


def test_who_is_barred_gets_nothing_of_any_family(house: House) -> None:
    requests = [Request(bump("a", "1"), BARRED), Request(claim("door"), BARRED), Request(bump("a", "2"))]
    barred, also, admitted = run_taken(house.store, requests, Rules(), blocking=True)
    assert expect(Refusal, barred).rule == expect(Refusal, also).rule == "BARRED"
    assert admitted.value == 1


def test_a_counter_is_over_when_its_time_is_swept_or_not(house: House) -> None:
    house.run(bump("a", "1", ttl_ns=10 * SECOND), bump("b", "2", ttl_ns=10 * SECOND))
    house.clock.advance(10)
    assert house.one(bump("a", "3")).value == 1
    assert house.sweep() == 1
    assert house.one(bump("b", "4")).value == 1


def test_a_counter_of_an_earlier_boot_gets_what_it_had_left(house: House) -> None:
    house.one(bump("a", "1", ttl_ns=10 * SECOND))
    house.clock.advance(4)
    house.one(bump("b", "2"))  # That much of the old clock is known.
    house.clock.reboot(tick_ns=500 * SECOND, down_seconds=3600)
    assert house.one(bump("a", "3")).value == 2
    house.clock.advance(6.1)
    assert house.one(bump("a", "4")).value == 1


def test_sweeping_carries_over_what_it_does_not_end(house: House) -> None:
    house.one(bump("a", "1", ttl_ns=10 * SECOND))
    house.clock.reboot(tick_ns=500 * SECOND)
    assert house.sweep() == 0
    assert house.events()[-1].type == "counter.carried"
    house.clock.advance(10)
    assert house.sweep() == 1
    assert house.sweep() == 0


def test_a_range_is_scanned_with_what_the_batch_has_made_and_removed(house: House) -> None:
    house.run(*(bump(name, name, by=number) for number, name in enumerate("abcdef", start=1)))
    outcomes = house.run(
        bump("a", "high", by=100),
        Close(most=2, request_id="1"),
        bump("g", "low", by=3),
        Close(most=3, furthest=False, request_id="2"),
        Close(most=10, request_id="3"),
    )
    assert outcomes[1] == Closed(names=("a", "f"), left=4)
    assert outcomes[3] == Closed(names=("b", "c", "g"), left=2)
    assert outcomes[4] == Closed(names=("e", "d"), left=0)


steps = st.one_of(
    st.builds(lambda name, by: ("bump", name, by), st.sampled_from("abcdefgh"), st.integers(1, 9)),
    st.builds(lambda most, furthest: ("close", most, furthest), st.integers(1, 4), st.booleans()),
)


@given(st.lists(st.lists(steps, max_size=8), max_size=6))
def test_batches_do_what_a_dictionary_does(batches: Sequence[Sequence[tuple[str, Any, Any]]]) -> None:
    house = House(MemoryStore(clock=FakeClock(), families=toy_families()), FakeClock())
    model: dict[str, int] = {}
    number = 0
    for batch in batches:
        commands: list[Command] = []
        expected: list[object] = []
        for what, one, other in batch:
            number += 1
            if what == "bump":
                commands.append(bump(one, str(number), by=other))
                model[one] = model.get(one, 0) + other
                expected.append(model[one])
            else:
                commands.append(Close(most=one, furthest=other, request_id=str(number)))
                order = sorted(model, key=lambda name: (model[name], name), reverse=other)
                for name in order[:one]:
                    del model[name]
                expected.append(Closed(names=tuple(order[:one]), left=len(model)))
        got = [one.value if isinstance(one, Value) else one for one in house.run(*commands)]
        assert got == expected


def test_leases_are_what_they_were(house: House) -> None:
    """A second family changes nothing about the first."""
    acquire = Acquire(lease_id="x", request_id="x", resource="door", holder="ann", ttl_ns=SECOND)
    assert expect(Granted, house.one(acquire)).repeated is False
    assert expect(Granted, house.one(acquire)).repeated is True
    assert expect(Refusal, house.one(claim("door", "bob"))).code == "HELD"
    house.one(Release(lease_ids=("x",), holder="ann", request_id="y"))
    granted(house.one(claim("door", "bob")))


def grab(event: LeaseExpired | LeaseRevoked, draft: Draft) -> None:
    """Ask, at once and for somebody else, for whatever has expired, or was revoked."""
    name = f"grabbed-{event.lease_id}"
    draft.call(claim(event.resource, "greedy", lease_id=name, request_id=name))


@pytest.mark.parametrize("how", ["expired", "revoked"])
def test_what_is_kept_closed_is_so_before_anybody_reacts_to_the_end(clock: FakeClock, how: str) -> None:
    greedy = Family(
        name="greedy",
        record=Record,
        events=(),
        evolve=lambda record, event, key: record,
        reacts=dict.fromkeys((LeaseExpired, LeaseRevoked), Reaction(Stage.THEN, grab)),
    )
    house = House(MemoryStore(clock=clock, families=Families((lease_family(), greedy))), clock)
    leases = [granted(one) for one in house.run(claim("door", lock_delay_ns=60 * SECOND), claim("gate"))]
    if how == "revoked":
        house.run(
            *(
                Revoke(lease_id=one.lease_id, operator="olga", reason="why not", request_id=one.resource)
                for one in leases
            )
        )
    else:
        clock.advance(10)
        assert house.sweep() == 2
    with house.store.snapshot() as snapshot:
        held = [lease for lease in snapshot.leases(LeaseQuery()) if lease.state is LeaseState.ACTIVE]
    assert {lease.resource: lease.holder for lease in held} == {"door": "registrar", "gate": "greedy"}


def test_who_is_barred_cannot_make_others_lose_what_they_hold(house: House) -> None:
    recall = Recall()
    held = granted(house.one(claim("door")))
    forged = claim("gate", "eve", lease_id=held.lease_id, request_id=held.lease_id)
    barred = [Request(forged, BARRED), Request(SweepDue(limit=5, request_id="s"), BARRED)]
    outcomes = run_taken(house.store, barred, Rules(), recall=recall, blocking=True)
    assert [expect(Refusal, one).rule for one in outcomes] == ["BARRED", "BARRED"]
    renew = Request(Renew(lease_ids=(held.lease_id,), holder="ann", request_id="r"))
    (renewed,) = run_taken(house.store, [renew], Rules(), recall=recall, blocking=True)
    expect(Renewal, renewed.outcomes[0])


def test_only_what_is_due_is_swept(house: House) -> None:
    house.one(bump("a", "1", ttl_ns=10 * SECOND))
    house.clock.advance(9)
    assert (
        house.run(
            bump("a", "2", ttl_ns=100 * SECOND),
            Sweep(family="counter", key=own_key("default", "a"), request_id="s"),
        )[1].ended
        is False
    )
    house.clock.advance(5)
    assert house.sweep() == 0
    assert house.one(bump("a", "3")).value == 3


def test_a_child_whose_parent_has_ended_is_not_taken_for_one_that_stands(house: House) -> None:
    everything = Scope(unlimited=True)
    parent = granted(house.one(claim("tree", scope=everything, ttl_ns=3600 * SECOND)))
    for number in range(101):
        derive = Derive(
            parent_id=parent.lease_id,
            holder="ann",
            lease_id=f"child-{number}",
            resource=f"branch-{number}",
            child_holder="ann",
            request_id=f"derive-{number}",
        )
        granted(house.one(derive))
    house.one(release(parent))
    bound = house.run(
        *(bump(f"c{number}", f"b{number}", lease_id=f"child-{number}") for number in range(101))
    )
    assert all(isinstance(one, Refusal) for one in bound)


def test_a_counter_whose_time_is_over_does_not_keep_its_lease_from_ending(house: House) -> None:
    lease = granted(house.one(claim("door")))
    house.one(bump("a", "1", ttl_ns=SECOND, lease_id=lease.lease_id))
    house.clock.advance(2)
    assert house.one(release(lease)).outcomes[0].already is False


@pytest.mark.parametrize("how", ["swept", "looked at"])
def test_a_lease_ends_with_the_counter_whose_time_is_over(house: House, how: str) -> None:
    lease = granted(house.one(claim("door")))
    house.one(bump("a", "1", ttl_ns=SECOND, lease_id=lease.lease_id))
    house.clock.advance(1)
    if how == "swept":
        assert house.sweep() == 1
    else:
        assert house.one(bump("a", "2")).value == 1
    granted(house.one(claim("door", "bob")))

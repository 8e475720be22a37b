"""Leases with scope, budget and parent where others wait."""

import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.answers import Granted, Waiting
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import Wanted
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.lease.ticket import KEPT_NS
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from tests.kernel.registrar import HOUR, SECOND, TTL, Registrar, expect

EVERYTHING = Scope(unlimited=True)
TEN = Budget(tokens=10)


def root(registrar: Registrar, holder: str = "ann", resource: str = "door") -> Lease:
    return registrar.grant(holder, resource, scope=EVERYTHING, budget=TEN)


def child_of(registrar: Registrar, parent: Lease, resource: str = "gate") -> Lease:
    return registrar.derive(parent, "bob", resource=resource, budget=Budget(tokens=4), scope=EVERYTHING)


def test_a_waiter_gets_the_scope_and_budget_it_asked_for() -> None:
    registrar = Registrar()
    held = registrar.grant("ann")
    claim = registrar.join("bob", scope=EVERYTHING, budget=TEN)
    registrar.end(held)

    lease = registrar.win(claim).lease

    assert lease.delegation is not None
    assert lease.delegation.budget == TEN


def test_what_a_parents_end_frees_below_goes_to_those_who_wait_for_it() -> None:
    registrar = Registrar()
    parent = root(registrar)
    child_of(registrar, parent)
    for_child, for_parent = registrar.join("cem", "gate"), registrar.join("dia", "door")

    registrar.end(parent)

    registrar.win(for_child)
    registrar.win(for_parent)


@pytest.mark.parametrize("how", ["adopt", "transfer", "claim what has run out"])
def test_what_a_claim_or_a_transfer_ends_below_goes_to_those_who_wait_for_it_at_once(how: str) -> None:
    registrar = Registrar()
    parent = root(registrar)
    child_of(registrar, parent)
    registrar.advance(1)
    waiting = registrar.join("cem", "gate")
    match how:
        case "adopt":
            registrar.grant("ann", adopt=True)
        case "transfer":
            expect(Granted, registrar.ask(registrar.hand_over(parent, "dia")))
        case _:
            registrar.clock += TTL - SECOND
            registrar.grant("eve")

    assert registrar.holders("gate") == ["cem"]
    registrar.win(waiting)


def test_what_ends_below_a_lease_that_is_found_to_have_ended_goes_to_those_who_wait_for_it() -> None:
    registrar = Registrar()
    standing = registrar.grant("bob", "shelf", mode=Mode.SHARED, ttl_ns=HOUR)
    parent = registrar.grant("ann", "shelf", mode=Mode.SHARED, scope=EVERYTHING, budget=TEN)
    child_of(registrar, parent)
    registrar.advance(1)
    for_parent, for_child = registrar.join("cem", "shelf"), registrar.join("dia", "gate")
    registrar.clock += TTL - SECOND

    registrar.end(standing)

    assert (registrar.holders("shelf"), registrar.holders("gate")) == (["cem"], ["dia"])
    registrar.win(for_parent)
    registrar.win(for_child)


def test_what_is_found_to_have_ended_on_the_way_ends_its_children_too() -> None:
    registrar = Registrar()
    first = root(registrar, "ann", "door")
    child_of(registrar, first, "gate")
    second = registrar.grant("eve", "wall", scope=EVERYTHING, budget=TEN, ttl_ns=TTL // 2)
    below = registrar.derive(second, "fay", resource="roof", budget=Budget(tokens=1), scope=EVERYTHING)
    claim = registrar.join("cem", "gate", also=(Wanted(resource="wall"),))
    registrar.clock += 1_500_000_000
    registrar.wait(claim)
    for _ in range(3):
        registrar.clock += 1_400_000_000
        registrar.wait(claim) if registrar.lease(claim.lease_id).state is LeaseState.PENDING else None

    registrar.revoke(first)

    assert registrar.lease(below.lease_id).is_terminal
    registrar.win(claim)


def test_a_child_can_be_derived_on_a_path() -> None:
    registrar = Registrar()
    parent = root(registrar)

    child = child_of(registrar, parent, "/data/x")

    assert child.delegation is not None
    assert registrar.deny("cem", "/data").holder == "bob"


def test_adopting_where_others_wait_inherits_scope_and_budget() -> None:
    registrar = Registrar()
    lease = root(registrar)
    registrar.spend(lease, tokens=3)
    registrar.join("bob")

    adopted = registrar.grant("ann", adopt=True)

    assert adopted.delegation is not None
    assert adopted.delegation.budget == Budget(tokens=7)


def test_adopting_a_child_where_others_wait_goes_on_under_its_parent() -> None:
    registrar = Registrar()
    parent = root(registrar)
    child = child_of(registrar, parent)
    registrar.join("cem", "gate")

    refusal = registrar.deny("bob", "gate", adopt=True, scope=EVERYTHING)
    assert refusal.code is RefusalCode.INVALID_INPUT
    adopted = registrar.grant("bob", "gate", adopt=True)

    assert adopted.delegation is not None
    assert adopted.delegation.ancestors == (parent.lease_id,)
    assert adopted.adopted_from == child.lease_id


def test_a_transferred_lease_takes_its_scope_and_budget_along_and_leaves_its_children() -> None:
    registrar = Registrar()
    parent = root(registrar)
    child = child_of(registrar, parent)

    granted = expect(Granted, registrar.ask(registrar.hand_over(parent, "dia")))

    assert granted.lease.delegation is not None
    assert granted.lease.delegation.scope == EVERYTHING
    assert registrar.lease(child.lease_id).is_terminal


def test_a_transferred_child_stays_under_its_parent() -> None:
    registrar = Registrar()
    parent = root(registrar)
    child = child_of(registrar, parent)

    granted = expect(Granted, registrar.ask(registrar.hand_over(child, "dia")))

    assert granted.lease.delegation is not None
    assert granted.lease.delegation.ancestors == (parent.lease_id,)
    assert registrar.remaining(parent) == Budget(tokens=6)


def test_a_child_whose_parents_time_is_unknown_is_not_transferred() -> None:
    registrar = Registrar()
    parent = root(registrar)
    child = child_of(registrar, parent)
    registrar.put(replace(registrar.lease(parent.lease_id), expires_tick=None, issued_tick=None))

    refusal = expect(Refusal, registrar.ask(registrar.hand_over(child, "dia")))

    assert refusal.code is RefusalCode.UNKNOWN_TIME


def test_several_resources_do_not_share_one_budget() -> None:
    refusal = Registrar().deny("ann", also=(Wanted(resource="gate"),), budget=TEN)

    assert (refusal.code, refusal.field) == (RefusalCode.INVALID_INPUT, "resources")


def test_a_child_beside_its_parent_can_be_derived_after_the_clock_went_back() -> None:
    """What that did to the parent was noted for its budget and again for its resource."""
    registrar = Registrar()
    parent = registrar.grant("ann", "shelf", budget=Budget(tokens=10), mode=Mode.SHARED)
    registrar.clock -= 100 * SECOND

    registrar.derive(parent, "bob", resource="shelf", budget=Budget(tokens=4), mode=Mode.SHARED)

    assert registrar.remaining(parent) == Budget(tokens=6)
    assert registrar.history().count("lease.rearmed") == 1


def test_a_child_beside_a_parent_whose_upgrade_has_lapsed_is_paid_for_by_it() -> None:
    """That the upgrade had lapsed was noted for a parent that had not set anything aside."""
    registrar = Registrar()
    parent = registrar.grant("ann", "/shelf", budget=Budget(tokens=10), mode=Mode.SHARED, ttl_ns=HOUR)
    registrar.grant("cem", "/shelf", mode=Mode.SHARED, ttl_ns=HOUR)
    expect(Waiting, registrar.ask(registrar.change(parent, Mode.EXCLUSIVE, wait=True)))
    registrar.clock += KEPT_NS

    registrar.derive(parent, "bob", resource="/shelf", budget=Budget(tokens=4), mode=Mode.SHARED)

    assert registrar.remaining(parent) == Budget(tokens=6)
    assert not registrar.lease(parent.lease_id).is_upgrading

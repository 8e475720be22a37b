"""Whoever takes over a first lease has all that was not spent, once all below it are recorded as over."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.kernel.lease import descendants as settling
from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.commands import Wanted
from leasehold.kernel.lease.descendants import DESCENDANTS_PER_COMMAND
from leasehold.kernel.lease.forgotten import forgotten
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.refusals import Refusal
from tests.kernel.ledger.test_checkpoint import checkpoint
from tests.kernel.registrar import TTL, Registrar, expect

WIDE: dict[str, Any] = {"scope": Scope(unlimited=True)}


def root(registrar: Registrar, tokens: int = 1_000) -> Lease:
    return registrar.grant("ann", "project", budget=Budget(tokens=tokens), **WIDE)


def replaced(registrar: Registrar, old: Lease, how: str) -> Lease:
    """The lease that takes the place of another one, by its own holder or by another."""
    if how == "adopted":
        return registrar.grant(old.holder, old.resource, adopt=True)
    return expect(Granted, registrar.ask(registrar.hand_over(old, "zoe"))).lease


def orphans(registrar: Registrar) -> list[Lease]:
    """Leases that stand in the tables below one that has ended."""
    return [
        lease
        for lease in registrar.state.of("lease").values()
        if lease.delegation is not None
        and not lease.is_terminal
        and any(registrar.lease(above).is_terminal for above in lease.delegation.ancestors)
    ]


def sweep_all(registrar: Registrar) -> None:
    while left := orphans(registrar):
        registrar.sweep(*left[:3])


@pytest.mark.parametrize("how", ["adopted", "handed over"])
def test_more_leases_than_end_in_one_commit_give_back_what_they_did_not_use_later(how: str) -> None:
    registrar = Registrar()
    old = root(registrar)
    part = registrar.derive(old, "bob", resource="part", budget=Budget(tokens=400), **WIDE)
    for number in range(DESCENDANTS_PER_COMMAND):
        above = old if number % 2 else part
        child = registrar.derive(above, "cem", resource=f"part-{number}", budget=Budget(tokens=2))
        registrar.spend(child, tokens=1)

    new = replaced(registrar, old, how)
    (left,) = orphans(registrar)
    assert registrar.remaining(new) == Budget(tokens=1_000 - DESCENDANTS_PER_COMMAND - 1)
    registrar.sweep(left)

    assert registrar.remaining(new) == Budget(tokens=1_000 - DESCENDANTS_PER_COMMAND)
    assert registrar.account(new).delegated == Amounts()


@given(
    parents=st.lists(st.integers(0, 8), max_size=9),
    spent=st.lists(st.integers(0, 3), min_size=10, max_size=10),
    at_once=st.integers(0, 4),
    hows=st.lists(st.sampled_from(["adopted", "handed over"]), min_size=1, max_size=3),
    swept=st.integers(0, 3),
)
def test_nothing_is_lost_and_nothing_comes_twice_however_few_leases_end_at_once(
    parents: list[int], spent: list[int], at_once: int, hows: list[str], swept: int
) -> None:
    """A tree of leases that have spent something, whose first is replaced again and again."""
    registrar = Registrar()
    tree = [root(registrar, tokens=10_000)]
    for number, parent in enumerate(parents):
        above = tree[parent % len(tree)]
        share = Budget(tokens=1 + 4_000 // 3 ** len(registrar.account(above).ancestors))
        answer = registrar.ask(
            registrar.child_claim(above, "bob", resource=f"{number}", budget=share, **WIDE)
        )
        if isinstance(answer, Granted):
            tree.append(answer.lease)
    used = 0
    for lease, tokens in zip(tree, spent, strict=False):
        if tokens and not isinstance(registrar.ask(registrar.spending(lease, tokens=tokens)), Refusal):
            used += tokens
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(settling, "DESCENDANTS_PER_COMMAND", at_once)
        new = tree[0]
        for how in hows:
            new = replaced(registrar, new, how)
            for lease in orphans(registrar)[:swept]:
                registrar.sweep(lease)
        sweep_all(registrar)
    assert registrar.remaining(new) == Budget(tokens=10_000 - used)
    assert registrar.account(new).delegated == Amounts()


def test_who_names_a_budget_of_its_own_is_nobodys_successor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "DESCENDANTS_PER_COMMAND", 0)
    registrar = Registrar()
    old = root(registrar)
    child = registrar.derive(old, "bob", resource="part", budget=Budget(tokens=400))

    new = registrar.grant("ann", "project", adopt=True, budget=Budget(tokens=5))
    registrar.sweep(child)

    assert registrar.remaining(new) == Budget(tokens=5)


@pytest.mark.parametrize("how", ["adopted", "handed over"])
def test_what_is_found_to_have_ended_meanwhile_is_counted_once(how: str) -> None:
    """In a tree of paths, the children are met before the first lease ends, or between it and the next."""
    registrar = Registrar()
    old = registrar.grant("ann", "/a", budget=Budget(tokens=100), ttl_ns=9 * TTL, **WIDE)
    child = registrar.derive(old, "ann", resource="/a/b", budget=Budget(tokens=40), ttl_ns=TTL, **WIDE)
    registrar.derive(child, "ann", resource="/a/b/c", budget=Budget(tokens=30), ttl_ns=TTL)
    registrar.spend(child, tokens=7)
    registrar.advance(10)

    new = replaced(registrar, old, how)

    assert registrar.remaining(new) == Budget(tokens=93)
    assert registrar.account(new).delegated == Amounts()


@pytest.mark.parametrize("names", [("project", "part"), ("part", "project")])
def test_a_lease_and_one_derived_from_it_are_not_adopted_together(names: tuple[str, str]) -> None:
    registrar = Registrar()
    old = root(registrar)
    registrar.derive(old, "ann", resource="part", budget=Budget(tokens=400))

    refusal = registrar.deny("ann", names[0], also=(Wanted(resource=names[1]),), adopt=True)

    assert (refusal.code, refusal.field) == ("INVALID_INPUT", "resource")
    assert refusal.detail == "part was derived from project, and ends with it; adopt one"


def test_leases_that_are_not_derived_from_each_other_are_adopted_together() -> None:
    registrar = Registrar()
    old = root(registrar)
    child = registrar.derive(old, "bob", resource="part", budget=Budget(tokens=400))
    registrar.grant("ann", "plain")
    registrar.spend(child, tokens=4)

    claim = registrar.claim("ann", "plain", also=(Wanted(resource="project"),), adopt=True)
    (new,) = expect(Granted, registrar.ask(claim)).also

    assert registrar.remaining(new) == Budget(tokens=996)


def test_a_successor_stays_in_the_tables_as_long_as_somebody_may_give_it_something_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settling, "DESCENDANTS_PER_COMMAND", 0)
    registrar = Registrar()
    old = root(registrar)
    child = registrar.derive(old, "bob", resource="part", budget=Budget(tokens=400))
    second = replaced(registrar, old, "adopted")
    third = replaced(registrar, second, "adopted")
    last = replaced(registrar, third, "adopted")

    assert forgotten(registrar.state.of("lease"), checkpoint(registrar)) == []
    registrar.sweep(child)
    assert registrar.remaining(last) == Budget(tokens=1_000)
    gone = {one.lease_id for one in (old, child, second, third)}
    assert set(forgotten(registrar.state.of("lease"), checkpoint(registrar))) == gone

"""Mistakes that were once in telling a retry from another request, and must not come back."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.engine.batch import Rules, run_batch
from leasehold.kernel.lease.answers import Granted, Waiting
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import Acquire, Wanted
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.stores.memory import MemoryStore
from tests.kernel.registrar import SECOND, TTL, Registrar, expect

OWN: dict[str, Any] = {"lease_id": "own", "request_id": "own"}
PAIR: dict[str, Any] = {"also": (Wanted(resource="b"), Wanted(resource="c", mode=Mode.SHARED))}


def renewed(registrar: Registrar) -> None:
    registrar.extend(registrar.lease("own"), ttl_ns=2 * TTL)


def downgraded(registrar: Registrar) -> None:
    registrar.ask(registrar.change(registrar.lease("own"), Mode.SHARED))


def upgraded_again(registrar: Registrar) -> None:
    downgraded(registrar)
    registrar.ask(registrar.change(registrar.lease("own"), Mode.EXCLUSIVE))


def about_to_be_upgraded(registrar: Registrar) -> None:
    downgraded(registrar)
    registrar.grant("bob", mode=Mode.SHARED)
    expect(Waiting, registrar.ask(registrar.change(registrar.lease("own"), Mode.EXCLUSIVE, wait=True)))


def ended(registrar: Registrar) -> None:
    renewed(registrar)
    registrar.end(registrar.lease("own"))


def left_alone(registrar: Registrar) -> None:
    del registrar


def taken(registrar: Registrar, claim: Acquire) -> bool:
    """Say whether the id of a claim is refused as one that was used for something else."""
    return registrar.ask(claim) == Refusal(code=RefusalCode.LEASE_EXISTS, lease_id="own")


@pytest.mark.parametrize(
    "then", [left_alone, renewed, downgraded, upgraded_again, about_to_be_upgraded, ended]
)
@pytest.mark.parametrize("other", [{"mode": Mode.SHARED}, {"ttl_ns": 2 * TTL}, {"budget": Budget(tokens=1)}])
def test_a_request_id_is_not_good_for_another_claim_whatever_became_of_the_first(
    then: Callable[[Registrar], None], other: dict[str, Any]
) -> None:
    """Once the lease had changed in any way, its mode was not compared; its TTL never was."""
    registrar = Registrar()
    claim = registrar.claim("ann", **OWN)
    registrar.ask(claim)
    then(registrar)

    assert expect(Granted, registrar.ask(claim)).repeated
    assert taken(registrar, replace(claim, **other))


def test_a_claim_that_adopted_nothing_is_not_one_that_adopted() -> None:
    registrar = Registrar()
    registrar.grant("ann", budget=Budget(tokens=1))
    claim = registrar.claim("ann", **OWN, adopt=True)
    registrar.ask(claim)

    assert expect(Granted, registrar.ask(claim)).repeated
    assert taken(registrar, replace(claim, adopt=False))


@pytest.mark.parametrize(
    "other",
    [
        {"also": (Wanted(resource="b"), Wanted(resource="c"))},
        {"also": (Wanted(resource="b"), Wanted(resource="d", mode=Mode.SHARED))},
        {"also": (Wanted(resource="b"),)},
        {"also": ()},
        {"mode": Mode.SHARED},
    ],
)
@pytest.mark.parametrize("waits", [False, True])
def test_a_claim_on_several_resources_is_the_same_only_with_all_of_them(
    other: dict[str, Any], waits: bool
) -> None:
    """Only the first was compared; of the others it was enough that there were so many."""
    registrar = Registrar()
    claim = registrar.claim("ann", "a", **OWN, **PAIR, wait=waits)
    held = registrar.grant("bob", "a") if waits else None
    registrar.ask(claim)

    assert taken(registrar, replace(claim, **other))
    if held is not None:
        registrar.end(held)
        assert taken(registrar, replace(claim, **other))
    assert isinstance(registrar.ask(claim), Granted)
    assert taken(registrar, replace(claim, **other))


def test_the_id_of_a_further_lease_of_a_claim_is_no_request() -> None:
    registrar = Registrar()
    registrar.ask(registrar.claim("ann", "a", **OWN, also=(Wanted(resource="b"),)))
    further = registrar.claim("ann", "b", lease_id="own.1", request_id="own.1")

    assert expect(Refusal, registrar.ask(further)).code is RefusalCode.LEASE_EXISTS


@pytest.mark.parametrize(
    "other", [{"mode": Mode.SHARED}, {"ttl_ns": 2 * TTL}, {"wait": False}, {"priority": 6}]
)
def test_a_claim_that_waits_or_has_won_is_asked_for_again_as_it_was(other: dict[str, Any]) -> None:
    registrar = Registrar()
    held = registrar.grant("bob")
    claim = registrar.claim("ann", **OWN, wait=True)
    expect(Waiting, registrar.ask(claim))
    registrar.advance(1)

    assert taken(registrar, replace(claim, **other))
    expect(Waiting, registrar.ask(claim))
    registrar.end(held)
    assert taken(registrar, replace(claim, **other))
    assert not expect(Granted, registrar.ask(claim)).repeated


def test_a_claim_that_had_to_wait_is_not_one_that_would_not_have() -> None:
    registrar = Registrar()
    held = registrar.grant("bob")
    claim = registrar.claim("ann", **OWN, wait=True)
    registrar.ask(claim)
    registrar.end(held)
    registrar.ask(claim)
    renewed(registrar)

    assert expect(Granted, registrar.ask(claim)).repeated
    assert taken(registrar, replace(claim, wait=False))


def test_a_claim_for_a_lease_that_was_handed_over_is_no_retry() -> None:
    registrar = Registrar()
    lease = registrar.grant("ann", bound_to_boot=False)
    registrar.ask(registrar.hand_over(lease, "bob", new_lease_id="own"))

    assert taken(registrar, registrar.claim("bob", **OWN, bound_to_boot=False, adopt=True))


def test_a_claim_under_the_id_of_a_lease_that_another_request_got_is_no_retry() -> None:
    registrar = Registrar()
    registrar.grant("ann", lease_id="own", request_id="named")

    assert taken(registrar, registrar.claim("ann", **OWN))


def test_the_retry_of_a_claim_whose_grant_was_pruned_is_refused() -> None:
    registrar = Registrar()
    claim = registrar.claim("ann", **OWN)
    registrar.ask(claim)
    registrar.replayable = False
    registrar.ledger.clear()

    assert taken(registrar, claim)


def test_a_child_that_was_adopted_for_less_time_than_asked_for_is_found_by_a_retry() -> None:
    registrar = Registrar()
    parent = registrar.grant("ann", "project", budget=Budget(tokens=10), ttl_ns=100 * SECOND)
    registrar.derive(parent, "ann", resource="door", budget=Budget(tokens=1), ttl_ns=5 * SECOND)
    claim = registrar.claim("ann", **OWN, adopt=True, ttl_ns=200 * SECOND)

    assert expect(Granted, registrar.ask(claim)).expires_in_ns == 100 * SECOND
    assert expect(Granted, registrar.ask(claim)).repeated
    assert taken(registrar, replace(claim, ttl_ns=100 * SECOND))


def test_another_claim_in_the_same_batch_is_no_retry_either() -> None:
    store = MemoryStore()
    claim = Acquire(resource="door", holder="ann", ttl_ns=TTL, **OWN)

    outcomes = run_batch(store, [claim, claim, replace(claim, mode=Mode.SHARED)], Rules())

    assert [isinstance(one, Granted) for one in outcomes] == [True, True, False]
    assert expect(Refusal, outcomes[2]).code is RefusalCode.LEASE_EXISTS

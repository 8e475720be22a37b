"""Mistakes that were once in the law of those who wait, and must not come back.

Each test is the shortest sequence that shows one of them; docs/track-record.md tells how it was found. The
registrar of the kernel's tests checks every invariant after every step.
"""

import pytest

from leasehold.kernel.lease.answers import Granted, Waiting
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import Release, Wanted
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.lease.records import LEASE, lease_keys
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from tests.kernel.registrar import SECOND, Registrar, expect


def test_a_waiter_that_comes_back_through_its_own_lock_delay_ends_it() -> None:
    """Only a claim that was granted at once ended it: a waiter was granted the resource beside it."""
    registrar = Registrar()
    registrar.revoke(registrar.grant("ann", lock_delay_ns=5 * SECOND))
    other = registrar.join("bob")
    back = registrar.join("ann")

    registrar.cancel(other)

    registrar.win(back)
    assert registrar.holders() == ["ann"]


def test_an_upgrade_beside_its_holders_own_lock_delay_ends_it() -> None:
    """The lease became exclusive, and the registrar's own lease stood beside it."""
    registrar = Registrar()
    registrar.revoke(registrar.grant("ann", mode=Mode.SHARED, lock_delay_ns=5 * SECOND))
    lease = registrar.grant("ann", mode=Mode.SHARED)
    other = registrar.grant("bob", mode=Mode.SHARED)
    expect(Waiting, registrar.ask(registrar.change(lease, Mode.EXCLUSIVE, wait=True)))

    registrar.end(other)

    assert registrar.holders() == ["ann"]
    assert registrar.lease(lease.lease_id).mode is Mode.EXCLUSIVE


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_deadlock_is_named_by_the_oldest_wait_whatever_was_read_first(first: str) -> None:
    """Which of a holder's waits a refusal named hung on the order in which records had been read."""
    registrar = Registrar()
    registrar.grant("bob", "c")
    for resource in ("a", "b"):
        registrar.grant("ann", resource)
    waits = {resource: registrar.join("bob", resource) for resource in ("a", "b")}
    view = registrar.view()
    keys = lease_keys(keys={waits[first].lease_id})
    view.load(keys.families[LEASE], registrar.found(keys).families[LEASE])

    refusal = expect(Refusal, registrar.decide(registrar.claim("ann", "c", wait=True), view))

    assert refusal.code is RefusalCode.DEADLOCK
    assert refusal.cycle == ("ann", "c", "bob", "a", "ann")


@pytest.mark.parametrize("waited", [False, True])
@pytest.mark.parametrize("also", [(), (Wanted(resource="gate"),)])
def test_a_retry_that_finds_its_lease_expired_grants_it_to_who_is_next(
    *, waited: bool, also: tuple[Wanted, ...]
) -> None:
    """The retry recorded the expiry, and left whoever waited for it waiting for nobody."""
    registrar = Registrar()
    if waited:
        registrar.grant("dia", ttl_ns=SECOND)
    claim = registrar.claim("ann", wait=True, ttl_ns=20 * SECOND, also=also)
    registrar.ask(claim)
    registrar.advance(1)
    registrar.win(claim)
    following = registrar.join("bob")
    registrar.advance(20)

    assert expect(Granted, registrar.ask(claim)).ended

    assert registrar.holders() == ["bob"]
    registrar.win(following)


def test_a_retry_that_finds_its_lease_expired_leaves_its_lock_delay() -> None:
    """The retry recorded the expiry without the delay: the resource was open at once to everybody."""
    registrar = Registrar()
    claim = registrar.claim("ann", lock_delay_ns=5 * SECOND, ttl_ns=20 * SECOND)
    registrar.ask(claim)
    registrar.advance(20)

    assert expect(Granted, registrar.ask(claim)).ended

    assert registrar.deny("bob").holder == "registrar"


def test_who_comes_back_after_its_place_was_lost_lets_those_behind_it_go_ahead() -> None:
    """Its old place was noted as left, and the sharer that had stood behind it was not granted anything."""
    registrar = Registrar()
    registrar.grant("ann", mode=Mode.SHARED, ttl_ns=100 * SECOND)
    registrar.join("bob")
    registrar.advance(10)
    behind = registrar.join("cem", mode=Mode.SHARED)
    registrar.advance(20)

    registrar.join("bob")

    assert registrar.holders() == ["ann", "cem"]
    registrar.win(behind)


def test_an_upgrade_whose_search_finds_a_place_lost_lets_those_behind_it_go_ahead() -> None:
    """As when waiting: what the search for deadlocks found to be over was noted, and made nobody's turn."""
    registrar = Registrar()
    held = registrar.grant("ann", "a", mode=Mode.SHARED, ttl_ns=100 * SECOND)
    registrar.grant("bob", "a", mode=Mode.SHARED, ttl_ns=100 * SECOND)
    registrar.grant("dia", "b", mode=Mode.SHARED, ttl_ns=100 * SECOND)
    registrar.join("bob", "b")
    registrar.advance(10)
    behind = registrar.join("cem", "b", mode=Mode.SHARED)
    registrar.advance(20)

    expect(Waiting, registrar.ask(registrar.change(held, Mode.EXCLUSIVE, wait=True)))

    assert registrar.holders("b") == ["dia", "cem"]
    registrar.win(behind)


def test_a_waiter_is_woken_also_where_leases_have_budgets() -> None:
    """What an end means above and below was looked at once more, and with that the waking was forgotten."""
    registrar = Registrar()
    held = registrar.grant("ann")
    registrar.join("bob", wake="bell.1", budget=Budget(tool_calls=1))

    decided = registrar.decide(Release(lease_ids=(held.lease_id,), holder="ann", request_id="end"))

    assert isinstance(decided, Decision)
    assert "bell.1" in decided.wakes

"""Mistakes that were once in the law of those who wait, and must not come back.

Each test is the shortest sequence that shows one of them; docs/track-record.md tells how it was found. The
registrar of the kernel's tests checks every invariant after every step.
"""

import pytest

from leasehold.kernel.answers import Waiting
from leasehold.kernel.lease import Mode
from leasehold.kernel.records import Keys
from leasehold.kernel.refusals import Refusal, RefusalCode
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
    keys = Keys(leases={waits[first].lease_id})
    view.load(keys, registrar.found(keys))

    refusal = expect(Refusal, registrar.decide(registrar.claim("ann", "c", wait=True), view))

    assert refusal.code is RefusalCode.DEADLOCK
    assert refusal.cycle == ("ann", "c", "bob", "a", "ann")

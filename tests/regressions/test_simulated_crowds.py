"""Mistakes about those who wait that the simulator found, and that must not come back.

Each test is the shortest sequence that shows one of them; docs/track-record.md lists them. The registrar
of the kernel's tests checks every invariant after every step.
"""

import pytest

from leasehold.kernel.lease.answers import Ended, Granted
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import Wanted
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.model import Lease, Mode
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from tests.kernel.registrar import SECOND, Registrar, expect

LONG = 100 * SECOND
BELL = "b" * 16 + ".1"


@pytest.mark.parametrize("mode", [Mode.SHARED, Mode.EXCLUSIVE])
def test_a_retry_finds_the_lease_it_was_granted_whatever_its_mode_is_by_now(mode: Mode) -> None:
    """A claim that is its own request was told that its lease exists, as if it were somebody else's."""
    registrar = Registrar()
    other = Mode.EXCLUSIVE if mode is Mode.SHARED else Mode.SHARED
    claim = registrar.claim("ann", lease_id="lease-a", request_id="lease-a", mode=mode)
    lease = expect(Granted, registrar.ask(claim)).lease
    expect(Granted, registrar.ask(registrar.change(lease, other)))

    again = expect(Granted, registrar.ask(claim))

    assert again.repeated
    assert again.lease == registrar.lease("lease-a")


def test_a_grant_that_nobody_confirmed_leaves_no_lock_delay() -> None:
    """A dead waiter cost the next one its lock-delay besides the claim window, though it had never acted."""
    registrar = Registrar()
    held = registrar.grant("ann")
    registrar.join("bob", lock_delay_ns=50 * SECOND)
    following = registrar.join("cem")
    registrar.end(held)
    registrar.advance(2)

    registrar.win(following)

    assert registrar.holders() == ["cem"]


def test_who_comes_back_for_a_part_of_a_tree_leaves_the_rest_of_it_closed() -> None:
    """The delay on the whole directory ended: others came in where the lost holder may still be at work."""
    registrar = Registrar()
    registrar.revoke(registrar.grant("ann", "/src", lock_delay_ns=5 * SECOND))

    part = registrar.grant("ann", "/src/a")

    assert registrar.deny("bob", "/src/b").holder == "registrar"
    registrar.grant("ann", "/src")
    registrar.end(part)
    assert registrar.deny("bob", "/src/b").holder == "ann"


def test_an_upgrade_that_would_make_others_wait_for_ever_is_refused() -> None:
    """A sharer that was alone became exclusive at once, and waited for somebody who now waited for it."""
    registrar = Registrar()
    registrar.grant("dia", "gate")
    held = registrar.grant("ann", mode=Mode.SHARED, ttl_ns=LONG)
    registrar.grant("bob", "shelf", ttl_ns=LONG)
    registrar.join("bob", mode=Mode.SHARED, also=(Wanted(resource="gate"),))
    registrar.join("ann", "shelf")

    refusal = expect(Refusal, registrar.ask(registrar.change(held, Mode.EXCLUSIVE)))

    assert refusal.code is RefusalCode.DEADLOCK
    assert refusal.cycle == ("ann", "shelf", "bob", "door", "ann")


def test_a_delay_that_begins_at_a_look_counts_in_that_very_look() -> None:
    """What was found expired below a directory left its delay, and who waited for the directory got it."""
    registrar = Registrar()
    registrar.grant("ann", "/src/a", ttl_ns=10 * SECOND, lock_delay_ns=50 * SECOND)
    other = registrar.grant("dia", "/src/b", ttl_ns=LONG)
    claim = registrar.join("bob", "/src")
    registrar.advance(10)

    registrar.end(other)

    assert registrar.holders("/src/a") == ["registrar"]
    assert registrar.wait(claim).places[0].holder == "registrar"


def test_a_lease_that_was_handed_over_survives_a_reboot() -> None:
    """It was taken to be held on the same machine, and ended, whoever had it now and wherever that was."""
    registrar = Registrar()
    lease = registrar.grant("ann", bound_to_boot=True, ttl_ns=LONG)
    expect(Granted, registrar.ask(registrar.hand_over(lease, "bob")))
    registrar.reboot()

    assert registrar.deny("cem").holder == "bob"


def test_a_child_that_is_derived_wakes_those_whose_turn_that_made_it() -> None:
    """What deriving found to be free went to the waiter, and nobody told it."""
    registrar = Registrar()
    parent = registrar.grant("ann", "project", budget=Budget(tokens=10), ttl_ns=LONG)
    registrar.grant("dia")
    registrar.join("bob", mode=Mode.SHARED, wake=BELL)
    registrar.advance(10)

    child = registrar.child_claim(parent, resource="door", mode=Mode.SHARED, budget=Budget(tokens=1))
    decision = expect(Decision, registrar.decide(child))

    assert decision.wakes == [BELL]


def test_a_lock_delay_begins_once_where_leases_have_budgets() -> None:
    """It was begun again when the ends in a decision were settled, and the command failed as a defect."""
    registrar = Registrar()
    registrar.grant("dia", "project", budget=Budget(tokens=10))
    lease = registrar.grant("ann", lock_delay_ns=5 * SECOND, budget=Budget(tokens=10))
    registrar.join("bob")

    expect(Ended, registrar.revoke(lease))

    assert registrar.holders() == ["registrar"]


def test_a_child_with_nearly_all_of_its_parents_budget_can_be_handed_over() -> None:
    """Its share was set aside again before the first came back, and the command failed as a defect."""
    registrar = Registrar()
    parent, child = _family(registrar)

    expect(Granted, registrar.ask(registrar.hand_over(child, "cem")))

    assert registrar.remaining(parent) == Budget(tokens=1)


def test_a_child_with_nearly_all_of_its_parents_budget_can_be_adopted_where_others_wait() -> None:
    """As when handing over."""
    registrar = Registrar()
    parent, _ = _family(registrar)
    registrar.join("bob")

    registrar.grant("ann", adopt=True)

    assert registrar.remaining(parent) == Budget(tokens=1)


def _family(registrar: Registrar) -> tuple[Lease, Lease]:
    parent = registrar.grant("ann", "project", budget=Budget(tokens=10), ttl_ns=LONG)
    return parent, registrar.derive(parent, resource="door", budget=Budget(tokens=9))


def test_a_newcomer_waits_for_everybody_ahead_of_it_in_a_long_queue() -> None:
    """It was met as the last of the first page that was read, and those between were not seen."""
    registrar = Registrar()
    registrar.grant("eve", ttl_ns=LONG)
    registrar.grant("bob", "shelf", ttl_ns=LONG)
    for name in ("cem", "dia", "fay", "gus", "ann"):
        registrar.join(name)
    registrar.join("ann", "shelf")

    assert registrar.deny("bob", wait=True).cycle == ("bob", "door", "ann", "shelf", "bob")


def test_a_lease_with_the_id_of_a_pruned_one_leaves_a_lock_delay_of_its_own() -> None:
    """What kept the resource closed after the first had the same id: the second could not end."""
    registrar = Registrar()
    registrar.revoke(registrar.grant("ann", lease_id="again", lock_delay_ns=5 * SECOND))
    registrar.advance(6)
    del registrar.state.of("lease")["again"]
    registrar.replayable = False

    registrar.revoke(registrar.grant("bob", lease_id="again", lock_delay_ns=5 * SECOND))

    assert registrar.deny("cem").holder == "registrar"

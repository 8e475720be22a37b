"""What stays closed after a holder was lost because the registrar was down. Lock-delay: `rules/test_contend`.

In all of these, the registrar is down from the fifth second to the twentieth, and then gives those back first
whose leases lapsed meanwhile, until the fiftieth.
"""

from typing import Any

import pytest

from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.lock_delay import (
    delay_after,
    delay_id,
    ended_id,
    is_delayed_for,
    may_leave_delay,
)
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.ticket import Ticket
from leasehold.kernel.ledger.authority import Outage
from leasehold.kernel.ledger.refusals import RefusalCode
from leasehold.kernel.ledger.tick import Tick
from tests.kernel.records import TOKEN, a_lease, an_authority, at
from tests.kernel.registrar import SECOND, Registrar, expect

DOWN, UP, SETTLED = 5, 20, 50
IN_BETWEEN = 10 * SECOND


def outage(registrar: Registrar) -> None:
    """Be down from the fifth second to the twentieth."""
    registrar.advance(DOWN)
    since = registrar.clock
    registrar.advance(UP - DOWN)
    registrar.resume(since, (SETTLED - UP) * SECOND)


def after_outage(ttl_ns: int = IN_BETWEEN, **fields: Any) -> tuple[Registrar, Lease]:
    """A lease of ann's from before, and nobody has looked at it since."""
    registrar = Registrar()
    lease = registrar.grant("ann", **({"ttl_ns": ttl_ns} | fields))
    outage(registrar)
    return registrar, lease


@pytest.mark.parametrize("swept", [False, True], ids=["met by a claim", "swept"])
def test_newcomers_get_nothing_that_lapsed_meanwhile_until_the_outage_has_settled(*, swept: bool) -> None:
    registrar, lease = after_outage()
    if swept:
        assert registrar.sweep(lease) == (registrar.lease(lease.lease_id),)

    for _ in range(SETTLED - UP):
        refusal = registrar.deny("bob")
        left = (SETTLED * SECOND + 1_000 * SECOND) - registrar.clock
        assert (refusal.code, refusal.holder, refusal.expires_in_ns) == (RefusalCode.HELD, "registrar", left)
        registrar.advance(1)

    assert registrar.grant("bob").token > lease.token


@pytest.mark.parametrize("swept", [False, True], ids=["met by its claim", "swept"])
def test_the_old_holder_has_it_back_at_once_with_a_higher_token(*, swept: bool) -> None:
    registrar, lease = after_outage()
    if swept:
        registrar.sweep(lease)

    back = registrar.grant("ann")

    assert back.token > lease.token
    assert registrar.holders() == ["ann"], "nothing else keeps it closed any more"
    assert registrar.lease(lease.lease_id).state is LeaseState.EXPIRED
    registrar.end(back)
    assert registrar.grant("bob").holder == "bob"


def test_the_old_holder_is_told_that_its_lease_has_lapsed() -> None:
    registrar = Registrar()
    claim = registrar.claim("ann", ttl_ns=IN_BETWEEN)
    lease = expect(Granted, registrar.ask(claim)).lease
    outage(registrar)

    assert registrar.refuse_renewal(lease) == RefusalCode.LEASE_EXPIRED
    assert expect(Granted, registrar.ask(claim)).ended
    assert registrar.deny("bob").holder == "registrar"


@pytest.mark.parametrize(
    ("ttl_ns", "kept"),
    [
        (3 * SECOND, False),
        (DOWN * SECOND, False),
        (DOWN * SECOND + 1, True),
        (UP * SECOND, True),
    ],
    ids=["before", "at the last moment before", "at the first moment of it", "at the last moment of it"],
)
@pytest.mark.parametrize("resource", ["door", "/d"])
def test_only_what_lapsed_in_the_outage_is_kept(resource: str, ttl_ns: int, kept: bool) -> None:
    registrar, _ = after_outage(ttl_ns, resource=resource)

    if kept:
        assert registrar.deny("bob", resource).expires_in_ns == (SETTLED - UP) * SECOND
    else:
        assert registrar.grant("bob", resource).holder == "bob"


def test_what_lapses_once_the_registrar_is_there_again_is_not_kept() -> None:
    registrar, lease = after_outage(UP * SECOND + 1)
    assert registrar.deny("bob").holder == "ann"
    registrar.clock += 1

    assert registrar.sweep(lease)
    assert registrar.grant("bob").holder == "bob"


def test_who_could_renew_in_time_has_lost_nothing_and_holds_nothing_open_later() -> None:
    registrar, lease = after_outage((UP + 1) * SECOND)

    extended = registrar.extend(lease).lease
    registrar.advance(UP + 1)

    assert extended.token == lease.token
    assert registrar.grant("bob").holder == "bob"


def test_whoever_waits_is_not_granted_it_before_the_outage_has_settled() -> None:
    registrar = Registrar()
    registrar.grant("ann", ttl_ns=IN_BETWEEN)
    registrar.advance(4)
    claim = registrar.join("bob")
    registrar.advance(1)
    since = registrar.clock
    registrar.advance(15)
    registrar.resume(since, 10 * SECOND)

    assert registrar.wait(claim).places[0].expires_in_ns == 10 * SECOND
    assert registrar.holders() == ["registrar"]
    registrar.advance(9)
    registrar.wait(claim)
    registrar.advance(1)
    assert registrar.win(claim).lease.holder == "bob"


def test_what_was_shared_stays_open_to_who_shares_it() -> None:
    registrar, _ = after_outage(mode=Mode.SHARED)

    assert registrar.deny("bob").holder == "registrar"
    assert registrar.grant("bob", mode=Mode.SHARED).holder == "bob"
    assert registrar.holders() == ["registrar", "bob"]


def test_who_shares_what_is_kept_for_another_waits_behind_those_who_wait() -> None:
    registrar, _ = after_outage(mode=Mode.SHARED)
    registrar.join("bob")

    assert registrar.deny("cleo", mode=Mode.SHARED).holder == "bob"
    assert registrar.grant("ann", mode=Mode.SHARED).holder == "ann"


def test_who_has_only_a_lock_delay_of_its_own_waits_behind_those_who_wait() -> None:
    registrar = Registrar()
    outage(registrar)
    registrar.grant("ann", ttl_ns=5 * SECOND, lock_delay_ns=60 * SECOND)
    registrar.join("bob")
    registrar.advance(6)

    assert registrar.deny("ann").holder == "bob"


def test_a_directory_is_kept_with_all_that_is_in_it() -> None:
    registrar, _ = after_outage(resource="/d")

    assert registrar.deny("bob", "/d/x").holder == "registrar"
    assert registrar.deny("bob", "/").holder == "registrar"
    assert registrar.grant("ann", "/d/x").holder == "ann"
    assert registrar.deny("bob", "/d/y").holder == "registrar"


@pytest.mark.parametrize(("lock_delay", "left"), [(5, 30), (39, 30), (41, 31)])
def test_of_a_lock_delay_and_the_settling_the_longer_one_counts(lock_delay: int, left: int) -> None:
    registrar, _ = after_outage(lock_delay_ns=lock_delay * SECOND)

    assert registrar.deny("bob").expires_in_ns == left * SECOND


def test_what_is_released_or_revoked_while_the_outage_settles_is_free_at_once() -> None:
    registrar, _ = after_outage()
    registrar.end(registrar.grant("ann", "window"))
    registrar.revoke(registrar.grant("ann", "gate"))

    assert registrar.grant("bob", "window").holder == "bob"
    assert registrar.grant("bob", "gate").holder == "bob"


def test_what_keeps_it_closed_leaves_nothing_that_does() -> None:
    registrar, lease = after_outage()
    registrar.sweep(lease)
    delay = registrar.lease(delay_id(lease))
    assert ended_id(delay) == lease.lease_id
    registrar.advance(SETTLED - UP)

    registrar.sweep(delay)

    assert registrar.history()[-1] == "lease.expired"
    assert registrar.holders() == []


def test_a_lapsed_lease_with_a_budget_is_kept_as_any_other() -> None:
    registrar, lease = after_outage(budget=Budget(tokens=5))
    registrar.sweep(lease)

    assert registrar.deny("bob").expires_in_ns == (SETTLED - UP) * SECOND
    assert registrar.history().count("lease.issued") == 2


def test_a_claim_that_was_won_and_never_confirmed_is_not_kept() -> None:
    registrar = Registrar()
    first = registrar.grant("ann")
    registrar.advance(DOWN - 1)
    claim = registrar.join("bob")
    registrar.end(first)
    assert registrar.lease(claim.lease_id).is_unconfirmed
    registrar.advance(1)
    since = registrar.clock
    registrar.advance(UP - DOWN)
    registrar.resume(since, 30 * SECOND)

    assert registrar.grant("cem").holder == "cem"


def test_a_new_era_has_no_outage_of_the_old_one() -> None:
    registrar, lease = after_outage(bound_to_boot=False)
    registrar.reboot()
    registrar.now()

    assert registrar.authority.outage is None
    assert registrar.grant("bob").holder == "bob"
    assert registrar.lease(lease.lease_id).state is LeaseState.EXPIRED


def test_a_new_epoch_of_the_same_era_still_has_it() -> None:
    registrar, _ = after_outage()
    registrar.identity = "8:78"
    registrar.now()

    assert registrar.authority.outage is not None
    assert registrar.deny("bob").holder == "registrar"


def test_without_an_outage_what_has_lapsed_is_free_at_once() -> None:
    registrar = Registrar()
    registrar.grant("ann", ttl_ns=IN_BETWEEN)
    registrar.advance(UP)

    assert registrar.authority.outage is None
    assert registrar.grant("bob").holder == "bob"
    assert registrar.history()[-2:] == ["lease.expired", "lease.issued"]


def test_an_outage_that_was_never_to_settle_keeps_nothing() -> None:
    registrar = Registrar()
    registrar.grant("ann", ttl_ns=IN_BETWEEN)
    since = registrar.clock
    registrar.advance(UP)
    registrar.resume(since, 0)

    assert registrar.grant("bob").holder == "bob"


LOST = a_lease(state=LeaseState.EXPIRED, expires_tick=Tick(value=100), ended_by="registrar")
OUTAGE = Outage(since=90, until=110, settles_until=200)


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({}, 80),
        ({"state": LeaseState.REVOKED, "end_reason": "stuck"}, None),
        ({"state": LeaseState.REVOKED, "end_reason": "stuck", "lock_delay_ns": 7}, 7),
        ({"state": LeaseState.REVOKED, "end_reason": "reboot", "lock_delay_ns": 7}, None),
        ({"state": LeaseState.REVOKED, "end_reason": "reboot", "ended_by": "olga", "lock_delay_ns": 7}, 7),
        ({"expires_tick": None}, None),
        ({"expires_tick": None, "lock_delay_ns": 7}, 7),
        ({"expires_tick": Tick(value=100, era=2)}, None),
        ({"delayed_for": "bob", "holder": "registrar"}, None),
        ({"ticket": Ticket(number=TOKEN, since=Tick(value=1), since_ns=1)}, None),
        ({"ticket": Ticket(number=TOKEN, since=Tick(value=1), since_ns=1, upgrade=True)}, 80),
    ],
    ids=[
        "lapsed",
        "revoked",
        "revoked with a delay",
        "rebooted",
        "revoked for what an operator calls a reboot",
        "of unknown time",
        "of unknown time with a delay",
        "of another era",
        "a delay itself",
        "unconfirmed",
        "waiting to be alone",
    ],
)
def test_how_long_a_resource_stays_closed_after_a_lease_that_is(
    changes: dict[str, Any], kept: int | None
) -> None:
    ended = a_lease(**({"state": LeaseState.EXPIRED, "ended_by": "registrar"} | changes))

    delay = delay_after(ended, at(120), TOKEN + 1, an_authority(outage=OUTAGE))

    assert (None if delay is None else delay.ttl_ns) == kept


def test_what_keeps_it_closed_is_a_lease_of_the_registrars_that_says_for_whom() -> None:
    delay = delay_after(LOST, at(120), TOKEN + 1, an_authority(outage=OUTAGE))

    assert delay is not None
    assert (delay.lease_id, delay.holder, delay.delayed_for) == (delay_id(LOST), "registrar", "ann")
    assert (delay.resource, delay.mode, delay.token, delay.bound_to_boot) == (
        LOST.resource,
        LOST.mode,
        TOKEN + 1,
        False,
    )
    closed = a_lease(holder="registrar", delayed_for="ann")
    assert is_delayed_for(closed, "ann")
    assert not is_delayed_for(closed, "bob")
    assert not is_delayed_for(LOST, "ann")


def test_only_a_lock_delay_or_an_outage_can_leave_anything_closed() -> None:
    assert not may_leave_delay(LOST, an_authority())
    assert may_leave_delay(LOST, an_authority(outage=OUTAGE))
    assert may_leave_delay(a_lease(lock_delay_ns=1), an_authority())


def test_the_delay_of_a_lease_is_told_from_that_of_an_earlier_one_of_the_same_id() -> None:
    assert delay_id(a_lease(token=7)) != delay_id(a_lease(token=8))

"""A child is dead the moment any ancestor is, and what it did not use comes back."""

from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.answers import Ended, Granted, Renewal, Spent
from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.descendants import DESCENDANTS_PER_COMMAND
from leasehold.kernel.lease.lineage import standing
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.records import Missing
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Tick
from tests.kernel.records import a_lease
from tests.kernel.registrar import SECOND, TTL, Registrar, expect

EVERYTHING = Scope(unlimited=True)


def some(tokens: int) -> Budget:
    return Budget(tokens=tokens)


def root(registrar: Registrar, **fields: Any) -> Lease:
    return registrar.grant(**({"scope": EVERYTHING, "budget": some(1_000)} | fields))


def line(registrar: Registrar, length: int = 3, **fields: Any) -> list[Lease]:
    """A lease, its child bob, the child's child, and so on, each with less than the one before."""
    leases = [root(registrar, **fields)]
    for number in range(1, length):
        leases.append(registrar.derive(leases[-1], f"holder-{number}", budget=some(100 - 10 * number)))
    return leases


def left_ns(registrar: Registrar, lease: Lease) -> int:
    """How long a lease has left for whoever only looks."""
    now, view = registrar.now(), registrar.view()
    while True:
        try:
            return standing(registrar.lease(lease.lease_id), view, now)[1]
        except Missing as missing:
            view.ledger.load(missing.keys, registrar.found(missing.keys))


def states(registrar: Registrar, *leases: Lease) -> list[LeaseState]:
    return [registrar.lease(lease.lease_id).state for lease in leases]


@pytest.mark.parametrize("how", ["release", "revoke", "adopt"])
def test_whatever_ends_a_lease_ends_everything_below_it_in_the_same_commit(how: str) -> None:
    registrar = Registrar()
    top, middle, bottom = line(registrar)
    match how:
        case "release":
            registrar.end(top)
        case "revoke":
            registrar.revoke(top)
        case _:
            registrar.grant(adopt=True)

    assert registrar.lease(top.lease_id).is_terminal
    assert states(registrar, middle, bottom) == ["revoked", "revoked"]
    how_top_ended = registrar.lease(top.lease_id).state
    middle_now, bottom_now = registrar.lease(middle.lease_id), registrar.lease(bottom.lease_id)
    assert middle_now.end_reason == f"parent {top.lease_id} was {how_top_ended}"
    assert bottom_now.end_reason == f"parent {middle.lease_id} was revoked"
    assert middle_now.ended_by == bottom_now.ended_by == "registrar"


def test_a_lease_that_ends_leaves_those_above_and_beside_it_standing() -> None:
    registrar = Registrar()
    top, middle, bottom = line(registrar)
    beside = registrar.derive(top, budget=some(1))

    registrar.end(middle)

    assert states(registrar, top, middle, bottom, beside) == ["active", "released", "revoked", "active"]


def unswept(registrar: Registrar) -> tuple[Lease, Lease]:
    """A child whose parent has ended, and whose own row still says that it stands."""
    top, child = line(registrar, 2)
    ended = replace(
        registrar.lease(top.lease_id),
        state=LeaseState.REVOKED,
        terminated_at_ns=1,
        ended_by="olga",
        end_reason="maintenance",
        delegation=replace(registrar.account(top), orphaned=True),
    )
    registrar.put(ended)
    return ended, child


def test_a_dead_child_that_nobody_has_recorded_is_dead_for_every_command() -> None:
    registrar = Registrar()
    top, child = unswept(registrar)
    reason = f"parent {top.lease_id} was revoked"

    (renewal,) = registrar.renew(child)
    assert isinstance(renewal, Refusal)
    assert (renewal.code, renewal.state, renewal.facts["end_reason"]) == ("LEASE_TERMINAL", "revoked", reason)
    assert registrar.refuse_spending(child, tokens=1).code == RefusalCode.LEASE_TERMINAL
    assert registrar.refuse_child(child, budget=some(1)).code == RefusalCode.LEASE_TERMINAL
    assert left_ns(registrar, child) == 0


@pytest.mark.parametrize("how", ["release", "revoke", "sweep"])
def test_whoever_ends_a_dead_child_finds_it_ended_already(how: str) -> None:
    registrar = Registrar()
    _, child = unswept(registrar)
    match how:
        case "release":
            answer = registrar.end(child)
        case "revoke":
            answer = expect(Ended, registrar.revoke(child))
        case _:
            answer = Ended(lease=registrar.sweep(child)[0], already=True)

    assert answer.already
    assert answer.lease == registrar.lease(child.lease_id)
    assert answer.lease.state == "revoked"


def test_the_resource_of_a_dead_child_is_free() -> None:
    registrar = Registrar()
    _, child = unswept(registrar)
    registrar.quotas = Quotas(leases_per_tenant=1)

    registrar.grant("cem", child.resource)

    assert registrar.lease(child.lease_id).state == "revoked"
    assert registrar.history()[-2:] == ["lease.revoked", "lease.issued"]


def test_the_resource_of_a_living_child_is_not() -> None:
    registrar = Registrar()
    _, child = line(registrar, 2)

    assert registrar.deny("cem", child.resource).code == RefusalCode.HELD
    assert left_ns(registrar, child) == TTL


def test_a_child_whose_parent_was_pruned_is_dead() -> None:
    registrar = Registrar()
    top, child = unswept(registrar)
    del registrar.state.of("lease")[top.lease_id]

    assert registrar.refuse_renewal(child) == RefusalCode.LEASE_TERMINAL
    assert registrar.end(child).lease.end_reason == f"parent {top.lease_id} is gone"


def test_a_plain_lease_needs_no_line() -> None:
    registrar = Registrar()
    lease = registrar.grant()

    assert left_ns(registrar, lease) == TTL
    assert left_ns(registrar, root(registrar, resource="window")) == TTL
    registrar.end(lease)
    assert left_ns(registrar, lease) == 0


def test_more_descendants_than_fit_into_a_commit_are_dead_at_once_and_ended_later() -> None:
    registrar = Registrar()
    top = root(registrar)
    children = [registrar.derive(top, budget=some(1)) for _ in range(DESCENDANTS_PER_COMMAND + 3)]

    ended = registrar.end(top)

    assert ended.lease == registrar.lease(top.lease_id)
    assert registrar.account(top).orphaned
    standing = [child for child in children if not registrar.lease(child.lease_id).is_terminal]
    assert len(standing) == 3
    assert [left_ns(registrar, child) for child in standing] == [0, 0, 0]
    assert len(registrar.sweep(*standing)) == 3
    assert set(states(registrar, *children)) == {LeaseState.REVOKED}


def test_as_many_descendants_as_fit_into_a_commit_leave_a_page_that_may_not_be_all() -> None:
    registrar = Registrar()
    top = root(registrar)
    for _ in range(DESCENDANTS_PER_COMMAND - 1):
        registrar.derive(top, budget=some(1))

    registrar.end(top)

    assert not registrar.account(top).orphaned


def test_descendants_of_all_ages_share_the_room_of_a_commit() -> None:
    registrar = Registrar()
    top = root(registrar)
    children = [registrar.derive(top, budget=some(2)) for _ in range(60)]
    grandchildren = [registrar.derive(child, budget=some(1)) for child in children]

    registrar.end(top)

    fallen = [state for state in states(registrar, *children, *grandchildren) if state != "active"]
    assert len(fallen) == DESCENDANTS_PER_COMMAND
    assert not registrar.account(top).orphaned
    for child, grandchild in zip(children, grandchildren, strict=True):
        assert registrar.account(child).orphaned == (registrar.lease(grandchild.lease_id).state == "active")


@pytest.mark.parametrize("how", ["release", "revoke", "expire", "fall"])
def test_what_a_child_did_not_use_comes_back_however_it_ended(how: str) -> None:
    registrar = Registrar()
    top = root(registrar, ttl_ns=10 * TTL)
    middle = registrar.derive(top, budget=some(50))
    child = registrar.derive(middle, budget=some(20), ttl_ns=TTL)
    registrar.spend(child, tokens=7)
    match how:
        case "release":
            registrar.end(child)
        case "revoke":
            registrar.revoke(child)
        case "expire":
            registrar.advance(10)
            registrar.sweep(child)
        case _:
            registrar.end(middle)

    above = top if how == "fall" else middle
    account = registrar.account(above)
    assert account.spent == Amounts(tokens=7)
    assert account.delegated == Amounts()
    assert account.remaining == some((1_000 if how == "fall" else 50) - 7)


def test_what_grandchildren_have_stays_set_aside_until_they_end() -> None:
    registrar = Registrar()
    top = root(registrar, ttl_ns=10 * TTL)
    middle = registrar.derive(top, budget=some(200), ttl_ns=10 * TTL)
    children = [registrar.derive(middle, budget=some(1)) for _ in range(DESCENDANTS_PER_COMMAND + 10)]
    registrar.spend(children[-1], tokens=1)

    registrar.end(middle)

    assert registrar.account(top).delegated == Amounts(tokens=10)
    assert registrar.remaining(top) == some(990)
    registrar.sweep(*children)
    assert registrar.account(top).delegated == Amounts()
    assert registrar.account(top).spent == Amounts(tokens=1)


def test_a_child_without_a_limit_leaves_what_its_children_have_to_its_parent() -> None:
    registrar = Registrar()
    top = root(registrar, budget=Budget())
    middle = registrar.derive(top)
    registrar.derive(middle, budget=some(5))
    registrar.spend(middle, tokens=2)

    registrar.end(middle)

    account = registrar.account(top)
    assert (account.spent, account.delegated) == (Amounts(tokens=2), Amounts())


def test_parent_and_child_can_be_released_together_in_any_order() -> None:
    for first in (0, 1):
        registrar = Registrar()
        top = root(registrar)
        middle = registrar.derive(top, budget=some(9))
        child = registrar.derive(middle, budget=some(5))
        registrar.spend(child, tokens=2)
        both = (middle, child) if first == 0 else (child, middle)

        outcomes = registrar.release(*both)

        assert [expect(Ended, one).already for one in outcomes] == [False, False]
        assert [expect(Ended, one).lease for one in outcomes] == [
            registrar.lease(lease.lease_id) for lease in both
        ]
        assert states(registrar, middle, child) == ["released", "released"]
        assert registrar.account(top).delegated == Amounts()
        assert registrar.account(top).spent == Amounts(tokens=2)


def test_a_child_whose_own_time_was_over_is_recorded_as_expired_when_its_parent_ends() -> None:
    registrar = Registrar()
    top = root(registrar, ttl_ns=10 * TTL)
    child = registrar.derive(top, budget=some(5), ttl_ns=TTL)
    registrar.advance(10)

    registrar.end(top)

    assert states(registrar, child) == ["expired"]


def test_a_renewal_for_the_own_ttl_goes_as_far_as_the_parent_does() -> None:
    registrar = Registrar()
    top = root(registrar)
    child = registrar.derive(top, budget=some(5))
    registrar.advance(4)
    assert registrar.extend(child).expires_in_ns == 6 * SECOND

    registrar.extend(top)
    assert registrar.extend(child).expires_in_ns == TTL

    registrar.advance(4)
    registrar.extend(top, ttl_ns=2 * TTL)
    assert registrar.extend(child).expires_in_ns == TTL


def test_a_child_that_got_less_than_its_ttl_gets_all_of_it_again_when_its_parent_has_more() -> None:
    registrar = Registrar()
    top = root(registrar)
    child = registrar.derive(top, budget=some(5))
    registrar.advance(1)
    registrar.extend(top)
    registrar.advance(8)
    assert registrar.extend(child).expires_in_ns == 2 * SECOND
    registrar.extend(top)

    assert registrar.extend(child).expires_in_ns == TTL


def test_a_renewal_for_longer_than_the_parent_is_refused() -> None:
    registrar = Registrar()
    top = root(registrar)
    child = registrar.derive(top, budget=some(5), ttl_ns=SECOND)

    (refusal,) = registrar.renew(child, ttl_ns=TTL + 1)
    assert expect(Refusal, refusal).code == RefusalCode.OUTLIVES_PARENT
    assert expect(Refusal, refusal).expires_in_ns == TTL, "what the parent has left"
    assert registrar.extend(child, ttl_ns=TTL).expires_in_ns == TTL


def test_a_child_that_is_renewed_with_its_parent_gets_the_parents_new_time() -> None:
    registrar = Registrar()
    top = root(registrar)
    child = registrar.derive(top, budget=some(5))
    registrar.advance(4)

    outcomes = registrar.renew(child, top)

    assert [expect(Renewal, one).expires_in_ns for one in outcomes] == [TTL, TTL]


def test_a_renewal_with_an_unknown_lease_in_it_still_renews_the_others() -> None:
    registrar = Registrar()
    top = root(registrar)
    child = registrar.derive(top, budget=some(5))
    registrar.advance(1)

    stranger, renewed = registrar.renew(a_lease(lease_id="nobodys"), child)

    assert expect(Refusal, stranger).code == RefusalCode.LEASE_NOT_FOUND
    assert expect(Renewal, renewed).expires_in_ns == 9 * SECOND


def test_a_parent_that_cannot_survive_a_reboot_takes_its_children_with_it() -> None:
    registrar = Registrar()
    top = root(registrar)
    child = registrar.derive(top, "bob", budget=some(5), bound_to_boot=False)
    registrar.reboot()

    assert left_ns(registrar, child) == 0
    assert registrar.refuse_renewal(child) == RefusalCode.LEASE_TERMINAL
    registrar.grant("cem", child.resource)

    assert registrar.lease(child.lease_id).end_reason == f"parent {top.lease_id} was revoked"
    assert registrar.remaining(top) == some(1_000)


def test_parents_and_children_that_survive_a_reboot_go_on_and_none_outlives_the_other() -> None:
    registrar = Registrar()
    top = root(registrar, bound_to_boot=False)
    child = registrar.derive(top, "bob", budget=some(5), bound_to_boot=False)
    registrar.advance(3)
    registrar.spend(child, tokens=1)
    registrar.reboot()

    assert registrar.extend(child).expires_in_ns == 7 * SECOND
    registrar.extend(top)
    assert registrar.extend(child).expires_in_ns == TTL
    assert registrar.spend(child, tokens=1).remaining == some(3)


def test_a_child_that_cannot_survive_a_reboot_gives_its_parent_back_what_it_had() -> None:
    registrar = Registrar()
    top = root(registrar, bound_to_boot=False)
    child = registrar.derive(top, "bob", budget=some(5))
    registrar.reboot()

    registrar.sweep(child)

    assert registrar.lease(child.lease_id).end_reason == "reboot"
    assert registrar.remaining(top) == some(1_000)


def unknown_above(registrar: Registrar) -> Lease:
    """A child whose own time is known, and whose parent's is not."""
    top, child = line(registrar, 2)
    registrar.put(replace(registrar.lease(top.lease_id), expires_tick=None))
    return child


def test_a_child_under_a_parent_of_unknown_time_can_neither_be_used_nor_taken_over() -> None:
    registrar = Registrar()
    child = unknown_above(registrar)

    assert registrar.refuse_renewal(child) == RefusalCode.UNKNOWN_TIME
    assert registrar.refuse_spending(child, tokens=1).code == RefusalCode.UNKNOWN_TIME
    assert registrar.refuse_child(child, budget=some(1)).code == RefusalCode.UNKNOWN_TIME
    assert registrar.deny(child.holder, child.resource, adopt=True).code == RefusalCode.UNKNOWN_TIME
    assert registrar.deny("cem", child.resource).code == RefusalCode.HELD
    assert left_ns(registrar, child) == 0


def test_a_parent_on_another_clock_is_of_unknown_time() -> None:
    registrar = Registrar()
    top, child = line(registrar, 2)
    registrar.put(
        replace(registrar.lease(top.lease_id), issued_tick=None, expires_tick=Tick(value=9, rate=7))
    )

    assert registrar.refuse_renewal(child) == RefusalCode.UNKNOWN_TIME


def test_adopting_goes_on_with_the_scope_and_what_is_left_of_the_budget() -> None:
    registrar = Registrar()
    scope = Scope(tools=("read",))
    old = root(registrar, scope=scope)
    registrar.spend(old, tokens=400)

    new = registrar.grant(adopt=True)

    assert new.delegation == Delegation(scope=scope, budget=some(600))


def test_adopting_a_first_lease_gets_back_what_all_below_it_did_not_use() -> None:
    registrar = Registrar()
    old = root(registrar)
    registrar.spend(old, tokens=100)
    part = registrar.derive(old, "bob", resource="part", scope=EVERYTHING, budget=some(500))
    registrar.spend(part, tokens=30)
    below = registrar.derive(part, "cem", resource="below", budget=some(200))
    registrar.spend(below, tokens=4)
    other = registrar.derive(old, "dan", resource="other", budget=some(50))

    new = registrar.grant(adopt=True)

    assert new.delegation == Delegation(
        scope=EVERYTHING, budget=some(1_000 - 100), spent=Amounts(tokens=30 + 4)
    )
    assert states(registrar, old, part, below, other) == ["released", "revoked", "revoked", "revoked"]


def test_adopting_with_a_scope_or_a_budget_of_its_own_begins_anew() -> None:
    registrar = Registrar()
    root(registrar)

    assert registrar.grant(adopt=True, budget=some(3)).delegation == Delegation(budget=some(3))


def test_adopting_a_plain_lease_with_a_scope_gives_it_one() -> None:
    registrar = Registrar()
    registrar.grant()

    assert registrar.grant(adopt=True, scope=EVERYTHING).delegation == Delegation(scope=EVERYTHING)


def test_an_adopted_child_stays_its_parents_child() -> None:
    registrar = Registrar()
    top = root(registrar)
    old = registrar.derive(top, "bob", resource="part", scope=EVERYTHING, budget=some(100))
    below = registrar.derive(old, "cem", budget=some(30))
    registrar.spend(old, tokens=20)

    granted = expect(Granted, registrar.ask(registrar.claim("bob", "part", adopt=True, ttl_ns=9 * TTL)))

    new = granted.lease
    assert granted.expires_in_ns == new.ttl_ns == TTL
    assert new.delegation == Delegation(
        scope=EVERYTHING, budget=some(50), ancestors=(top.lease_id,), ttl_ns=9 * TTL
    )
    assert states(registrar, old, below) == ["released", "revoked"]
    account = registrar.account(top)
    assert (account.spent, account.delegated) == (Amounts(tokens=20), Amounts(tokens=50))
    assert account.remaining == some(930)
    registrar.extend(top, ttl_ns=20 * TTL)
    assert registrar.extend(new).expires_in_ns == 9 * TTL


def test_an_adopted_child_cannot_ask_for_another_scope_or_budget() -> None:
    registrar = Registrar()
    top = root(registrar)
    registrar.derive(top, "bob", resource="part", budget=some(100))

    refusal = registrar.deny("bob", "part", adopt=True, budget=some(500))

    assert (refusal.code, refusal.field) == ("INVALID_INPUT", "scope")


def test_a_retried_spending_records_that_its_lease_has_fallen() -> None:
    registrar = Registrar()
    top, child = line(registrar, 2)
    command = registrar.spending(child, tokens=3)
    registrar.ask(command)
    registrar.end(top)

    again = expect(Spent, registrar.ask(command))

    assert again.repeated
    assert again.lease.state == "revoked"

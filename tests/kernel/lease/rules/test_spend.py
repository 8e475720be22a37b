"""All of the amounts are spent, or nothing is; and never more than was granted."""

from typing import Any

import pytest

from leasehold.kernel.lease.answers import Spent
from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.rules.spend import remaining_of
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from tests.kernel.records import a_lease
from tests.kernel.registrar import HOUR, TTL, Registrar, expect

BUDGET = Budget(tokens=10, tool_calls=2)


def budgeted(registrar: Registrar, **fields: Any) -> Lease:
    return registrar.grant(**({"budget": BUDGET} | fields))


def test_what_is_spent_is_gone() -> None:
    registrar = Registrar()
    lease = budgeted(registrar)

    spent = registrar.spend(lease, tokens=3)

    assert spent.remaining == Budget(tokens=7, tool_calls=2)
    assert not spent.repeated
    assert spent.lease == registrar.lease(lease.lease_id)
    assert registrar.account(lease).spent == Amounts(tokens=3)
    assert registrar.history()[-1] == "lease.spent"


def test_what_has_no_limit_is_counted_all_the_same() -> None:
    registrar = Registrar()
    lease = budgeted(registrar)

    assert registrar.spend(lease, episodes=2**53 - 1).remaining == BUDGET
    assert registrar.account(lease).spent == Amounts(episodes=2**53 - 1)


def test_spending_exactly_the_rest_is_fine_and_then_the_budget_is_exhausted() -> None:
    registrar = Registrar()
    lease = budgeted(registrar)
    registrar.spend(lease, tokens=10)

    refusal = registrar.refuse_spending(lease, tool_calls=1)

    assert (refusal.code, refusal.field, refusal.limit) == ("BUDGET_EXHAUSTED", "tokens", 0)


def test_a_spending_of_several_parts_is_all_or_nothing() -> None:
    registrar = Registrar()
    lease = budgeted(registrar)

    refusal = registrar.refuse_spending(lease, tokens=5, tool_calls=3)

    assert (refusal.code, refusal.field, refusal.limit) == ("BUDGET_EXCEEDED", "tool_calls", 2)
    assert refusal.detail == "2 left, 3 asked for"
    assert registrar.account(lease).spent == Amounts()
    registrar.spend(lease, tokens=5, tool_calls=2)


def test_only_the_holder_spends() -> None:
    registrar = Registrar()
    lease = budgeted(registrar)

    assert registrar.refuse_spending(lease, tokens=1, holder="bob").code == RefusalCode.NOT_HOLDER


@pytest.mark.parametrize("tenant", ["acme", "default"])
def test_nothing_is_spent_from_a_lease_that_is_not_there(tenant: str) -> None:
    registrar = Registrar()
    lease = budgeted(registrar) if tenant == "acme" else a_lease(lease_id="nobodys")

    refusal = registrar.refuse_spending(lease, tokens=1, tenant=tenant)

    assert refusal.code == RefusalCode.LEASE_NOT_FOUND


def test_nothing_is_spent_from_an_expired_or_ended_lease() -> None:
    registrar = Registrar()
    expired, ended = budgeted(registrar), budgeted(registrar, resource="window", ttl_ns=2 * TTL)
    registrar.end(ended)
    registrar.advance(10)

    assert registrar.refuse_spending(expired, tokens=1).code == RefusalCode.LEASE_EXPIRED
    assert registrar.refuse_spending(ended, tokens=1).code == RefusalCode.LEASE_TERMINAL


def test_a_plain_lease_has_nothing_to_spend() -> None:
    registrar = Registrar()
    lease = registrar.grant()

    assert registrar.refuse_spending(lease, tokens=1).code == RefusalCode.NOTHING_GRANTED
    assert remaining_of(lease) == Budget(episodes=0, tool_calls=0, tokens=0, duration_ms=0)


def test_a_retried_spending_spends_nothing_more() -> None:
    registrar = Registrar()
    lease = budgeted(registrar)
    command = registrar.spending(lease, tokens=4)
    registrar.ask(command)
    registrar.spend(lease, tokens=1)

    again = expect(Spent, registrar.ask(command))

    assert again.repeated
    assert again.remaining == Budget(tokens=5, tool_calls=2)
    assert registrar.account(lease).spent == Amounts(tokens=5)


def test_a_retry_is_told_that_it_was_spent_even_when_the_lease_is_over() -> None:
    registrar = Registrar()
    lease = budgeted(registrar)
    command = registrar.spending(lease, tokens=4)
    registrar.ask(command)
    registrar.advance(10)

    again = expect(Spent, registrar.ask(command))

    assert again.repeated
    assert again.lease.state == "expired"


def test_a_retry_for_a_lease_that_was_pruned_finds_nothing() -> None:
    registrar = Registrar()
    lease = budgeted(registrar)
    command = registrar.spending(lease, tokens=4)
    registrar.ask(command)
    del registrar.state.of("lease")[lease.lease_id]
    registrar.replayable = False

    assert expect(Refusal, registrar.ask(command)).code == RefusalCode.LEASE_NOT_FOUND


def test_a_spending_is_remembered_for_an_hour() -> None:
    registrar = Registrar()
    lease = budgeted(registrar, ttl_ns=2 * HOUR)
    command = registrar.spending(lease, tokens=4)
    registrar.ask(command)
    registrar.advance(3600)

    assert not expect(Spent, registrar.ask(command)).repeated
    assert registrar.account(lease).spent == Amounts(tokens=8)


def test_what_was_handed_on_cannot_be_spent_until_it_comes_back() -> None:
    registrar = Registrar()
    lease = budgeted(registrar)
    child = registrar.derive(lease, "bob", budget=Budget(tokens=8, tool_calls=1))
    registrar.spend(child, tokens=5)

    assert registrar.refuse_spending(lease, tokens=3).detail == "2 left, 3 asked for"
    registrar.end(child)

    assert registrar.spend(lease, tokens=3).remaining == Budget(tokens=2, tool_calls=2)


def test_what_a_child_that_expired_unnoticed_had_left_can_be_spent() -> None:
    registrar = Registrar()
    lease = budgeted(registrar, ttl_ns=10 * TTL)
    child = registrar.derive(lease, "bob", budget=Budget(tokens=8, tool_calls=1), ttl_ns=TTL)
    standing = registrar.derive(lease, "cem", budget=Budget(tokens=1, tool_calls=1))
    registrar.advance(10)

    spent = registrar.spend(lease, tokens=9)

    assert spent.remaining == Budget(tokens=0, tool_calls=1)
    assert spent.lease == registrar.lease(lease.lease_id)
    assert registrar.history()[-3:] == ["lease.expired", "lease.reclaimed", "lease.spent"]
    assert registrar.lease(child.lease_id).is_terminal
    assert not registrar.lease(standing.lease_id).is_terminal


def test_a_lease_of_unknown_time_spends_nothing() -> None:
    registrar = Registrar()
    lease = registrar.put(a_lease(expires_tick=None, delegation=Delegation(budget=BUDGET)))

    assert registrar.refuse_spending(lease, tokens=1).code == RefusalCode.UNKNOWN_TIME

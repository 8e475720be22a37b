"""A child never outlives, out-scopes or outspends its parent."""

from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.delegation import ANCESTORS_MAXIMUM, Delegation
from leasehold.kernel.lease.model import Lease, Mode
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from tests.kernel.records import a_lease
from tests.kernel.registrar import SECOND, TTL, Registrar, expect

SCOPE = Scope(tools=("read", "write"), namespaces=("data",))
EVERYTHING = Scope(unlimited=True)
TEN = Budget(tokens=10)


def root(registrar: Registrar, **fields: Any) -> Lease:
    return registrar.grant(**({"scope": EVERYTHING, "budget": TEN} | fields))


def some(tokens: int) -> Budget:
    return Budget(tokens=tokens)


def test_a_lease_keeps_the_scope_and_the_budget_that_it_was_acquired_with() -> None:
    lease = Registrar().grant(scope=Scope(tools=("b", "a")), budget=TEN)

    assert lease.delegation == Delegation(scope=Scope(tools=("a", "b")), budget=TEN)


@pytest.mark.parametrize(
    ("fields", "delegation"),
    [
        ({"scope": SCOPE}, Delegation(scope=SCOPE)),
        ({"budget": TEN}, Delegation(budget=TEN)),
        ({}, None),
    ],
)
def test_a_lease_may_have_only_one_of_them_or_neither(
    fields: dict[str, Any], delegation: Delegation | None
) -> None:
    assert Registrar().grant(**fields).delegation == delegation


def test_a_child_is_a_lease_on_a_resource_of_its_own() -> None:
    registrar = Registrar()
    parent = root(registrar)

    child = registrar.derive(
        parent,
        "bob",
        resource="window",
        ttl_ns=3 * SECOND,
        scope=SCOPE,
        budget=some(4),
        mode=Mode.SHARED,
        max_renewals=2,
        bound_to_boot=False,
        metadata={"why": "part"},
    )

    assert (child.resource, child.holder, child.ttl_ns) == ("window", "bob", 3 * SECOND)
    assert (child.mode, child.max_renewals, child.bound_to_boot) == (Mode.SHARED, 2, False)
    assert child.metadata == {"why": "part"}
    assert child.token > parent.token
    assert child.delegation == Delegation(
        scope=SCOPE, budget=some(4), ancestors=(parent.lease_id,), ttl_ns=3 * SECOND
    )
    assert registrar.history()[-2:] == ["lease.delegated", "lease.issued"]
    assert registrar.deny("cem", "window").code == RefusalCode.HELD


def test_a_child_lasts_as_long_as_its_parent_unless_told_otherwise() -> None:
    registrar = Registrar()
    parent = root(registrar)
    registrar.advance(4)

    child = registrar.derive(parent, budget=some(1))

    assert child.expires_tick == parent.expires_tick
    assert child.ttl_ns == 6 * SECOND


def test_a_childs_budget_is_set_aside_in_its_parents() -> None:
    registrar = Registrar()
    parent = root(registrar)

    registrar.derive(parent, budget=some(4))
    registrar.derive(parent, budget=some(6))

    account = registrar.account(parent)
    assert (account.delegated, account.spent, account.remaining) == (Amounts(tokens=10), Amounts(), some(0))


def test_a_child_of_a_parent_without_a_limit_may_have_one_or_none() -> None:
    registrar = Registrar()
    parent = root(registrar, budget=Budget(tokens=10))

    child = registrar.derive(parent, budget=Budget(tokens=1, episodes=5))

    assert registrar.remaining(parent) == Budget(tokens=9)
    assert registrar.account(parent).delegated == Amounts(tokens=1, episodes=5)
    registrar.end(child)
    assert registrar.account(parent).delegated == Amounts()


@pytest.mark.parametrize(
    ("fields", "code", "field", "detail"),
    [
        ({"budget": some(11)}, "BUDGET_EXCEEDED", "tokens", "10 left, 11 asked for"),
        ({"budget": Budget()}, "BUDGET_EXCEEDED", "tokens", "10 left, no limit asked for"),
        ({"ttl_ns": TTL + 1}, "OUTLIVES_PARENT", "ttl", None),
        ({"scope": EVERYTHING}, "SCOPE_EXCEEDED", "scope", "everything"),
        ({"scope": Scope(tools=("rm",))}, "SCOPE_EXCEEDED", "scope", "tool 'rm'"),
        ({"scope": Scope(namespaces=("database",))}, "SCOPE_EXCEEDED", "scope", "namespace 'database'"),
    ],
)
def test_asking_for_more_than_the_parent_has_is_refused_and_not_cut_down(
    fields: dict[str, Any], code: str, field: str, detail: str | None
) -> None:
    registrar = Registrar()
    parent = root(registrar, scope=SCOPE)
    before = registrar.lease(parent.lease_id)

    refusal = registrar.refuse_child(parent, **({"budget": some(1)} | fields))

    assert (refusal.code, refusal.field, refusal.detail) == (code, field, detail)
    assert refusal.lease_id == parent.lease_id
    assert registrar.lease(parent.lease_id) == before


def test_the_whole_of_what_the_parent_has_left_can_be_handed_on() -> None:
    registrar = Registrar()
    parent = root(registrar, scope=SCOPE)

    child = registrar.derive(parent, scope=SCOPE, budget=some(10), ttl_ns=TTL)

    assert child.expires_tick == parent.expires_tick


def test_an_exhausted_parent_gives_nothing_not_even_of_what_it_has() -> None:
    registrar = Registrar()
    parent = root(registrar, budget=Budget(tokens=10, episodes=1))
    registrar.spend(parent, episodes=1)

    refusal = registrar.refuse_child(parent, budget=Budget(tokens=1, episodes=1))

    assert (refusal.code, refusal.field, refusal.limit) == ("BUDGET_EXHAUSTED", "episodes", 0)


def test_a_plain_lease_has_nothing_to_hand_on() -> None:
    registrar = Registrar()
    lease = registrar.grant()

    assert registrar.refuse_child(lease, budget=some(1)).code == RefusalCode.NOTHING_GRANTED


def test_nothing_is_derived_from_a_lease_that_is_not_there_or_of_another_tenant() -> None:
    registrar = Registrar()
    parent = root(registrar)

    assert registrar.refuse_child(a_lease(lease_id="nobodys")).code == RefusalCode.LEASE_NOT_FOUND
    assert registrar.refuse_child(parent, tenant="acme").code == RefusalCode.LEASE_NOT_FOUND


def test_only_the_holder_derives() -> None:
    registrar = Registrar()
    parent = root(registrar)

    refusal = registrar.ask(replace(registrar.child_claim(parent, budget=some(1)), holder="bob"))

    assert expect(Refusal, refusal).code == RefusalCode.NOT_HOLDER


def test_nothing_is_derived_from_an_expired_or_ended_parent() -> None:
    registrar = Registrar()
    expired, ended = root(registrar), root(registrar, resource="window", ttl_ns=2 * TTL)
    registrar.end(ended)
    registrar.advance(10)

    assert registrar.refuse_child(expired, budget=some(1)).code == RefusalCode.LEASE_EXPIRED
    assert registrar.refuse_child(ended, budget=some(1)).code == RefusalCode.LEASE_TERMINAL


def test_nothing_is_derived_from_a_parent_whose_time_nobody_knows() -> None:
    registrar = Registrar()
    parent = registrar.put(a_lease(expires_tick=None, delegation=Delegation(budget=TEN)))

    assert registrar.refuse_child(parent, budget=some(1)).code == RefusalCode.UNKNOWN_TIME


def test_a_childs_id_has_to_be_a_new_one() -> None:
    registrar = Registrar()
    parent = root(registrar)
    child = registrar.derive(parent, budget=some(1))

    for taken in (parent, child):
        refusal = registrar.refuse_child(parent, budget=some(1), lease_id=taken.lease_id)
        assert refusal.code == RefusalCode.LEASE_EXISTS
    assert registrar.remaining(parent) == some(9)


def test_a_childs_resource_has_to_be_free_as_for_any_claim() -> None:
    registrar = Registrar()
    parent = root(registrar)
    registrar.grant("bob", "window")

    assert registrar.refuse_child(parent, resource="window", budget=some(1)).code == RefusalCode.HELD
    assert registrar.refuse_child(parent, resource="door", budget=some(1)).code == RefusalCode.ALREADY_HELD
    assert registrar.remaining(parent) == TEN


def test_a_child_counts_for_its_holders_quota() -> None:
    registrar = Registrar(Quotas(leases_per_holder=1, leases_per_tenant=2))
    parent = root(registrar)

    assert registrar.refuse_child(parent, budget=some(1)).field == "leases_per_holder"
    child = registrar.derive(parent, "bob", budget=some(1))
    assert registrar.refuse_child(parent, child_holder="cem").field == "tokens"
    refusal = registrar.refuse_child(parent, child_holder="cem", budget=some(1))
    assert refusal.field == "leases_per_tenant"
    registrar.end(child)
    registrar.derive(parent, "cem", budget=some(1))


def test_a_chain_is_no_deeper_than_sixteen() -> None:
    registrar = Registrar()
    lease = root(registrar)
    for _ in range(ANCESTORS_MAXIMUM):
        lease = registrar.derive(lease, budget=some(1))
    assert lease.delegation is not None
    assert len(lease.delegation.ancestors) == 16

    refusal = registrar.refuse_child(lease, budget=some(1))

    assert (refusal.code, refusal.field, refusal.limit) == ("LIMIT_EXCEEDED", "parent", 16)


def test_a_retried_derivation_derives_nothing_more() -> None:
    registrar = Registrar()
    parent = root(registrar)
    claim = registrar.child_claim(parent, budget=some(4))
    first = expect(Granted, registrar.ask(claim))
    registrar.advance(3)

    again = expect(Granted, registrar.ask(replace(claim, lease_id="another")))

    assert again.repeated
    assert again.lease == first.lease
    assert again.expires_in_ns == first.expires_in_ns - 3 * SECOND
    assert registrar.remaining(parent) == some(6)


def test_a_retried_derivation_says_that_the_child_has_fallen_with_its_parent() -> None:
    registrar = Registrar()
    parent = root(registrar)
    claim = registrar.child_claim(parent, budget=some(4))
    registrar.ask(claim)
    registrar.revoke(parent)

    again = expect(Granted, registrar.ask(claim))

    assert (again.repeated, again.ended, again.expires_in_ns) == (True, True, 0)


def test_a_refused_derivation_is_decided_anew() -> None:
    registrar = Registrar()
    parent = root(registrar)
    other = registrar.derive(parent, budget=some(10))
    claim = registrar.child_claim(parent, budget=some(1))
    assert isinstance(registrar.ask(claim), Refusal)
    registrar.end(other)

    assert not expect(Granted, registrar.ask(claim)).repeated


def test_what_a_child_that_expired_unnoticed_had_left_can_be_handed_on_again() -> None:
    registrar = Registrar()
    parent = root(registrar, ttl_ns=10 * TTL)
    child = registrar.derive(parent, budget=some(10), ttl_ns=TTL)
    registrar.spend(child, tokens=3)
    assert registrar.refuse_child(parent, budget=some(7)).code == RefusalCode.BUDGET_EXHAUSTED
    registrar.advance(10)

    assert registrar.refuse_child(parent, budget=some(8)).detail == "7 left, 8 asked for"
    registrar.derive(parent, budget=some(7))

    assert registrar.lease(child.lease_id).is_terminal
    assert registrar.account(parent).spent == Amounts(tokens=3)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ({}, True),
        ({"scope": Scope(tools=("write", "read"), namespaces=("data",))}, True),
        ({"budget": some(9)}, False),
        ({"scope": None}, False),
        ({"scope": None, "budget": None}, False),
        ({"scope": None, "budget": None, "adopt": True}, False),
    ],
)
def test_a_retry_that_bears_the_id_of_the_lease_asks_for_the_same_scope_and_budget(
    other: dict[str, Any], same: bool
) -> None:
    registrar = Registrar()
    claim = registrar.claim(lease_id="mine", request_id="mine", scope=SCOPE, budget=TEN)
    registrar.ask(claim)

    again = registrar.ask(replace(claim, **other))

    assert isinstance(again, Granted) == same
    assert isinstance(again, Granted) or expect(Refusal, again).code == RefusalCode.LEASE_EXISTS


def test_a_retry_of_a_plain_claim_with_a_budget_is_not_the_same_claim() -> None:
    registrar = Registrar()
    claim = registrar.claim(lease_id="mine", request_id="mine")
    registrar.ask(claim)

    assert expect(Refusal, registrar.ask(replace(claim, budget=TEN))).code == RefusalCode.LEASE_EXISTS

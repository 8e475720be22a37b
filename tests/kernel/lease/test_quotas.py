"""How many leases a holder, and a tenant, may have."""

from typing import Any

import pytest

from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.lease.quotas import Quotas
from tests.kernel.registrar import Registrar


def test_a_holder_has_as_many_leases_as_its_quota_and_not_one_more() -> None:
    registrar = Registrar(Quotas(leases_per_holder=2))
    first = registrar.grant("ann", "a")
    registrar.grant("ann", "b")

    refusal = registrar.deny("ann", "c")

    assert (refusal.code, refusal.field, refusal.limit) == ("LIMIT_EXCEEDED", "leases_per_holder", 2)
    assert refusal.detail == "ann has 2 leases; at most 2 are allowed"
    registrar.grant("bob", "c")
    registrar.grant("ann", "a", tenant="acme")
    registrar.end(first)
    registrar.grant("ann", "d")


def test_a_tenant_has_as_many_leases_as_its_quota_and_not_one_more() -> None:
    registrar = Registrar(Quotas(leases_per_tenant=2))
    registrar.grant("ann", "a")
    registrar.grant("bob", "b")

    refusal = registrar.deny("cem", "c")

    assert (refusal.code, refusal.field, refusal.limit) == ("LIMIT_EXCEEDED", "leases_per_tenant", 2)
    assert refusal.detail == "tenant default has 2; at most 2 are allowed"
    registrar.grant("cem", "c", tenant="acme")


@pytest.mark.parametrize("quotas", [Quotas(leases_per_holder=1), Quotas(leases_per_tenant=1)])
@pytest.mark.parametrize("fields", [{"adopt": True}, {}], ids=["adopted", "expired"])
def test_a_lease_that_the_claim_itself_replaces_does_not_count(
    quotas: Quotas, fields: dict[str, Any]
) -> None:
    registrar = Registrar(quotas)
    first = registrar.grant("ann")
    if not fields:
        registrar.advance(10)

    second = registrar.grant("ann", **fields)

    assert registrar.lease(first.lease_id).is_terminal
    assert registrar.lease(second.lease_id).state is LeaseState.ACTIVE
    assert registrar.deny("ann", "window").code == "LIMIT_EXCEEDED", "the new one does count"


def test_somebody_elses_expired_lease_frees_a_place_of_the_tenant_but_not_of_the_holder() -> None:
    registrar = Registrar(Quotas(leases_per_holder=1, leases_per_tenant=3))
    registrar.grant("bob", "door")
    registrar.advance(10)
    registrar.grant("ann", "window")

    assert registrar.deny("ann", "door").field == "leases_per_holder"
    registrar.grant("cem", "door")


def test_a_quota_of_nothing_grants_nothing() -> None:
    assert Registrar(Quotas(leases_per_holder=0)).deny().field == "leases_per_holder"
    assert Registrar(Quotas(leases_per_tenant=0)).deny().field == "leases_per_tenant"

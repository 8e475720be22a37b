"""Mistakes that were once in deriving, and must not come back."""

from collections.abc import Callable
from pathlib import Path

import pytest

from leasehold.engine.audit import audit
from leasehold.engine.batch import Rules, run_batch
from leasehold.engine.port import Store
from leasehold.engine.registrar import Registrar as Engine
from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.commands import Derive, Spend, Wanted
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from tests.engine.doubles import claim, expect, granted
from tests.kernel.registrar import SECOND, Registrar


def test_a_child_can_follow_one_that_expired_unnoticed_with_all_of_the_budget() -> None:
    """The end of the first was noted for its budget and again for its resource, which failed as a defect."""
    registrar = Registrar()
    parent = registrar.grant("ann", "project", budget=Budget(tokens=10), ttl_ns=100 * SECOND)
    registrar.derive(parent, resource="door", budget=Budget(tokens=10), ttl_ns=5 * SECOND)
    registrar.advance(5)

    child = registrar.derive(parent, resource="door", budget=Budget(tokens=10))

    assert registrar.remaining(child) == Budget(tokens=10)
    assert registrar.history().count("lease.expired") == 1


@pytest.mark.parametrize("make", [MemoryStore, SqliteStore])
def test_who_adopts_a_lease_with_very_many_below_it_gets_back_what_all_of_them_left(
    tmp_path: Path, make: Callable[..., Store]
) -> None:
    """What a first commit could not count was lost to whoever adopted, for ever."""
    store = make(tmp_path / "leases") if make is SqliteStore else make()
    engine = Engine(store)
    first = granted(engine.call(claim("project", budget=Budget(tokens=1_000))))
    children = [
        Derive(
            parent_id=first.lease_id,
            holder="ann",
            child_holder="bob",
            resource=f"part-{number}",
            lease_id=f"child-{number}",
            budget=Budget(tokens=3),
            request_id=f"derive-{number}",
        )
        for number in range(250)
    ]
    run_batch(store, children, Rules())
    engine.call(Spend(lease_id="child-249", holder="bob", amounts=Amounts(tokens=2), request_id="spend"))

    adopted = granted(engine.call(claim("project", adopt=True)))
    assert adopted.delegation is not None
    assert adopted.delegation.delegated == Amounts(tokens=150 * 3)
    for _ in range(3):
        run_batch(store, [], Rules(sweep_limit=64))

    with store.snapshot() as snapshot:
        now = snapshot.lease(adopted.lease_id)
    assert now is not None
    assert now.delegation is not None
    assert now.delegation.remaining == Budget(tokens=998)
    assert audit(store).problems == []
    engine.close()


def test_a_lease_and_its_child_cannot_be_adopted_in_one_claim() -> None:
    """The child was to be replaced below a lease that had just ended, which failed as a defect."""
    store = MemoryStore()
    engine = Engine(store)
    first = granted(engine.call(claim("project", budget=Budget(tokens=10))))
    child = Derive(
        parent_id=first.lease_id,
        holder="ann",
        child_holder="ann",
        resource="part",
        lease_id="child",
        budget=Budget(tokens=3),
        request_id="derive",
    )
    engine.call(child)

    both = engine.call(claim("project", also=(Wanted(resource="part"),), adopt=True))

    assert expect(Refusal, both).code is RefusalCode.INVALID_INPUT
    engine.close()

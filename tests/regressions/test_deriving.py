"""Mistakes that were once in deriving, and must not come back."""

from leasehold.kernel.budget import Budget
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

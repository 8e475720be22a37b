"""What is broken on purpose about budgets and lines of leases is found.

Each test puts a mistake into the law, with the guards that would stop it relaxed where it has any: what is
left to notice it is the simulator's own telling of the law.
"""

from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from leasehold.kernel.lease import descendants as settling
from leasehold.kernel.lease import invariants
from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.events import LeaseReclaimed
from leasehold.kernel.lease.rules import derive as deriving
from leasehold.kernel.lease.rules import renew as renewing
from leasehold.kernel.lease.rules import spend as spending
from leasehold.kernel.ledger.state import State
from tests.mutations import search

SEEDS = 60


@pytest.fixture(autouse=True)
def no_other_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    """The invariants of lines know much of this, too; here the simulator has to find it without them."""

    def nothing(state: State) -> Iterator[str]:
        del state
        yield from ()

    monkeypatch.setattr(invariants, "_lines_hold", nothing)


def test_a_repeated_spending_that_counts_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spending, "remembered", lambda request, view, now: None)
    assert found("spent")


def test_a_spending_past_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spending, "shortage", lambda *_: None)
    let_accounts_be_overdrawn(monkeypatch)
    assert found("was spent from")


def test_a_child_that_is_granted_more_than_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    shortage = spending.shortage
    monkeypatch.setattr(
        deriving, "shortage", lambda lease, account, asked, now: shortage(lease, account, Amounts(), now)
    )
    let_accounts_be_overdrawn(monkeypatch)
    assert found("was granted more")


def test_a_child_that_survives_its_parents_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling._Settling, "_children", lambda self, lease: ([], True))
    assert found("above it has ended")


def test_a_dead_parent_that_nobody_looks_up_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling._Settling, "_children", lambda self, lease: ([], True))
    monkeypatch.setattr("leasehold.kernel.lease.lineage._fallen_ancestor", lambda lease, view, now: None)
    monkeypatch.setattr("simulator.accounts.Accounts.problems", lambda *_: iter(()))
    assert found(" over")  # It was used although it was over, or is over and in somebody's way.


def test_a_child_that_outlives_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renewing, "_own_ttl_ns", lambda found, now: found.lease.ttl_ns)
    monkeypatch.setattr("leasehold.kernel.lease.decision.ceiling", lambda *_: 1 << 62)
    assert found("outlives")


def test_unused_budget_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling._Settling, "_reclaim", lambda self, ended: None)
    assert found("left, not")


def test_unused_budget_that_comes_back_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    reclaimed = Delegation.reclaimed

    def doubled(self: Delegation, granted: Amounts, spent: Amounts, delegated: Amounts) -> Delegation:
        after = reclaimed(self, granted, spent, delegated)
        return replace(after, spent=after.spent.minus(granted.minus(spent)))

    monkeypatch.setattr(Delegation, "reclaimed", doubled)
    assert found("has spent")


def test_what_a_child_spent_that_its_parent_gets_back(monkeypatch: pytest.MonkeyPatch) -> None:
    record: Callable[..., None] = settling._Settling.record

    def forgiving(self: settling._Settling, event: object) -> None:
        if isinstance(event, LeaseReclaimed):
            event = replace(event, spent=Amounts())
        record(self, event)

    monkeypatch.setattr(settling._Settling, "record", forgiving)
    assert found("has spent")


def test_a_scope_that_is_more_than_the_parents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leasehold.kernel.lease.scope.Scope.exceeds", lambda self, other: None)
    assert found("was allowed more")


def let_accounts_be_overdrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away the guard that a ledger is replayed with; who asks for something is still told no."""
    short_of = Budget.short_of

    def lenient(self: Budget, asked: Amounts | Budget) -> str | None:
        return None if asked == Amounts() else short_of(self, asked)

    monkeypatch.setattr(Budget, "short_of", lenient)


def found(*says: str) -> str:
    """Return the first promise that is seen to be broken."""
    return search.found(*says, seeds=range(SEEDS))

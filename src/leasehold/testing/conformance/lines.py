"""Parents, children, and what is left of a budget."""

from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from leasehold.engine.port import LeaseQuery, Store
from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.events import LeaseSpent
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.lease.records import CHILDREN_PAGE, LEASE, children_of
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.tick import Tick
from leasehold.testing.conformance.opening import Opening, commit, find, find_leases, read
from leasehold.testing.conformance.records import EMPTY, batch, head_of, lease, released

_ACCOUNT = Delegation(
    scope=Scope(tools=("read", "é"), namespaces=("data",)),
    budget=Budget(tokens=10, duration_ms=2**53 - 1),
    spent=Amounts(tokens=1, episodes=2**70),
    delegated=Amounts(tokens=2),
    ttl_ns=50,
)


class Lines(Opening):
    """What a store keeps of leases that were derived from others."""

    def test_scope_budget_and_descent_read_back_as_they_were_written(self, tmp_path: Path) -> None:
        made = (lease(delegation=_ACCOUNT), _child("child", "lease-1"), lease("plain", resource="gate"))
        with self.opened(tmp_path, batch(EMPTY, created=made)) as store:
            assert _by_id(find_leases(store, keys={"lease-1", "child", "plain"})) == _by_id(made)
            with store.snapshot() as snapshot:
                assert _by_id(snapshot.leases(LeaseQuery())) == _by_id(made)

    def test_a_changed_account_replaces_the_one_before(self, tmp_path: Path) -> None:
        first = batch(EMPTY, created=(lease(delegation=_ACCOUNT), lease("plain", resource="gate")))
        spent = lease(delegation=replace(_ACCOUNT, spent=Amounts(tokens=8)), version=2)
        with self.opened(tmp_path, first) as store:
            commit(store, batch(head_of(first), changed=((lease(delegation=_ACCOUNT), spent),)))
            assert find_leases(store, keys={"lease-1"}) == [spent]
            assert find_leases(store, keys={"plain"}) == [lease("plain", resource="gate")]

    def test_an_ended_lease_keeps_its_account(self, tmp_path: Path) -> None:
        first = batch(EMPTY, created=(lease(delegation=_ACCOUNT),))
        ended = _ended(lease(delegation=replace(_ACCOUNT, orphaned=True)))
        changed = ((lease(delegation=_ACCOUNT), ended),)
        with self.opened(tmp_path, first, batch(head_of(first), released(ended), changed=changed)) as store:
            assert find_leases(store, keys={"lease-1"}) == [ended]

    def test_standing_children_are_found_by_their_parent(self, tmp_path: Path) -> None:
        made = (
            lease(delegation=_ACCOUNT),
            _child("a", "lease-1"),
            _child("b", "lease-1"),
            _child("below-a", "lease-1", "a"),
            _ended(_child("over", "lease-1")),
        )
        with self.opened(tmp_path, batch(EMPTY, created=made)) as store:
            assert _children(store, "lease-1") == ["a", "b"]
            assert _children(store, "a") == ["below-a"]
            assert _children(store, "b") == _children(store, "nobody") == []

    def test_a_child_is_not_found_any_more_once_it_has_ended(self, tmp_path: Path) -> None:
        first = batch(EMPTY, created=(_child("a", "lease-1"), _child("b", "lease-1")))
        ended = _ended(_child("a", "lease-1"))
        with self.opened(tmp_path, first) as store:
            changed = ((_child("a", "lease-1"), ended),)
            commit(store, batch(head_of(first), released(ended), changed=changed))
            assert _children(store, "lease-1") == ["b"]

    def test_no_more_children_than_a_page_are_read(self, tmp_path: Path) -> None:
        made = tuple(_child(f"child-{number}", "lease-1") for number in range(CHILDREN_PAGE + 1))
        with self.opened(tmp_path, batch(EMPTY, created=made)) as store:
            assert len(_children(store, "lease-1")) == CHILDREN_PAGE

    def test_the_children_of_many_are_found_at_once_up_to_a_page_of_each(self, tmp_path: Path) -> None:
        parents = [f"parent-{number}" for number in range(8)]
        made = [_child(f"of {parent}", parent) for parent in parents]
        made += [_child(f"child-{number}", "parent-3") for number in range(CHILDREN_PAGE)]
        scans = {parent: children_of(parent) for parent in parents}
        with self.opened(tmp_path, batch(EMPTY, created=tuple(made))) as store:
            found = find(store, scans=scans.values()).scans
            assert len(found.pop(scans.pop("parent-3"))) == CHILDREN_PAGE
            assert found == {scan: [f"of {parent}"] for parent, scan in scans.items()}

    def test_children_that_an_ended_lease_has_left_lapse_behind_what_time_has_ended(
        self, tmp_path: Path
    ) -> None:
        made = (
            _ended(lease("left", delegation=Delegation(orphaned=True))),
            _ended(lease("cleared", delegation=Delegation())),
            _child("orphan", "left"),
            _child("both", "left", expires_tick=Tick(value=80)),
            _child("other", "cleared"),
            lease("late", resource="gate", expires_tick=Tick(value=70)),
        )
        with self.opened(tmp_path, batch(EMPTY, created=made)) as store, store.write() as transaction:
            assert transaction.due(Tick(value=90), 10) == _leases("late", "both", "orphan")
            assert sorted(transaction.due(Tick(value=60), 10)) == _leases("both", "orphan")
            assert transaction.due(Tick(value=90), 2) == _leases("late", "both")

    def test_a_spending_is_found_by_its_request(self, tmp_path: Path) -> None:
        made = lease(delegation=_ACCOUNT)
        spent = LeaseSpent(
            tick=Tick(value=60),
            at_ns=5_010,
            actor=made.holder,
            request="r:1",
            lease_id=made.lease_id,
            resource=made.resource,
            holder=made.holder,
            token=made.token,
            amounts=Amounts(tokens=1),
        )
        with self.opened(tmp_path) as store:
            first = batch(EMPTY, created=(made,))
            commit(store, first)
            commit(store, batch(head_of(first), spent, changed=((made, made),)))
            found = read(store, requests={"r:1"})
            assert found.requests == {"r:1": spent}
            assert found.families[LEASE].records == {made.lease_id: made}


def _child(lease_id: str, *ancestors: str, **fields: Tick) -> Lease:
    return lease(
        lease_id, resource=f"r-{lease_id}", delegation=replace(_ACCOUNT, ancestors=ancestors), **fields
    )


def _ended(one: Lease) -> Lease:
    return replace(
        one, state=LeaseState.EXPIRED, terminated_at_ns=1, ended_by="registrar", version=one.version + 1
    )


def _children(store: Store, parent: str) -> list[str]:
    scan = children_of(parent)
    found = find(store, scans={scan})
    assert sorted(found.scans[scan]) == sorted(found.records)
    return sorted(found.scans[scan])


def _leases(*names: str) -> list[tuple[str, str]]:
    return [(LEASE, name) for name in names]


def _by_id(leases: Iterable[Lease]) -> dict[str, Lease]:
    return {one.lease_id: one for one in leases}

"""What stands on a resource, how much a holder has, and what is overdue."""

from pathlib import Path

from leasehold.engine.port import Store
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.records import LEASE, count_of_holder, count_of_tenant, held_by
from leasehold.kernel.ledger.tick import Tick
from leasehold.testing.conformance.opening import Opening, commit, find, find_leases
from leasehold.testing.conformance.records import EMPTY, batch, head_of, lease, released, waiter


class Indexes(Opening):
    """The questions that deciding and sweeping ask."""

    def test_a_standing_exclusive_lease_is_found_by_its_resource(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(lease(), lease("lease-2", resource="gate"))))
            assert _standing_on(store, "default", "door") == ["lease-1"]

    def test_all_standing_shared_leases_are_found_by_their_resource(self, tmp_path: Path) -> None:
        sharers = tuple(lease(f"lease-{n}", holder=f"h-{n}", mode=Mode.SHARED) for n in range(3))
        with self.opened(tmp_path, batch(EMPTY, created=sharers)) as store:
            assert _standing_on(store, "default", "door") == ["lease-0", "lease-1", "lease-2"]

    def test_leases_of_both_modes_are_found_together(self, tmp_path: Path) -> None:
        both = (lease("a"), lease("b", holder="bob", mode=Mode.SHARED))
        with self.opened(tmp_path, batch(EMPTY, created=both)) as store:
            assert _standing_on(store, "default", "door") == ["a", "b"]

    def test_ended_leases_do_not_stand_on_their_resource(self, tmp_path: Path) -> None:
        first = batch(EMPTY, created=(lease("a"), _ended("b"), lease("c", holder="c", mode=Mode.SHARED)))
        with self.opened(tmp_path, first) as store:
            commit(store, batch(head_of(first), released(lease("a")), changed=((lease("a"), _ended("a")),)))
            assert _standing_on(store, "default", "door") == ["c"]

    def test_a_resource_is_another_one_for_another_tenant(self, tmp_path: Path) -> None:
        with self.opened(tmp_path, batch(EMPTY, created=(lease("a"), lease("b", tenant="other")))) as store:
            assert _standing_on(store, "default", "door") == ["a"]
            assert _standing_on(store, "other", "door") == ["b"]
            assert _standing_on(store, "third", "door") == []

    def test_leases_are_found_by_several_resources_and_ids_at_once(self, tmp_path: Path) -> None:
        leases = tuple(lease(name, resource=f"r-{name}") for name in "abcd")
        with self.opened(tmp_path, batch(EMPTY, created=leases)) as store:
            found = find_leases(store, resources={("default", "r-a"), ("default", "r-b")}, keys={"d"})
            assert {one.lease_id for one in found} == {"a", "b", "d"}

    def test_unended_leases_are_counted_by_holder_and_by_tenant(self, tmp_path: Path) -> None:
        leases = (
            lease("a", resource="1"),
            lease("b", resource="2", mode=Mode.SHARED),
            _ended("c"),
            lease("d", resource="4", holder="bob"),
            lease("e", resource="5", tenant="other"),
        )
        holders = {
            ("default", "ann"): 2,
            ("default", "bob"): 1,
            ("other", "ann"): 1,
            ("other", "bob"): 0,
            ("third", "ann"): 0,
        }
        tenants = {"default": 3, "other": 1, "third": 0}
        with self.opened(tmp_path, batch(EMPTY, created=leases)) as store:
            counts = find(
                store, counts={*map(count_of_holder, holders), *map(count_of_tenant, tenants)}
            ).counts
            assert {holder: counts[count_of_holder(holder)] for holder in holders} == holders
            assert {tenant: counts[count_of_tenant(tenant)] for tenant in tenants} == tenants

    def test_many_resources_and_holders_are_asked_for_at_once(self, tmp_path: Path) -> None:
        names = [f"n{number}" for number in range(20)]
        leases = [lease(name, resource=f"r-{name}", holder=f"h-{name}") for name in names]
        leases += [lease(f"{name}s", resource=f"s-{name}", mode=Mode.SHARED) for name in names]
        leases.append(waiter("waits", 7, resource="r-n3"))
        resources = {("default", f"{kind}-{name}") for kind in "rst" for name in names}
        scans = {held_by(("default", f"h-{name}")) for name in [*names, "nobody"]}
        with self.opened(tmp_path, batch(EMPTY, created=tuple(leases))) as store:
            standing = find(store, resources=resources)
            assert {*standing.records} - {"waits"} == {one.lease_id for one in leases[:-1]}
            assert standing.awaited == {("default", "r-n3")}
            held = find(store, scans=scans)
            assert held.scans == {
                held_by(("default", f"h-{name}")): [name] if name in names else []
                for name in [*names, "nobody"]
            }
            assert held.records == {one.lease_id: one for one in leases[:20]}
            assert held.awaited == {("default", "r-n3")}

    def test_a_scan_by_holder_finds_that_holder_only(self, tmp_path: Path) -> None:
        names = ["ann", "an", "anna", "ann ", "Ann", "änn"]
        leases = tuple(lease(f"of {name}", resource=name, holder=name) for name in names)
        with self.opened(tmp_path, batch(EMPTY, created=leases)) as store:
            for name in names:
                scan = held_by(("default", name))
                assert find(store, scans={scan}).scans == {scan: [f"of {name}"]}
            assert find(store, scans={held_by(("other", "ann"))}).records == {}

    def test_a_lease_has_lapsed_at_its_expiry_and_not_before(self, tmp_path: Path) -> None:
        with self.opened(tmp_path, batch(EMPTY, created=(lease(expires_tick=Tick(value=100)),))) as store:
            assert _lapsed(store, Tick(value=99)) == []
            assert _lapsed(store, Tick(value=100)) == ["lease-1"]

    def test_lapsed_leases_come_longest_overdue_first_and_no_more_than_asked(self, tmp_path: Path) -> None:
        leases = tuple(_expiring(name, value) for name, value in (("a", 90), ("b", 70), ("c", 80), ("d", 60)))
        with self.opened(tmp_path, batch(EMPTY, created=leases)) as store:
            assert _lapsed(store, Tick(value=85)) == ["d", "b", "c"]
            assert _lapsed(store, Tick(value=85), limit=2) == ["d", "b"]

    def test_leases_of_earlier_eras_have_lapsed_whatever_their_ticks(self, tmp_path: Path) -> None:
        leases = (
            _expiring("now", 10, era=3),
            _expiring("later", 900, era=3),
            _expiring("first", 10**18, era=1),
            _expiring("second", 5, era=2),
        )
        with self.opened(tmp_path, batch(EMPTY, created=leases)) as store:
            assert _lapsed(store, Tick(value=10, era=3)) == ["first", "second", "now"]
            assert _lapsed(store, Tick(value=10, era=3), limit=1) == ["first"]

    def test_neither_ended_nor_timeless_leases_lapse(self, tmp_path: Path) -> None:
        timeless = lease("timeless", issued_tick=None, expires_tick=None)
        with self.opened(tmp_path, batch(EMPTY, created=(_ended("a"), timeless))) as store:
            assert _lapsed(store, Tick(value=10**18, era=9)) == []

    def test_a_renewed_lease_lapses_at_its_new_time(self, tmp_path: Path) -> None:
        first = batch(EMPTY, created=(_expiring("a", 100),))
        longer = _expiring("a", 300)
        with self.opened(tmp_path, first) as store:
            commit(store, batch(head_of(first), changed=((_expiring("a", 100), longer),)))
            assert _lapsed(store, Tick(value=299)) == []
            assert _lapsed(store, Tick(value=300)) == ["a"]


def _ended(lease_id: str) -> Lease:
    return lease(lease_id, state=LeaseState.EXPIRED, terminated_at_ns=1, ended_by="registrar", version=2)


def _expiring(lease_id: str, value: int, era: int = 1) -> Lease:
    ticks = {"issued_tick": Tick(value=1, era=era), "expires_tick": Tick(value=value, era=era)}
    return lease(lease_id, resource=f"r-{lease_id}", **ticks)


def _standing_on(store: Store, tenant: str, resource: str) -> list[str]:
    return sorted(one.lease_id for one in find_leases(store, resources={(tenant, resource)}))


def _lapsed(store: Store, now: Tick, limit: int = 100) -> list[str]:
    with store.write() as transaction:
        return [key for family, key in transaction.due(now, limit) if family == LEASE]

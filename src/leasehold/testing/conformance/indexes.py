"""What stands on a resource, how much a holder has, and what is overdue."""

from pathlib import Path

from leasehold.engine.port import Store
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.ledger.tick import Tick
from leasehold.testing.conformance.opening import Opening, commit, read
from leasehold.testing.conformance.records import EMPTY, batch, head_of, lease, released


class Indexes(Opening):
    """The questions that deciding and sweeping ask."""

    def test_a_standing_exclusive_lease_is_found_by_its_resource(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(lease(), lease("lease-2", resource="gate"))))
            assert _standing_on(store, "default", "door") == ["lease-1"]

    def test_all_standing_shared_leases_are_found_by_their_resource(self, tmp_path: Path) -> None:
        sharers = tuple(lease(f"lease-{n}", holder=f"h-{n}", mode=Mode.SHARED) for n in range(3))
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=sharers))
            assert _standing_on(store, "default", "door") == ["lease-0", "lease-1", "lease-2"]

    def test_leases_of_both_modes_are_found_together(self, tmp_path: Path) -> None:
        both = (lease("a"), lease("b", holder="bob", mode=Mode.SHARED))
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=both))
            assert _standing_on(store, "default", "door") == ["a", "b"]

    def test_ended_leases_do_not_stand_on_their_resource(self, tmp_path: Path) -> None:
        first = batch(EMPTY, created=(lease("a"), _ended("b"), lease("c", holder="c", mode=Mode.SHARED)))
        with self.opened(tmp_path) as store:
            commit(store, first)
            commit(store, batch(head_of(first), released(lease("a")), changed=(_ended("a"),)))
            assert _standing_on(store, "default", "door") == ["c"]

    def test_a_resource_is_another_one_for_another_tenant(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(lease("a"), lease("b", tenant="other"))))
            assert _standing_on(store, "default", "door") == ["a"]
            assert _standing_on(store, "other", "door") == ["b"]
            assert _standing_on(store, "third", "door") == []

    def test_leases_are_found_by_several_resources_and_ids_at_once(self, tmp_path: Path) -> None:
        leases = tuple(lease(name, resource=f"r-{name}") for name in "abcd")
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=leases))
            found = read(store, resources={("default", "r-a"), ("default", "r-b")}, leases={"d"}).leases
            assert {one.lease_id for one in found} == {"a", "b", "d"}

    def test_unended_leases_are_counted_by_holder_and_by_tenant(self, tmp_path: Path) -> None:
        leases = (
            lease("a", resource="1"),
            lease("b", resource="2", mode=Mode.SHARED),
            _ended("c"),
            lease("d", resource="4", holder="bob"),
            lease("e", resource="5", tenant="other"),
        )
        holders = {("default", "ann"), ("default", "bob"), ("other", "ann"), ("other", "bob")}
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=leases))
            counts = read(store, holders=holders, tenants={"default", "other", "third"})
            assert {key: counts.holders.get(key, 0) for key in holders} == {
                ("default", "ann"): 2,
                ("default", "bob"): 1,
                ("other", "ann"): 1,
                ("other", "bob"): 0,
            }
            assert [counts.tenants.get(name, 0) for name in ("default", "other", "third")] == [3, 1, 0]

    def test_a_lease_has_lapsed_at_its_expiry_and_not_before(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(lease(expires_tick=Tick(value=100)),)))
            assert _lapsed(store, Tick(value=99)) == []
            assert _lapsed(store, Tick(value=100)) == ["lease-1"]

    def test_lapsed_leases_come_longest_overdue_first_and_no_more_than_asked(self, tmp_path: Path) -> None:
        leases = tuple(_expiring(name, value) for name, value in (("a", 90), ("b", 70), ("c", 80), ("d", 60)))
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=leases))
            assert _lapsed(store, Tick(value=85)) == ["d", "b", "c"]
            assert _lapsed(store, Tick(value=85), limit=2) == ["d", "b"]

    def test_leases_of_earlier_eras_have_lapsed_whatever_their_ticks(self, tmp_path: Path) -> None:
        leases = (
            _expiring("now", 10, era=3),
            _expiring("later", 900, era=3),
            _expiring("first", 10**18, era=1),
            _expiring("second", 5, era=2),
        )
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=leases))
            assert _lapsed(store, Tick(value=10, era=3)) == ["first", "second", "now"]
            assert _lapsed(store, Tick(value=10, era=3), limit=1) == ["first"]

    def test_neither_ended_nor_timeless_leases_lapse(self, tmp_path: Path) -> None:
        timeless = lease("timeless", issued_tick=None, expires_tick=None)
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(_ended("a"), timeless)))
            assert _lapsed(store, Tick(value=10**18, era=9)) == []

    def test_a_renewed_lease_lapses_at_its_new_time(self, tmp_path: Path) -> None:
        first = batch(EMPTY, created=(_expiring("a", 100),))
        longer = _expiring("a", 300)
        with self.opened(tmp_path) as store:
            commit(store, first)
            commit(store, batch(head_of(first), changed=(longer,)))
            assert _lapsed(store, Tick(value=299)) == []
            assert _lapsed(store, Tick(value=300)) == ["a"]


def _ended(lease_id: str) -> Lease:
    return lease(lease_id, state=LeaseState.EXPIRED, terminated_at_ns=1, ended_by="registrar", version=2)


def _expiring(lease_id: str, value: int, era: int = 1) -> Lease:
    ticks = {"issued_tick": Tick(value=1, era=era), "expires_tick": Tick(value=value, era=era)}
    return lease(lease_id, resource=f"r-{lease_id}", **ticks)


def _standing_on(store: Store, tenant: str, resource: str) -> list[str]:
    return sorted(one.lease_id for one in read(store, resources={(tenant, resource)}).leases)


def _lapsed(store: Store, now: Tick, limit: int = 100) -> list[str]:
    with store.write() as transaction:
        return transaction.lapsed(now, limit)

"""A batch is there whole, or not at all."""

from pathlib import Path
from typing import Any

from leasehold.engine.port import Head, LeaseQuery, Store
from leasehold.kernel.lease.model import LeaseState, ReleaseReason
from leasehold.kernel.lease.records import LEASE
from leasehold.testing.conformance.opening import Opening, commit, find_leases, read, reject
from leasehold.testing.conformance.records import EMPTY, authority, batch, era, head_of, issued, lease


class Committing(Opening):
    """What a commit makes true, and what anything but a commit does not."""

    def test_a_new_store_is_empty(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store, store.snapshot() as snapshot:
            assert snapshot.authority is None
            assert snapshot.head == Head()

    def test_everything_in_a_batch_is_there_after_its_commit(self, tmp_path: Path) -> None:
        made = batch(
            EMPTY,
            issued(lease(), request="r-1"),
            created=(lease(),),
            record=authority(counter=7, era=2),
            ended_eras=(era(1),),
        )
        with self.opened(tmp_path, made) as store:
            found = read(store, keys={"lease-1"}, requests={"r-1"}, eras={1})
            assert found.families[LEASE].records == {"lease-1": lease()}
            assert found.requests == {"r-1": made.entries[0].event}
            assert found.eras == {1: era(1)}
            with store.snapshot() as snapshot:
                assert snapshot.authority == made.authority
                assert (made.authority.counter, made.authority.era) == (7, 2)
                assert snapshot.head == head_of(made)

    def test_a_transaction_sees_what_was_committed_before_it(self, tmp_path: Path) -> None:
        made = batch(EMPTY, created=(lease(),))
        with self.opened(tmp_path, made) as store, store.write() as transaction:
            assert transaction.authority == made.authority
            assert transaction.head == head_of(made)

    def test_leaving_without_a_commit_changes_nothing(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            with store.write() as transaction:
                assert transaction.authority is None
            _assert_empty(store)
            commit(store, batch(EMPTY, created=(lease(),)))

    def test_an_error_before_the_commit_changes_nothing(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            try:
                with store.write():
                    raise LookupError("the caller's own")
            except LookupError:
                pass
            _assert_empty(store)
            commit(store, batch(EMPTY, created=(lease(),)))

    def test_an_error_after_the_commit_takes_nothing_back(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            try:
                with store.write() as transaction:
                    transaction.commit(batch(EMPTY, created=(lease(),)))
                    raise LookupError("the caller's own")
            except LookupError:
                pass
            assert find_leases(store, keys={"lease-1"}) == [lease()]

    def test_a_lease_id_cannot_be_created_twice(self, tmp_path: Path) -> None:
        first = batch(EMPTY, created=(lease(state=LeaseState.REVOKED, **_ENDED),))
        second = batch(head_of(first), created=(lease("lease-0", resource="gate"), lease(resource="wall")))
        with self.opened(tmp_path, first) as store:
            reject(store, second)
            assert find_leases(store, keys={"lease-0", "lease-1"}) == [
                lease(state=LeaseState.REVOKED, **_ENDED)
            ]

    def test_one_batch_cannot_create_a_lease_id_twice(self, tmp_path: Path) -> None:
        made = batch(EMPTY, created=(lease(), lease(resource="gate")))
        with self.opened(tmp_path) as store:
            reject(store, made)
            _assert_empty(store)

    def test_a_second_exclusive_lease_on_a_resource_is_rejected(self, tmp_path: Path) -> None:
        first = batch(EMPTY, created=(lease(),))
        second = batch(head_of(first), created=(lease("lease-2", holder="bob"),), record=authority(counter=9))
        with self.opened(tmp_path, first) as store:
            reject(store, second)
            with store.snapshot() as snapshot:
                assert snapshot.authority == first.authority
                assert snapshot.leases(LeaseQuery()) == [lease()]

    def test_one_batch_cannot_create_two_exclusive_leases_on_a_resource(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            reject(store, batch(EMPTY, created=(lease(), lease("lease-2", holder="bob"))))
            _assert_empty(store)

    def test_exclusive_leases_of_two_tenants_do_not_meet(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(lease(), lease("lease-2", tenant="other"))))
            assert len(find_leases(store, keys={"lease-1", "lease-2"})) == 2

    def test_a_resource_can_change_hands_in_one_batch(self, tmp_path: Path) -> None:
        first = batch(EMPTY, created=(lease(),))
        ended = lease(state=LeaseState.EXPIRED, version=2, **_ENDED)
        second = batch(head_of(first), created=(lease("lease-2", holder="bob"),), changed=((lease(), ended),))
        with self.opened(tmp_path, first, second) as store:
            standing = find_leases(store, resources={("default", "door")})
            assert [one.lease_id for one in standing] == ["lease-2"]

    def test_a_lease_can_come_and_go_in_one_batch(self, tmp_path: Path) -> None:
        gone = lease(state=LeaseState.RELEASED, release_reason=ReleaseReason.ABORTED, version=2, **_ENDED)
        made = batch(EMPTY, created=(gone, lease("lease-2", holder="bob")))
        with self.opened(tmp_path, made) as store:
            assert find_leases(store, keys={"lease-1"}) == [gone]
            assert [one.lease_id for one in find_leases(store, resources={("default", "door")})] == [
                "lease-2"
            ]


_ENDED: dict[str, Any] = {"terminated_at_ns": 5_050, "ended_by": "registrar"}


def _assert_empty(store: Store) -> None:
    with store.snapshot() as snapshot:
        assert snapshot.authority is None
        assert snapshot.head == Head()
        assert snapshot.leases(LeaseQuery()) == []

"""What outlives the process that wrote it."""

from pathlib import Path

from leasehold.engine.port import EntryQuery, LeaseQuery
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.records import Keys
from leasehold.kernel.ledger.tick import Tick
from leasehold.testing.clock import FakeClock
from leasehold.testing.conformance.keeping import FULL
from leasehold.testing.conformance.notes import FULL_NOTE, NOTE, Note, created, written
from leasehold.testing.conformance.opening import Opening, commit
from leasehold.testing.conformance.records import EMPTY, authority, batch, era, head_of, issued, lease


class Persisting(Opening):
    """Closing a store and opening it again changes nothing."""

    def test_everything_is_there_when_the_store_is_opened_again(self, tmp_path: Path) -> None:
        record = authority(epoch=3, counter=4, era=2)
        made = batch(EMPTY, issued(FULL, request="r"), created=(FULL,), record=record, ended_eras=(era(1),))
        with self.opened(tmp_path) as store:
            commit(store, made)
        with self.opened(tmp_path) as store, store.snapshot() as snapshot:
            assert snapshot.authority == made.authority
            assert snapshot.leases(LeaseQuery()) == [FULL]
            assert snapshot.entries(EntryQuery()) == made.entries
            records = snapshot.read(Keys(requests={"r"}, eras={1}))
            assert (records.requests, records.eras) == ({"r": made.entries[0].event}, {1: era(1)})

    def test_a_store_goes_by_the_same_name_when_it_is_opened_again(self, tmp_path: Path) -> None:
        clock = FakeClock()
        names = []
        for _ in range(2):
            with self.opened(tmp_path, clock=clock) as store, store.snapshot() as snapshot:
                names.append((store.url, snapshot.reading().identity))
        assert names[0] == names[1]

    def test_documents_and_soft_state_are_there_when_the_store_is_opened_again(self, tmp_path: Path) -> None:
        event = written("a", FULL_NOTE, request="r")
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, event, changes=created({"a": FULL_NOTE, "b": Note()})))
            store.soft.put(NOTE, {"a": b"1"})
        with self.opened(tmp_path) as store, store.snapshot() as snapshot:
            assert snapshot.state().of(NOTE) == {"a": FULL_NOTE, "b": Note()}
            assert snapshot.read(Keys(requests={"r"})).families[NOTE].records == {"a": FULL_NOTE}
            assert snapshot.due(Tick(value=0, era=9), 9) == [(NOTE, "a")]
        with self.opened(tmp_path) as store:
            assert store.soft.get(NOTE) == {"a": b"1"}

    def test_families_that_a_store_is_not_opened_with_are_left_alone(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            commit(store, first := batch(EMPTY, created=(lease(),), changes=created({"a": FULL_NOTE})))
        with self.opened(tmp_path, families=LEASES) as store:
            with store.snapshot() as snapshot:
                assert snapshot.state().records == {LEASE: {"lease-1": lease()}}
                assert snapshot.due(Tick(value=0, era=9), 9) == [(LEASE, "lease-1")]
                state = snapshot.state()
            with store.write() as transaction:
                transaction.rebuild(state)
            commit(store, batch(head_of(first), created=(lease("lease-2", resource="gate"),)))
        with self.opened(tmp_path) as store, store.snapshot() as snapshot:
            assert snapshot.state().of(NOTE) == {"a": FULL_NOTE}

"""What outlives the process that wrote it."""

from pathlib import Path

from leasehold.engine.port import EntryQuery, LeaseQuery
from leasehold.kernel.lease.records import Keys
from leasehold.testing.clock import FakeClock
from leasehold.testing.conformance.keeping import FULL
from leasehold.testing.conformance.opening import Opening, commit
from leasehold.testing.conformance.records import EMPTY, authority, batch, era, issued


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
            with self.opened(tmp_path, clock) as store, store.snapshot() as snapshot:
                names.append((store.url, snapshot.reading().identity))
        assert names[0] == names[1]

"""Reading the ledger: order, filters, pages, and the bytes that were hashed."""

from pathlib import Path
from typing import Any

from leasehold.engine.port import Batch, EntryQuery, Store
from leasehold.kernel.ledger.chain import Entry, check_entry
from leasehold.kernel.ledger.events import Event
from leasehold.testing.conformance.opening import Opening, commit
from leasehold.testing.conformance.records import (
    EMPTY,
    batch,
    head_of,
    issued,
    lease,
    opened,
    released,
    renewed,
)

_DOOR = lease("door-1", resource="door")
_GATE = lease("gate-1", resource="gate")
_OTHER = lease("other-1", resource="door", holder="bob", tenant="other")
_EVENTS: list[Event] = [
    opened(),
    issued(_DOOR, request="r-1"),
    issued(_GATE),
    issued(_OTHER),
    renewed(_DOOR, _GATE),
    renewed(_GATE, request="r-2"),
    released(_DOOR),
]


class History(Opening):
    """What `entries` returns for a query."""

    def test_entries_read_back_as_they_were_written(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            made = _write_history(store)
            assert _entries(store) == made.entries

    def test_the_chain_of_hashes_holds_after_reading_back(self, tmp_path: Path) -> None:
        awkward = lease(metadata={"ключ": '☕ \u2028 " \\ \u0000'}, resource="straße")
        first = batch(EMPTY, *_EVENTS, created=(_DOOR, _GATE, _OTHER))
        second = batch(head_of(first), issued(awkward), created=(awkward,))
        with self.opened(tmp_path, first, second) as store:
            previous: Entry | None = None
            for entry in _entries(store):
                check_entry(previous, entry)
                previous = entry
            assert previous is not None
            assert previous.position == len(_EVENTS) + 1

    def test_entries_are_read_from_a_position_on_and_no_more_than_asked(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            _write_history(store)
            assert _found(store, after=2, limit=3) == [3, 4, 5]
            assert _found(store, after=5, limit=3) == [6, 7]
            assert _found(store, after=7) == []
            assert _found(store, after=100) == []

    def test_entries_are_filtered_by_tenant_resource_holder_and_type(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            _write_history(store)
            assert _found(store, tenant="other") == [4]
            assert _found(store, tenant="default") == [2, 3, 5, 6, 7]
            assert _found(store, resource="door") == [2, 4, 7]
            assert _found(store, resource="door", tenant="default") == [2, 7]
            assert _found(store, holder="bob") == [4]
            assert _found(store, types=("lease.renewed", "store.opened")) == [1, 5, 6]
            assert _found(store, types=("lease.revoked",)) == []
            assert _found(store, holder="ann", types=("lease.issued",), after=2, limit=1) == [3]

    def test_all_entries_of_one_lease_are_found(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            _write_history(store)
            assert _found(store, lease_id="door-1") == [2, 5, 7]
            assert _found(store, lease_id="gate-1") == [3, 5, 6]
            assert _found(store, lease_id="other-1") == [4]
            assert _found(store, lease_id="nobody's") == []
            assert _found(store, lease_id="gate-1", after=3, types=("lease.renewed",), limit=1) == [5]

    def test_a_lease_in_a_batch_renewal_is_not_taken_for_one_with_a_longer_name(self, tmp_path: Path) -> None:
        short, long, other = (lease(name, resource=f"r-{name}") for name in ("a", "aa", "b"))
        made = batch(EMPTY, renewed(long, other), renewed(short, other), created=(short, long, other))
        with self.opened(tmp_path, made) as store:
            assert _found(store, lease_id="a") == [2]
            assert _found(store, lease_id="aa") == [1]

    def test_a_lease_in_a_batch_renewal_is_found_whatever_its_name(self, tmp_path: Path) -> None:
        names = ['quote"', "back\\slash", "☕", "100%", "a.b", "$", "[0]", "tab", "'"]
        leases = tuple(lease(name, resource=f"r-{name}") for name in names)
        with self.opened(tmp_path, batch(EMPTY, renewed(*leases), created=leases)) as store:
            for name in names:
                assert _found(store, lease_id=name) == [1], f"lease {name}"

    def test_a_batch_renewal_of_another_holder_is_not_found(self, tmp_path: Path) -> None:
        bobs = (lease("b1", resource="1", holder="bob"), lease("b2", resource="2", holder="bob"))
        made = batch(EMPTY, renewed(_DOOR, _GATE), renewed(*bobs), created=(_DOOR, _GATE, *bobs))
        with self.opened(tmp_path, made) as store:
            assert _found(store, lease_id="b2") == [2]
            assert _found(store, holder="bob") == [2]


def _write_history(store: Store) -> Batch:
    made = batch(EMPTY, *_EVENTS, created=(_DOOR, _GATE, _OTHER))
    commit(store, made)
    return made


def _entries(store: Store, **query: Any) -> list[Entry]:
    with store.snapshot() as snapshot:
        return snapshot.entries(EntryQuery(**query))


def _found(store: Store, **query: Any) -> list[int]:
    return [entry.position for entry in _entries(store, **query)]

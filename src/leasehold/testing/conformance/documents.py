"""Records of families that a store knows nothing about: each by its key."""

from pathlib import Path
from typing import Any

from leasehold.engine.port import EntryQuery, Store
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.journal import Change
from leasehold.kernel.ledger.records import Count, Found, Keys, Scan, Wanted
from leasehold.kernel.ledger.tick import Tick
from leasehold.testing.conformance.notes import (
    ABOVE,
    BELOW,
    CHORE,
    FULL_NOTE,
    KEYS,
    NOTE,
    Chore,
    Note,
    created,
    written,
)
from leasehold.testing.conformance.opening import (
    Opening,
    commit,
    counted,
    find_documents,
    read,
    reject,
    scanned,
)
from leasehold.testing.conformance.records import EMPTY, batch, head_of, lease, opened


class Documents(Opening):
    """What a store keeps of families that have no shelf of their own."""

    def test_a_store_says_which_families_it_was_opened_with(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            with store.snapshot() as snapshot, store.write() as transaction:
                assert snapshot.families is transaction.families is store.families
            assert [family.name for family in store.families] == [LEASE, NOTE, CHORE]

    def test_a_document_reads_back_field_by_field(self, tmp_path: Path) -> None:
        with self.opened(tmp_path, batch(EMPTY, changes=created({"a": FULL_NOTE, "b": Note()}))) as store:
            assert _notes(store, "a", "b") == {"a": FULL_NOTE, "b": Note()}

    def test_a_document_that_is_not_there_is_left_out(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            assert find_documents(store, NOTE, keys={"a"}) == Found()
            commit(store, batch(EMPTY, changes=created({"a": Note()})))
            assert find_documents(store, NOTE, keys={"b"}) == Found()
            assert _notes(store, "a", "", "A", "a ", "a\x01") == {"a": Note()}

    def test_every_family_that_is_asked_for_is_answered(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store, store.snapshot() as snapshot:
            found = snapshot.read(Keys(families={NOTE: Wanted(), CHORE: Wanted(keys={"a"})}))
            assert found.families == {NOTE: Found(), CHORE: Found()}
            assert snapshot.read(Keys()).families == {}

    def test_many_documents_are_found_by_key_at_once(self, tmp_path: Path) -> None:
        notes = {key: Note(number=number) for number, key in enumerate(KEYS)}
        wanted = KEYS[::2]
        with self.opened(tmp_path, batch(EMPTY, changes=created(notes))) as store:
            assert _notes(store, *wanted, "nobody's") == {key: notes[key] for key in wanted}
            for key in KEYS:
                assert _notes(store, key) == {key: notes[key]}

    def test_two_families_may_use_the_same_key(self, tmp_path: Path) -> None:
        chore = Chore(due=Tick(value=9))
        changes = (*created({"lease-1": Note(text="n")}), Change(CHORE, "lease-1", None, chore))
        with self.opened(tmp_path, batch(EMPTY, created=(lease(),), changes=changes)) as store:
            assert _notes(store, "lease-1") == {"lease-1": Note(text="n")}
            assert find_documents(store, CHORE, keys={"lease-1"}).records == {"lease-1": chore}
            with store.snapshot() as snapshot:
                assert snapshot.lease("lease-1") == lease()

    def test_a_document_can_be_replaced_and_removed(self, tmp_path: Path) -> None:
        first = batch(EMPTY, changes=created({"a": FULL_NOTE, "b": Note(text="b"), "c": Note(text="c")}))
        changes = (
            Change(NOTE, "a", FULL_NOTE, Note(text="other")),
            Change(NOTE, "b", Note(text="b"), None),
            Change(NOTE, "d", None, FULL_NOTE),
            Change(NOTE, "e", None, None),
        )
        with self.opened(tmp_path, first, batch(head_of(first), opened(), changes=changes)) as store:
            assert _notes(store, *"abcde") == {"a": Note(text="other"), "c": Note(text="c"), "d": FULL_NOTE}
            assert scanned(store, BELOW, ABOVE) == ["a", "c", "d"]
            assert counted(store, BELOW, ABOVE) == 3

    def test_a_removed_document_can_be_made_again(self, tmp_path: Path) -> None:
        first = batch(EMPTY, changes=created({"a": Note(text="first")}))
        second = batch(head_of(first), opened(), changes=(Change(NOTE, "a", Note(text="first"), None),))
        third = batch(head_of(second), opened(), changes=created({"a": Note(text="second")}))
        with self.opened(tmp_path) as store:
            for made in (first, second, third):
                commit(store, made)
            assert _notes(store, "a") == {"a": Note(text="second")}

    def test_a_document_cannot_be_created_twice(self, tmp_path: Path) -> None:
        first = batch(EMPTY, changes=created({"a": Note(text="first")}))
        again = created({"b": Note(), "a": Note(text="second")})
        with self.opened(tmp_path, first) as store:
            for changes in (again, created({"c": Note()}) * 2):
                reject(store, batch(head_of(first), opened(), changes=changes))
            assert _notes(store, "a", "b", "c") == {"a": Note(text="first")}
            with store.snapshot() as snapshot:
                assert snapshot.head == head_of(first)

    def test_a_batch_that_is_rejected_for_its_leases_leaves_no_documents(self, tmp_path: Path) -> None:
        both = (lease("a"), lease("b", holder="bob"))
        with self.opened(tmp_path) as store:
            reject(store, batch(EMPTY, created=both, changes=created({"a": Note()})))
            assert _notes(store, "a") == {}

    def test_a_request_leads_to_the_document_that_it_changed(self, tmp_path: Path) -> None:
        event = written("a", Note(text="a"), request="r")
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, event, changes=created({"a": Note(text="a"), "b": Note()})))
            found = read(store, requests={"r"}, keys={"lease-1"})
            assert found.requests == {"r": event}
            assert found.families[NOTE].records == {"a": Note(text="a")}
            assert found.families[LEASE].records == {}
            assert read(store, requests={"s"}).families == {}

    def test_entries_are_filtered_by_family(self, tmp_path: Path) -> None:
        events = [opened(), written("a", Note()), written("b", FULL_NOTE)]
        with self.opened(tmp_path, made := batch(EMPTY, *events, created=(lease(),))) as store:
            assert _entries(store, family=NOTE) == made.entries[1:3]
            assert _entries(store, family="store") == made.entries[:1]
            assert _entries(store, family=CHORE) == _entries(store, family="not") == []
            assert _entries(store, family=NOTE, after=2) == made.entries[2:3]

    def test_what_another_family_says_of_a_lease_is_in_its_history(self, tmp_path: Path) -> None:
        events = [written("lease-1", Note()), written("b", Note(), lease_id="lease-1"), opened()]
        with self.opened(tmp_path, first := batch(EMPTY, created=(lease(),))) as store:
            commit(store, made := batch(head_of(first), *events))
            assert _entries(store, lease_id="lease-1") == [*first.entries, made.entries[1]]
            assert _entries(store, lease_id="lease-1", family=LEASE) == first.entries

    def test_entries_are_filed_as_what_they_are(self, tmp_path: Path) -> None:
        events = [opened(), written("a", FULL_NOTE, request="r", lease_id="x"), written("b", Note())]
        with self.opened(tmp_path, made := batch(EMPTY, *events)) as store, store.snapshot() as snapshot:
            for row, entry in zip(snapshot.rows(0, 9), made.entries, strict=True):
                assert row[:4] == (entry.position, entry.body, entry.hash, entry.seal)
                assert row[5:] == snapshot.filing(entry.event)

    def test_a_snapshot_sees_no_later_change_of_a_document(self, tmp_path: Path) -> None:
        first = batch(EMPTY, changes=created({"a": Note(), "b": _due(1)}))
        changes = (
            Change(NOTE, "a", Note(), FULL_NOTE),
            Change(NOTE, "b", _due(1), None),
            *created({"c": FULL_NOTE}),
        )
        with self.opened(tmp_path, first) as store, store.snapshot() as snapshot:
            assert snapshot.head == head_of(first)
            commit(store, batch(head_of(first), opened(), changes=changes))
            wanted = Wanted(keys={"a"}, scans={Scan(BELOW, ABOVE)}, counts={Count(BELOW, ABOVE)})
            found = snapshot.read(Keys(families={NOTE: wanted})).families[NOTE]
            assert found.records == {"a": Note(), "b": _due(1)}
            assert (*found.scans.values(), *found.counts.values()) == (["a", "b"], 2)
            assert snapshot.due(Tick(value=9), 9) == [(NOTE, "b")]


def _due(value: int, era: int = 1) -> Note:
    return Note(due=Tick(value=value, era=era))


def _notes(store: Store, *keys: str) -> dict[str, Note]:
    return find_documents(store, NOTE, keys=keys).records


def _entries(store: Store, **query: Any) -> list[Any]:
    with store.snapshot() as snapshot:
        return snapshot.entries(EntryQuery(**query))

"""What the tables say as a whole, and how another state is put in their place."""

from pathlib import Path

from leasehold.engine.port import Batch, Checkpoint, LeaseQuery, Pruned
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.journal import Change
from leasehold.kernel.ledger.records import Scan
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick
from leasehold.testing.conformance.notes import ABOVE, BELOW, CHORE, FULL_NOTE, NOTE, Chore, Note, created
from leasehold.testing.conformance.opening import Opening, commit, find, find_documents
from leasehold.testing.conformance.records import EMPTY, authority, batch, era, head_of, lease, opened, waiter


class Rebuilding(Opening):
    """The state of all tables, and what replaces or thins them out."""

    def test_the_state_has_every_family_and_every_record(self, tmp_path: Path) -> None:
        made = batch(
            EMPTY, created=(lease(),), changes=created({"a": FULL_NOTE, "b": Note()}), ended_eras=(era(1),)
        )
        with self.opened(tmp_path) as store:
            with store.snapshot() as snapshot:
                assert snapshot.state() == State(records={LEASE: {}, NOTE: {}, CHORE: {}})
            commit(store, made)
            with store.snapshot() as snapshot:
                assert snapshot.state() == State(
                    records={LEASE: {"lease-1": lease()}, NOTE: {"a": FULL_NOTE, "b": Note()}, CHORE: {}},
                    authority=made.authority,
                    eras={1: era(1)},
                )

    def test_a_state_replaces_all_tables_but_the_ledger(self, tmp_path: Path) -> None:
        made = batch(
            EMPTY,
            created=(lease("old"), waiter("waits", 7)),
            changes=(
                *created({"a": FULL_NOTE, "b": Note(due=Tick(value=1))}),
                Change(CHORE, "gone", None, Chore(due=Tick(value=1))),
            ),
            ended_eras=(era(1),),
        )
        state = State(
            records={
                LEASE: {"new": lease("new", resource="gate")},
                NOTE: {"b": FULL_NOTE, "c": Note(due=Tick(value=2))},
                CHORE: {},
            },
            authority=made.authority,
            eras={2: era(2)},
        )
        with self.opened(tmp_path, made) as store:
            with store.write() as transaction:
                transaction.rebuild(state)
            with store.snapshot() as snapshot:
                assert snapshot.state() == state
                assert snapshot.head == head_of(made)
                assert [one.lease_id for one in snapshot.leases(LeaseQuery())] == ["new"]
                assert snapshot.due(Tick(value=9), 9) == [(NOTE, "c")]
            scan = Scan(BELOW, ABOVE)
            assert find_documents(store, NOTE, scans={scan}).scans == {scan: ["b", "c"]}
            assert find(store, resources={("default", "door")}).records == {}
            assert find(store, resources={("default", "door")}).awaited == set()

    def test_forgotten_documents_are_gone_and_the_others_stay(self, tmp_path: Path) -> None:
        first = batch(
            EMPTY, created=(lease("a"),), changes=created({"a": Note(due=Tick(value=1)), "b": FULL_NOTE})
        )
        with self.opened(tmp_path, first) as store:
            store.soft.put(NOTE, {"a": b"1", "b": b"2"})
            store.soft.put(LEASE, {"a": b"3"})
            commit(store, _forgetting(first, {NOTE: ["a", "nobody's"], LEASE: [], CHORE: []}))
            scan = Scan(BELOW, ABOVE)
            assert find_documents(store, NOTE, keys={"a"}, scans={scan}).scans == {scan: ["b"]}
            assert find_documents(store, NOTE, keys={"a", "b"}).records == {"b": FULL_NOTE}
            assert find(store, keys={"a"}).records == {"a": lease("a")}
            assert (store.soft.get(NOTE), store.soft.get(LEASE)) == ({"b": b"2"}, {"a": b"3"})
            with store.snapshot() as snapshot:
                assert snapshot.due(Tick(value=9), 9) == []

    def test_a_forgotten_document_leaves_that_of_another_family_with_its_key(self, tmp_path: Path) -> None:
        chore = Chore(due=Tick(value=9))
        first = batch(EMPTY, changes=(*created({"a": Note()}), Change(CHORE, "a", None, chore)))
        with self.opened(tmp_path, first) as store:
            store.soft.put(CHORE, {"a": b"1"})
            commit(store, _forgetting(first, {NOTE: ["a"], CHORE: []}))
            assert find_documents(store, NOTE, keys={"a"}).records == {}
            assert find_documents(store, CHORE, keys={"a"}).records == {"a": chore}
            assert store.soft.get(CHORE) == {"a": b"1"}

    def test_a_store_of_leases_only_has_no_other_family(self, tmp_path: Path) -> None:
        with self.opened(tmp_path, families=LEASES) as store:
            commit(store, batch(EMPTY, created=(lease(),), record=authority()))
            with store.snapshot() as snapshot:
                assert snapshot.state().records == {LEASE: {"lease-1": lease()}}
                assert snapshot.due(Tick(value=10**9), 9) == [(LEASE, "lease-1")]


def _forgetting(first: Batch, forgotten: dict[str, list[str]]) -> Batch:
    made = batch(head_of(first), opened())
    checkpoint = Checkpoint(position=made.entries[0].position, state=b"{}")
    return Batch(
        entries=made.entries,
        changes=[],
        authority=made.authority,
        ended_eras=[],
        pruned=Pruned(through=1, forgotten=forgotten, checkpoint=checkpoint),
    )

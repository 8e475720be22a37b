"""Taking old entries and ended leases away: all in one commit, and for good."""

from pathlib import Path

from leasehold.engine.port import Batch, Checkpoint, EntryQuery, Pruned
from leasehold.kernel.lease.records import LEASE
from leasehold.testing.conformance.opening import Opening, commit, find_leases, read
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

_OLD = lease("old-1", resource="old")
_DOOR = lease("door-1", resource="door")
_STATE = '{"made up": "☕"}'.encode()


def _history() -> Batch:
    return batch(
        EMPTY,
        opened(),
        issued(_OLD, request="r-1"),
        released(_OLD),
        issued(_DOOR, request="r-2"),
        created=(_OLD, _DOOR),
    )


def _pruning(first: Batch, through: int = 3, state: bytes = _STATE) -> Batch:
    made = batch(head_of(first), opened())
    position = made.entries[0].position
    pruned = Pruned(
        through=through,
        forgotten={"lease": ["old-1", "nobody's"], "note": []},
        checkpoint=Checkpoint(position=position, state=state),
    )
    return Batch(
        entries=made.entries,
        changes=[],
        authority=made.authority,
        ended_eras=[],
        pruned=pruned,
    )


class Pruning(Opening):
    """What a commit takes away is gone, and everything else is where it was."""

    def test_a_ledger_that_was_never_pruned_says_so(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            with store.snapshot() as snapshot:
                assert (snapshot.pruned, snapshot.checkpoint()) == (0, None)
            commit(store, _history())
            with store.snapshot() as snapshot:
                assert (snapshot.pruned, snapshot.checkpoint()) == (0, None)

    def test_pruned_entries_are_gone_and_the_others_keep_their_positions(self, tmp_path: Path) -> None:
        first = _history()
        with self.opened(tmp_path, first, made := _pruning(first)) as store, store.snapshot() as snapshot:
            left = [*first.entries[3:], *made.entries]
            assert snapshot.entries(EntryQuery()) == left
            assert snapshot.entries(EntryQuery(after=1)) == left
            assert snapshot.entries(EntryQuery(after=4)) == left[1:]
            assert [row[0] for row in snapshot.rows(0, 10)] == [4, 5]
            assert [row[0] for row in snapshot.rows(2, 1)] == [4]
            assert [row[0] for row in snapshot.rows(4, 10)] == [5]
            assert (snapshot.pruned, snapshot.head) == (3, head_of(made))

    def test_forgotten_leases_are_gone_and_the_others_stand(self, tmp_path: Path) -> None:
        first = _history()
        with self.opened(tmp_path, first, _pruning(first)) as store:
            assert find_leases(store, keys={"old-1", "door-1"}) == [_DOOR]
            with store.snapshot() as snapshot:
                assert snapshot.state().of(LEASE) == {"door-1": _DOOR}

    def test_requests_are_forgotten_with_their_entries_only(self, tmp_path: Path) -> None:
        first = _history()
        with self.opened(tmp_path, first, _pruning(first)) as store:
            assert read(store, requests={"r-1", "r-2"}).requests == {"r-2": first.entries[3].event}

    def test_the_state_reads_back_and_is_replaced_by_the_next(self, tmp_path: Path) -> None:
        first = _history()
        with self.opened(tmp_path, first, second := _pruning(first)) as store:
            with store.snapshot() as snapshot:
                assert snapshot.checkpoint() == Checkpoint(position=5, state=_STATE)
            commit(store, _pruning(second, through=4, state=b"{}"))
            with store.snapshot() as snapshot:
                assert snapshot.checkpoint() == Checkpoint(position=6, state=b"{}")
                assert [entry.position for entry in snapshot.entries(EntryQuery())] == [5, 6]

    def test_a_pruned_ledger_goes_on(self, tmp_path: Path) -> None:
        first = _history()
        with self.opened(tmp_path, first, second := _pruning(first, through=4)) as store:
            commit(store, third := batch(head_of(second), renewed(_DOOR, request="r-3")))
            assert read(store, requests={"r-3"}).requests == {"r-3": third.entries[0].event}
            assert store.wait(5, timeout=0)
            assert not store.wait(6, timeout=0)
            with store.snapshot() as snapshot:
                assert [entry.position for entry in snapshot.entries(EntryQuery())] == [5, 6]

    def test_a_snapshot_from_before_still_has_what_was_pruned(self, tmp_path: Path) -> None:
        first = _history()
        with self.opened(tmp_path, first) as store, store.snapshot() as snapshot:
            commit(store, _pruning(first))
            assert snapshot.entries(EntryQuery()) == first.entries
            assert (snapshot.pruned, snapshot.checkpoint()) == (0, None)

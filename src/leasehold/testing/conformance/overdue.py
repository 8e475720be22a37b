"""When time has something to do with records, of whatever family."""

from pathlib import Path

from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.journal import Change
from leasehold.kernel.ledger.tick import Tick
from leasehold.testing.conformance.notes import (
    CHORE,
    NOTE,
    Chore,
    Note,
    created,
)
from leasehold.testing.conformance.opening import Opening, commit
from leasehold.testing.conformance.records import EMPTY, batch, head_of, lease, opened


class Overdue(Opening):
    """What is due, and in which order."""

    def test_records_of_all_families_are_due_together_the_longest_overdue_first(self, tmp_path: Path) -> None:
        made = batch(
            EMPTY,
            created=(
                lease("lease", expires_tick=Tick(value=30)),
                lease("later", resource="r", expires_tick=Tick(value=10, era=2)),
            ),
            changes=(
                *created({"first": _due(20), "last": _due(50), "never": Note(), "earlier": _due(99, era=0)}),
                Change(CHORE, "chore", None, Chore(due=Tick(value=40))),
            ),
        )
        expected = [
            (NOTE, "earlier"),
            (NOTE, "first"),
            (LEASE, "lease"),
            (CHORE, "chore"),
            (NOTE, "last"),
            (LEASE, "later"),
        ]
        with self.opened(tmp_path, made) as store, store.snapshot() as snapshot:
            assert snapshot.due(Tick(value=10, era=2), 9) == expected
            assert snapshot.due(Tick(value=10, era=2), 3) == expected[:3]
            assert snapshot.due(Tick(value=40), 9) == expected[:4]
            assert snapshot.due(Tick(value=39), 9) == expected[:3]
            assert snapshot.due(Tick(value=0, era=0), 9) == []

    def test_a_document_is_due_at_its_new_time_or_not_at_all(self, tmp_path: Path) -> None:
        first = batch(EMPTY, changes=created({"a": _due(10), "b": _due(11), "c": _due(12), "d": Note()}))
        changes = (
            Change(NOTE, "a", _due(10), _due(30)),
            Change(NOTE, "b", _due(11), Note()),
            Change(NOTE, "c", _due(12), None),
            Change(NOTE, "d", Note(), _due(20)),
        )
        made = batch(head_of(first), opened(), changes=changes)
        with self.opened(tmp_path, first, made) as store, store.snapshot() as snapshot:
            assert snapshot.due(Tick(value=29), 9) == [(NOTE, "d")]
            assert snapshot.due(Tick(value=30), 9) == [(NOTE, "d"), (NOTE, "a")]

    def test_orphans_come_behind_everything_that_is_due(self, tmp_path: Path) -> None:
        left = lease("left", state=LeaseState.EXPIRED, delegation=Delegation(orphaned=True))
        orphan = lease("orphan", resource="r", delegation=Delegation(ancestors=("left",)))
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(left, orphan), changes=created({"a": _due(10)})))
            with store.snapshot() as snapshot:
                assert snapshot.due(Tick(value=20), 9) == [(NOTE, "a"), (LEASE, "orphan")]


def _due(value: int, era: int = 1) -> Note:
    return Note(due=Tick(value=value, era=era))

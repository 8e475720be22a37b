"""Documents in the order of their keys: scans and counts."""

from pathlib import Path
from typing import Any

from leasehold.kernel.ledger.journal import Change
from leasehold.kernel.ledger.key import spell_key, under
from leasehold.kernel.ledger.records import Count, Scan
from leasehold.kernel.ledger.tick import Tick
from leasehold.testing.conformance.notes import (
    ABOVE,
    BELOW,
    CHORE,
    KEYS,
    NOTE,
    Chore,
    Note,
    created,
)
from leasehold.testing.conformance.opening import Opening, commit, counted, find_documents, scanned
from leasehold.testing.conformance.records import EMPTY, batch, lease


class Ranges(Opening):
    """What lies in a range of keys."""

    def test_a_scan_finds_keys_in_the_order_of_their_bytes(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, changes=created({key: Note(text=key) for key in reversed(KEYS)})))
            forward, back = Scan(BELOW, ABOVE), Scan(BELOW, ABOVE, reverse=True)
            found = find_documents(store, NOTE, scans={forward, back})
            assert found.scans == {forward: KEYS, back: KEYS[::-1]}
            assert found.records == {key: Note(text=key) for key in KEYS}

    def test_a_scan_ends_at_its_limit_from_whichever_end(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, changes=created({key: Note(text=key) for key in KEYS})))
            for limit in (1, 3, len(KEYS), len(KEYS) + 1):
                assert scanned(store, BELOW, ABOVE, limit) == KEYS[:limit]
                assert scanned(store, BELOW, ABOVE, limit, reverse=True) == KEYS[::-1][:limit]

    def test_a_range_has_its_beginning_and_not_its_end(self, tmp_path: Path) -> None:
        with self.opened(tmp_path, batch(EMPTY, changes=created({key: Note() for key in KEYS}))) as store:
            for first in range(len(KEYS)):
                for end in (first, first + 1, len(KEYS) - 1):
                    low, high = KEYS[first], KEYS[min(end, len(KEYS) - 1)]
                    inside = [key for key in KEYS if low <= key < high]
                    assert scanned(store, low, high) == inside
                    assert scanned(store, low, high, reverse=True) == inside[::-1]
                    assert counted(store, low, high) == len(inside)

    def test_what_lies_under_a_prefix_is_a_range(self, tmp_path: Path) -> None:
        expected: dict[tuple[Any, ...], list[str]] = {
            ("a",): [key for key in KEYS if key.startswith("a\x01")],
            ("a", "b"): [spell_key("a", "b", "c")],
            ("n",): [key for key in KEYS if key.startswith("n\x01")],
            ("é",): [],
            ("nobody",): [],
        }
        with self.opened(tmp_path, batch(EMPTY, changes=created({key: Note() for key in KEYS}))) as store:
            for prefix, keys in expected.items():
                assert scanned(store, *under(*prefix)) == keys
                assert counted(store, *under(*prefix)) == len(keys)

    def test_many_scans_and_counts_are_answered_at_once(self, tmp_path: Path) -> None:
        ranges = [(low, high) for low in KEYS[::3] for high in (*KEYS[::4], ABOVE)]
        scans = {Scan(*one, limit, reverse=limit == 2) for one in ranges for limit in (1, 2, 5)}
        counts = {Count(*one) for one in ranges}
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, changes=created({key: Note(text=key) for key in KEYS})))
            found = find_documents(store, NOTE, scans=scans, counts=counts)
            assert found.counts == {
                count: sum(count.low <= key < count.high for key in KEYS) for count in counts
            }
            for scan in scans:
                inside = [key for key in KEYS if scan.low <= key < scan.high]
                assert found.scans[scan] == (inside[::-1] if scan.reverse else inside)[: scan.limit]
            assert found.records == {
                key: Note(text=key) for key in {key for keys in found.scans.values() for key in keys}
            }

    def test_a_scan_of_one_family_finds_nothing_of_another(self, tmp_path: Path) -> None:
        chores = (Change(CHORE, "b", None, Chore(due=Tick(value=9))),)
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(lease("c"),), changes=(*created({"a": Note()}), *chores)))
            assert scanned(store, BELOW, ABOVE) == ["a"]
            assert counted(store, BELOW, ABOVE) == 1

"""What is kept beside the ledger: the last value wins, and nothing else changes for it."""

from pathlib import Path

from leasehold.engine.port import EntryQuery
from leasehold.errors import ClientClosed
from leasehold.testing.conformance.opening import Opening, commit
from leasehold.testing.conformance.records import EMPTY, batch, head_of, lease

_AWKWARD = bytes(range(256))


class Softness(Opening):
    """Values by family and key."""

    def test_there_is_no_soft_state_at_first(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            assert store.soft.get("note") == {}

    def test_values_read_back_and_the_last_one_wins(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            store.soft.put("note", {"a": b"1", "ключ ☕\x01": _AWKWARD})
            store.soft.put("note", {"a": b"2", "b": b"3"})
            assert store.soft.get("note") == {"a": b"2", "b": b"3", "ключ ☕\x01": _AWKWARD}

    def test_families_are_apart_and_need_not_be_known(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            store.soft.put("note", {"a": b"1"})
            store.soft.put("nobody's", {"a": b"2"})
            assert (store.soft.get("note"), store.soft.get("nobody's")) == ({"a": b"1"}, {"a": b"2"})

    def test_an_empty_value_takes_its_key_away(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            store.soft.put("note", {"a": b"1", "b": b"2", "c": b"3"})
            store.soft.put("note", {"a": b"", "b": b"4", "d": b""})
            store.soft.put("note", {})
            assert store.soft.get("note") == {"b": b"4", "c": b"3"}

    def test_what_was_got_does_not_change_any_more(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            store.soft.put("note", {"a": b"1"})
            before = store.soft.get("note")
            store.soft.put("note", {"a": b"2"})
            assert before == {"a": b"1"}

    def test_another_client_sees_it(self, tmp_path: Path) -> None:
        with self.opened_twice(tmp_path) as (first, second):
            first.soft.put("note", {"a": b"1"})
            assert second.soft.get("note") == {"a": b"1"}

    def test_neither_the_ledger_nor_the_records_change_for_it(self, tmp_path: Path) -> None:
        made = batch(EMPTY, created=(lease(),))
        with self.opened(tmp_path) as store:
            store.soft.put("lease", {"lease-1": b"1"})
            with store.snapshot() as snapshot:
                assert snapshot.authority is None
            commit(store, made)
            with store.snapshot() as snapshot:
                before = snapshot.state()
            store.soft.put("lease", {"lease-1": b"2"})
            with store.snapshot() as snapshot:
                assert snapshot.state() == before
                assert snapshot.head == head_of(made)
                assert snapshot.entries(EntryQuery()) == made.entries

    def test_a_rebuild_leaves_it_alone(self, tmp_path: Path) -> None:
        with self.opened(tmp_path, batch(EMPTY, created=(lease(),))) as store:
            store.soft.put("lease", {"lease-1": b"1"})
            with store.write() as transaction:
                transaction.rebuild(transaction.state())
            assert store.soft.get("lease") == {"lease-1": b"1"}

    def test_a_closed_store_refuses_it(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            store.soft.put("note", {"a": b"1"})
            store.close()
            try:
                store.soft.get("note")
            except ClientClosed:
                return
            raise AssertionError("a closed store could be used")

"""Many clients of one store: turns, snapshots, waiting, closing."""

import threading
from pathlib import Path

from leasehold.engine.port import EntryQuery, LeaseQuery, Store, WouldBlock
from leasehold.errors import ClientClosed
from leasehold.kernel.lease.records import LEASE, LeaseWanted
from leasehold.kernel.ledger.records import Keys
from leasehold.testing.clock import FakeClock
from leasehold.testing.conformance.opening import Opening, commit
from leasehold.testing.conformance.records import EMPTY, batch, head_of, issued, lease

_PATIENCE = 30.0
"""Seconds after which a test that waits for another thread has failed."""


class Sharing(Opening):
    """What clients of one store see of each other."""

    def test_a_transaction_reads_the_stores_clock_at_the_moment_of_asking(self, tmp_path: Path) -> None:
        clock = FakeClock(tick_ns=500, wall_ns=900, boot_id="boot-x")
        with self.opened(tmp_path, clock=clock) as store, store.write() as transaction:
            before = transaction.reading()
            clock.advance(ns=11)
            after = transaction.reading()
        assert (before.tick_value, before.wall_ns, before.boot_id) == (500, 900, "boot-x")
        assert (after.tick_value, after.wall_ns) == (511, 911)

    def test_a_snapshot_reads_the_same_clock_and_names_the_same_store(self, tmp_path: Path) -> None:
        with self.opened_twice(tmp_path) as (first, second):
            with first.write() as transaction:
                written = transaction.reading()
            with second.snapshot() as snapshot:
                assert snapshot.reading() == written

    def test_what_one_client_commits_the_other_sees(self, tmp_path: Path) -> None:
        with self.opened_twice(tmp_path) as (first, second):
            commit(first, batch(EMPTY, created=(lease(),)))
            with second.snapshot() as snapshot:
                assert snapshot.leases(LeaseQuery()) == [lease()]

    def test_a_revision_stays_while_nobody_commits(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            with store.write() as transaction:
                transaction.commit(batch(EMPTY, created=(lease(),)))
                left = transaction.revision
            with store.write() as transaction:
                assert transaction.revision == left
            with store.write() as transaction:
                assert transaction.revision == left

    def test_a_revision_changes_with_every_commit_of_whomever(self, tmp_path: Path) -> None:
        made = batch(EMPTY, created=(lease("a"),))
        theirs = batch(head_of(made), created=(lease("b", resource="b"),))
        with self.opened_twice(tmp_path) as (first, second):
            with first.write() as transaction:
                found = transaction.revision
                transaction.commit(made)
                left = transaction.revision
            commit(second, theirs)
            with first.write() as transaction:
                seen = transaction.revision
        assert None in (found, left, seen) or len({found, left, seen}) == 3

    def test_a_snapshot_sees_no_later_commit(self, tmp_path: Path) -> None:
        made = batch(EMPTY, created=(lease("a"),))
        later = batch(head_of(made), issued(lease("b"), request="r"), created=(lease("b", resource="b"),))
        with self.opened_twice(tmp_path) as (first, second):
            commit(first, made)
            with first.snapshot() as snapshot:
                assert snapshot.head == head_of(made)
                commit(second, later)
                assert snapshot.head == head_of(made)
                assert snapshot.authority == made.authority
                assert [one.lease_id for one in snapshot.leases(LeaseQuery())] == ["a"]
                assert [entry.position for entry in snapshot.entries(EntryQuery())] == [1]
                keys = Keys(requests={"r"}, families={LEASE: LeaseWanted(keys={"b"})})
                found = snapshot.read(keys)
                assert (found.requests, found.families[LEASE].records) == ({}, {})
            with first.snapshot() as snapshot:
                assert snapshot.head == head_of(later)

    def test_a_writer_does_not_wait_for_an_open_snapshot(self, tmp_path: Path) -> None:
        with (
            self.opened(tmp_path) as store,
            store.snapshot(),
            store.write(blocking=False) as transaction,
        ):
            transaction.commit(batch(EMPTY))

    def test_who_does_not_want_to_wait_for_another_writer_is_told(self, tmp_path: Path) -> None:
        with self.opened_twice(tmp_path) as (first, second):
            with first.write() as transaction:
                for store in (first, second):
                    assert _would_block(store), "two writers were at work at once"
                transaction.commit(batch(EMPTY))
            with second.write(blocking=False) as transaction:
                assert transaction.head.position == 1

    def test_a_writer_that_waits_sees_what_the_one_before_it_committed(self, tmp_path: Path) -> None:
        with self.opened_twice(tmp_path) as (first, second):
            seen: list[int] = []

            def write_second() -> None:
                with second.write() as transaction:
                    seen.append(transaction.head.position)

            with first.write() as transaction:
                waiter = threading.Thread(target=write_second)
                waiter.start()
                transaction.commit(batch(EMPTY))
            waiter.join(_PATIENCE)
            assert seen == [1]

    def test_no_commit_of_many_writers_is_lost(self, tmp_path: Path) -> None:
        writers, rounds = 4, 10
        with self.opened_twice(tmp_path) as stores:
            threads = [
                threading.Thread(target=_append, args=(stores[number % 2], rounds))
                for number in range(writers)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(_PATIENCE)
            with stores[0].snapshot() as snapshot:
                assert snapshot.head.position == writers * rounds
                entries = snapshot.entries(EntryQuery())
                assert [entry.position for entry in entries] == list(range(1, writers * rounds + 1))

    def test_a_durable_commit_is_a_commit_like_any_other(self, tmp_path: Path) -> None:
        first = batch(EMPTY)
        with self.opened(tmp_path) as store:
            with store.write(durable=True) as transaction:
                transaction.commit(first)
            commit(store, batch(head_of(first), created=(lease(),)))
            with store.snapshot() as snapshot:
                assert snapshot.head.position == 2

    def test_waiting_for_what_is_there_already_does_not_wait(self, tmp_path: Path) -> None:
        with self.opened(tmp_path, batch(EMPTY)) as store:
            assert store.wait(0, timeout=0)

    def test_waiting_for_what_does_not_come_ends_in_time(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            assert not store.wait(0, timeout=0)
            commit(store, batch(EMPTY))
            assert not store.wait(1, timeout=0.01)

    def test_who_waits_is_woken_by_a_commit_of_any_client(self, tmp_path: Path) -> None:
        with self.opened_twice(tmp_path) as (first, second):
            for position, store in enumerate((first, second)):
                woken: list[bool] = []
                waiter = threading.Thread(target=_wait, args=(first, position, woken))
                waiter.start()
                _append(store, rounds=1)
                waiter.join(_PATIENCE)
                assert woken == [True]

    def test_closing_twice_is_fine(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            store.close()
            store.close()

    def test_a_closed_store_refuses_to_be_used(self, tmp_path: Path) -> None:
        with self.opened(tmp_path, batch(EMPTY)) as store:
            store.close()
            for use in (_write, _look, lambda closed: closed.wait(0, timeout=0)):
                try:
                    use(store)
                except ClientClosed:
                    continue
                raise AssertionError("a closed store could be used")


def _would_block(store: Store) -> bool:
    """Try to write from another thread, and say whether that was refused."""
    refused: list[bool] = []

    def try_to_write() -> None:
        try:
            with store.write(blocking=False):
                refused.append(False)
        except WouldBlock:
            refused.append(True)

    thread = threading.Thread(target=try_to_write)
    thread.start()
    thread.join(_PATIENCE)
    return refused == [True]


def _append(store: Store, rounds: int) -> None:
    for _ in range(rounds):
        with store.write() as transaction:
            transaction.commit(batch(transaction.head))


def _wait(store: Store, position: int, woken: list[bool]) -> None:
    woken.append(store.wait(position, timeout=2 * _PATIENCE))


def _write(store: Store) -> None:
    with store.write():
        pass


def _look(store: Store) -> None:
    with store.snapshot():
        pass

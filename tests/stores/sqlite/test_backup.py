"""Copying a store that may be in use."""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace

from leasehold import InvalidInput, StoreUnusable, connect
from leasehold.engine.port import EntryQuery
from leasehold.engine.recording import open_epoch
from leasehold.kernel.ledger.records import Keys
from leasehold.stores.sqlite import SqliteStore, copying
from leasehold.stores.sqlite.backup import backup, restore
from leasehold.stores.sqlite.inspecting import inspected
from leasehold.testing.conformance.notes import FAMILIES, FULL_NOTE, NOTE, created, written
from leasehold.testing.conformance.records import batch
from tests.stores.sqlite.support import (
    Other,
    Pipe,
    client_of,
    contents_of,
    epoch_of,
    open_store,
    others,
    problems_of,
    tokens_of,
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with some history, in a folder of its own."""
    path = tmp_path / "store"
    with client_of(path) as client:
        for number in range(20):
            client.acquire(f"resource-{number}", ttl=3600).detach()
    return path


@pytest.fixture
def page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "_PAGES_PER_STEP", 1)


@pytest.mark.usefixtures("page_by_page")
def test_a_backup_of_a_store_in_use_holds_one_moment_of_it(tmp_path: Path, store: Path) -> None:
    with others(Other(acquire_for_ever, store)) as (busy,):
        before = [busy.hear() for _ in range(5)]
        told: list[tuple[int, int]] = []

        def wait_for_more(done: int, total: int) -> None:
            told.append((done, total))
            # Between any two pages of the copy there are commits, each of which could start it over.
            busy.hear()

        backup(store, tmp_path / "backup.db", wait_for_more)
    restored = tmp_path / "restored"
    restore(tmp_path / "backup.db", restored)
    assert problems_of(restored) == []
    assert set(before) <= tokens_of(restored) < tokens_of(store)
    assert len(told) == told[-1][1], "it was copied once, not over and over"


def acquire_for_ever(pipe: Pipe, path: Path) -> None:
    with client_of(path, holder="busy") as client:
        while True:
            lease = client.acquire("busy resource", ttl=3600)
            pipe.send(lease.token)
            lease.release()


@pytest.mark.usefixtures("page_by_page")
def test_progress_is_told_page_by_page_up_to_the_last(tmp_path: Path, store: Path) -> None:
    told: list[tuple[int, int]] = []
    backup(store, tmp_path / "backup.db", lambda done, total: told.append((done, total)))
    pages = told[0][1]
    assert pages > 10
    assert told == [(done, pages) for done in range(1, pages + 1)]


def test_a_backup_says_what_it_holds(tmp_path: Path, store: Path) -> None:
    copied = backup(store, tmp_path / "backup.db")
    assert (copied.epoch, copied.entries) == (epoch_of(store), 21)
    assert copied.path == tmp_path / "backup.db"
    assert copied.size_bytes == copied.path.stat().st_size


def test_a_backup_is_one_file_that_only_its_owner_can_read(tmp_path: Path, store: Path) -> None:
    with umask(0):
        backup(store, tmp_path / "backup.db")
    assert contents_of(tmp_path).keys() == {"backup.db"}
    assert stat.S_IMODE((tmp_path / "backup.db").stat().st_mode) == 0o600


def test_a_backup_can_be_read_from_where_nothing_can_be_written(tmp_path: Path, store: Path) -> None:
    backup(store, tmp_path / "backup.db")
    header = (tmp_path / "backup.db").read_bytes()[18:20]
    assert header == b"\x01\x01", "a file in write-ahead mode needs files beside it even to be read"


def test_a_backup_does_not_replace_a_file_unless_told(tmp_path: Path, store: Path) -> None:
    target = tmp_path / "backup.db"
    target.write_text("precious")
    with pytest.raises(InvalidInput, match="exists already"):
        backup(store, target)
    assert target.read_text() == "precious"
    backup(store, target, overwrite=True)
    restore(target, tmp_path / "restored")
    assert problems_of(tmp_path / "restored") == []


def test_a_backup_replaces_no_device_and_no_folder(tmp_path: Path, store: Path) -> None:
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe)
    folder.mkdir()
    for target in (pipe, folder):
        with pytest.raises(InvalidInput, match="is no file"):
            backup(store, target, overwrite=True)
    assert pipe.is_fifo()


def test_a_backup_does_not_replace_a_file_that_comes_up_meanwhile(tmp_path: Path, store: Path) -> None:
    target = tmp_path / "backup.db"

    def come_up(done: int, total: int) -> None:
        target.write_text("precious")

    with pytest.raises(InvalidInput, match="exists already"):
        backup(store, target, come_up)
    assert contents_of(tmp_path) == {"backup.db": b"precious"}


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_store_is_never_its_own_backup(store: Path, overwrite: bool) -> None:
    (store.parent / "alias").symlink_to(store)
    for target in (store, store / "leases.db", store / "backup", store.parent / "alias" / "leases.db-wal"):
        with pytest.raises(InvalidInput, match="in the store itself"):
            backup(store, target, overwrite=overwrite)
    assert problems_of(store) == []


def test_a_backup_cannot_be_taken_for_a_store(tmp_path: Path, store: Path) -> None:
    target = tmp_path / "backup.db"
    backup(store, target)
    before = contents_of(tmp_path)
    with pytest.raises(StoreUnusable, match="leasehold restore"):
        connect(str(target))
    assert contents_of(tmp_path) == before
    # Not even in the place of the store, as somebody in a hurry might put it there.
    shutil.copyfile(target, store / "leases.db")
    with pytest.raises(StoreUnusable, match="leasehold restore"):
        connect(str(store))


def test_a_backup_that_does_not_read_back_is_not_kept(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "backup.db"
    lost = "DELETE FROM events WHERE position = (SELECT max(position) FROM events)"
    copy_pages = copying.copy_pages

    def copy_badly(source: apsw.Connection, copy: apsw.Connection, reporter: copying.Reporter) -> None:
        copy_pages(source, copy, reporter)
        copy.execute(lost)

    monkeypatch.setattr("leasehold.stores.sqlite.backup.copy_pages", copy_badly)
    with pytest.raises(StoreUnusable, match="not what was written"):
        backup(store, target)
    assert contents_of(tmp_path) == {}


@pytest.mark.usefixtures("page_by_page")
def test_an_interrupted_backup_leaves_nothing_behind(tmp_path: Path, store: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if done == total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backup(store, tmp_path / "backup.db", interrupt)
    assert contents_of(tmp_path) == {}
    assert problems_of(store) == []


def test_a_killed_backup_leaves_no_file_of_its_name(tmp_path: Path, store: Path) -> None:
    with others(Other(die_in_mid_backup, store, tmp_path / "backup.db")) as (victim,):
        assert victim.join() == -9
    assert not (tmp_path / "backup.db").exists()
    assert problems_of(store) == []
    backup(store, tmp_path / "backup.db")


def die_in_mid_backup(pipe: Pipe, path: Path, target: Path) -> None:
    copying._PAGES_PER_STEP = 1
    backup(path, target, lambda done, total: os.kill(os.getpid(), 9) if done == total // 2 else None)


def test_there_is_nothing_to_back_up_where_there_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="there is no store"):
        backup(tmp_path / "leases", tmp_path / "backup.db")
    assert contents_of(tmp_path) == {}


def test_a_store_that_nobody_ever_used_has_no_history_to_back_up(tmp_path: Path) -> None:
    path = tmp_path / "store"
    open_store(path).close()
    with pytest.raises(StoreUnusable, match="no history"):
        backup(path, tmp_path / "backup.db")
    assert contents_of(tmp_path) == {}


def test_a_backup_to_a_folder_that_is_not_there_is_refused(tmp_path: Path, store: Path) -> None:
    with pytest.raises(StoreUnusable, match="No such file or directory"):
        backup(store, tmp_path / "nowhere" / "backup.db")


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def test_documents_and_soft_state_are_in_a_backup_and_in_what_is_restored_from_it(tmp_path: Path) -> None:
    path, target = tmp_path / "leases", tmp_path / "backup.db"
    with closing(SqliteStore(path, families=FAMILIES)) as opened:
        open_epoch(opened, to_write=True)
        with opened.write() as transaction:
            head = transaction.head
            assert transaction.authority is not None
            record = replace(transaction.authority, wall_ns=0)
            event = written("a", FULL_NOTE, request="r")
            transaction.commit(batch(head, event, changes=created({"a": FULL_NOTE}), record=record))
        opened.soft.put(NOTE, {"a": b"1"})
    backup(path, target)
    with inspected(target, families=FAMILIES) as copy, copy.snapshot() as snapshot:
        assert snapshot.families is FAMILIES
        assert snapshot.state().of(NOTE) == {"a": FULL_NOTE}
        assert snapshot.entries(EntryQuery(family=NOTE))[0].event == event
    shutil.rmtree(path)
    restore(target, path, families=FAMILIES)
    with closing(SqliteStore(path, families=FAMILIES)) as opened:
        with opened.snapshot() as snapshot:
            assert snapshot.state().of(NOTE) == {"a": FULL_NOTE}
            assert snapshot.read(Keys(requests={"r"})).families[NOTE].records == {"a": FULL_NOTE}
        assert opened.soft.get(NOTE) == {"a": b"1"}

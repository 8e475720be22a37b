"""The locks that keep processes, and strangers, apart."""

import os
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from leasehold import StoreBusy
from leasehold.stores.sqlite.backup import backup
from tests.stores.sqlite.support import Other, Pipe, client_of, open_store, others, problems_of, tokens_of


def posix_locks_on(path: Path, process_id: int) -> set[tuple[str, str, str, str]]:
    """The locks that a process has on the files of a store, as the kernel sees them."""
    names = {str(file.stat().st_ino): file.name for file in path.iterdir()}
    locks = set()
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if words[1] == "POSIX" and int(words[4]) == process_id:
            name = names.get(words[5].rpartition(":")[2])
            if name is not None:
                locks.add((name, words[3], words[6], words[7]))
    return locks


def test_a_second_use_of_the_file_in_the_same_process_does_not_drop_the_locks_of_the_first(
    tmp_path: Path,
) -> None:
    path = tmp_path / "leases"
    with client_of(path, holder="first") as client:
        client.acquire("resource")
        before = posix_locks_on(path, os.getpid())
        assert {name for name, *_ in before} == {"leases.db", "leases.db-shm"}
        with client_of(path, holder="second") as second:
            second.acquire("another")
        open_store(path, create=False).close()
        backup(path, tmp_path / "backup.db")
        assert problems_of(path) == []
        assert posix_locks_on(path, os.getpid()) == before


def test_nothing_but_sqlite_ever_opens_a_store_that_exists(tmp_path: Path) -> None:
    # To close any descriptor of a file drops all the locks that the process has on it.
    with others(Other(report_opened_files, tmp_path)) as (other,):
        opened: list[str] = other.hear()
        assert other.join() == 0
    names = {Path(name).name for name in opened}
    assert {"identity", "turnstile", "writer"} <= names, "the test sees nothing"
    assert not names & {"leases.db", "leases.db-wal", "leases.db-shm"}


def report_opened_files(pipe: Pipe, folder: Path) -> None:
    from leasehold.stores.sqlite.backup import restore

    path = folder / "store"
    opened: list[str] = []
    open_store(path).close()
    sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == "open" else None)
    with client_of(path, holder="first") as first, client_of(path, holder="second") as second:
        first.acquire("resource")
        second.acquire("another").release()
        backup(path, folder / "backup.db")
        restore(folder / "backup.db", path)
    pipe.send(opened)


def test_a_stray_sql_client_cannot_make_a_second_exclusive_lease(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    with client_of(path) as client:
        client.acquire("resource", ttl=3600)
        with closing(apsw.Connection(str(path / "leases.db"))) as stray:
            columns = [row[1] for row in stray.execute("PRAGMA table_info(leases)")]
            copied = ", ".join("'stray'" if name == "lease_id" else name for name in columns)
            with pytest.raises(apsw.ConstraintError):
                stray.execute(f"INSERT INTO leases SELECT {copied} FROM leases")
            with pytest.raises(apsw.ConstraintError):
                stray.execute("UPDATE leases SET status = 'somehow active'")
            stray.execute(
                f"INSERT INTO leases SELECT {copied.replace('status', repr('released'))} FROM leases"
            )
            with pytest.raises(apsw.ConstraintError):
                stray.execute("UPDATE leases SET status = 'active' WHERE lease_id = 'stray'")


def test_a_stray_sql_client_that_keeps_the_store_locked_gets_the_others_refused_and_nothing_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leasehold.stores.sqlite.connection._FOREIGN_LOCK_PATIENCE_MS", 100)
    path = tmp_path / "leases"
    with client_of(path) as client:
        first = client.acquire("resource", ttl=3600)
        with closing(apsw.Connection(str(path / "leases.db"))) as stray:
            stray.execute("BEGIN EXCLUSIVE")
            with pytest.raises(StoreBusy, match=r"another program keeps .* locked"):
                client.acquire("another", request_id="request")
            # Whoever only reads is not kept waiting.
            assert [status.lease.token for status in client.list().statuses] == [first.token]
            stray.execute("ROLLBACK")
        assert tokens_of(path) == {first.token}
        assert client.acquire("another", request_id="request").token > first.token
    assert problems_of(path) == []

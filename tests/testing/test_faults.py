"""The disk that fails on demand does so exactly when it is told to, and not otherwise."""

import errno
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from leasehold import StoreFailed, StoreFull
from leasehold.engine.registrar import Registrar
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.faults import FaultyDisk


@pytest.fixture
def disk() -> FaultyDisk:
    return FaultyDisk()


@pytest.fixture
def database(tmp_path: Path, disk: FaultyDisk) -> apsw.Connection:
    connection = apsw.Connection(str(tmp_path / "any.db"), vfs=disk.name)
    connection.pragma("journal_mode", "wal")
    connection.execute("CREATE TABLE numbers (number)")
    disk.repair()
    return connection


def numbers_in(database: apsw.Connection) -> list[int]:
    return [number for (number,) in database.execute("SELECT number FROM numbers")]


def test_a_disk_without_faults_works_and_counts(database: apsw.Connection, disk: FaultyDisk) -> None:
    database.execute("INSERT INTO numbers VALUES (1)")
    assert numbers_in(database) == [1]
    assert disk.calls == {("write", "log"): 2, ("sync", "log"): 1}
    assert disk.fired == 0


@pytest.mark.parametrize("nth", [1, 2])
def test_the_nth_write_fails_and_the_others_do_not(
    database: apsw.Connection, disk: FaultyDisk, nth: int
) -> None:
    disk.fail("write", nth=nth)
    with pytest.raises(apsw.IOError, match="injected into a write"):
        database.execute("INSERT INTO numbers VALUES (1)")
    assert disk.calls["write", "log"] == nth
    assert disk.fired == 1
    database.execute("INSERT INTO numbers VALUES (2)")
    assert numbers_in(database) == [2]


def test_a_lasting_fault_lasts_until_it_is_repaired(database: apsw.Connection, disk: FaultyDisk) -> None:
    disk.fail("sync", lasting=True)
    for _ in range(3):
        with pytest.raises(apsw.IOError, match="injected into a sync"):
            database.execute("INSERT INTO numbers VALUES (1)")
    assert disk.fired == 3
    disk.repair()
    database.execute("INSERT INTO numbers VALUES (2)")
    assert numbers_in(database) == [2]


def test_a_full_disk_is_told_from_a_broken_one(tmp_path: Path, disk: FaultyDisk) -> None:
    with closing(SqliteStore(tmp_path / "leases", vfs=disk.name)) as store:
        disk.fail("write", error=errno.ENOSPC)
        with pytest.raises(StoreFull, match="no space left"):
            Registrar(store)
        disk.fail("write", error=errno.EIO)
        with pytest.raises(StoreFailed, match="Input/output error"):
            Registrar(store)
        Registrar(store).close()


def test_a_fault_can_be_kept_to_one_kind_of_file(database: apsw.Connection, disk: FaultyDisk) -> None:
    disk.fail("write", file="store")
    database.execute("INSERT INTO numbers VALUES (1)")
    with pytest.raises(apsw.IOError, match="injected"):
        database.wal_checkpoint()
    assert disk.fired == 1


def test_a_write_that_fails_leaves_half_of_its_bytes(
    tmp_path: Path, database: apsw.Connection, disk: FaultyDisk
) -> None:
    log = tmp_path / "any.db-wal"
    before = log.stat().st_size
    disk.fail("write", nth=2)
    with pytest.raises(apsw.IOError, match="injected"):
        database.execute("INSERT INTO numbers VALUES (1)")
    header, page = 24, database.pragma("page_size")
    assert log.stat().st_size - before == header + page // 2


def test_an_action_runs_in_the_midst_of_a_call(database: apsw.Connection, disk: FaultyDisk) -> None:
    seen: list[str] = []
    disk.at("any", nth=3, action=seen.append)
    database.execute("INSERT INTO numbers VALUES (1)")
    assert seen == ["sync"]
    assert numbers_in(database) == [1]

"""Which SQLite, and which files, are good enough; and that the others are left exactly as they were."""

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from leasehold import StoreUnusable, connect
from leasehold.stores.sqlite import SqliteStore, files
from leasehold.stores.sqlite.connection import _refuse_foreign, refuse_affected_library
from leasehold.stores.sqlite.migrations import all_migrations
from tests.stores.sqlite.support import (
    Other,
    Pipe,
    become_nobody,
    client_of,
    contents_of,
    open_store,
    others,
    problems_of,
)


@pytest.mark.parametrize("version", ["3.7.0", "3.7.17", "3.40.1", "3.46.1", "3.51.0", "3.51.2"])
def test_a_library_that_can_lose_commits_is_refused(version: str) -> None:
    with pytest.raises(StoreUnusable, match=rf"SQLite {version} can lose commits .* upgrade"):
        refuse_affected_library(version)


@pytest.mark.parametrize("version", ["3.6.23", "3.51.3", "3.52.0", "4.0.0"])
def test_a_library_without_the_bug_is_taken(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    with client_of(tmp_path / "leases.db") as client:
        client.acquire("resource")
    assert problems_of(tmp_path / "leases.db") == []


def test_a_store_is_not_even_opened_with_a_library_that_can_lose_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client_of(tmp_path / "leases.db") as client:
        client.acquire("resource")
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    before = contents_of(tmp_path)
    with pytest.raises(StoreUnusable, match=r"SQLite 3\.51\.2 can lose commits"):
        open_store(tmp_path / "leases.db")
    assert contents_of(tmp_path) == before


def text_file(path: Path) -> None:
    path.write_text("Dear diary,\n")


def file_of_one_byte(path: Path) -> None:
    path.write_bytes(b"\n")


def database_of_another_program(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")


def marked_database_of_another_program(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("application_id", 0x47504B47)
        connection.execute("CREATE TABLE recipes (name TEXT)")


def database_of_another_program_that_crashed(path: Path) -> None:
    """To open it in earnest would move its log into it, and delete the log."""
    with closing(apsw.Connection(str(path.with_name("live.db")))) as connection:
        connection.pragma("journal_mode", "wal")
        connection.execute("CREATE TABLE recipes (name TEXT)")
        connection.wal_checkpoint()
        connection.execute("INSERT INTO recipes VALUES ('soup')")
        shutil.copy(path.with_name("live.db"), path)
        shutil.copy(path.with_name("live.db-wal"), f"{path}-wal")
    path.with_name("live.db").unlink()


def store_of_a_newer_leasehold(path: Path) -> None:
    with client_of(path) as client:
        client.acquire("resource")
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("user_version", all_migrations()[-1].version + 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (text_file, "not a leasehold store"),
        (file_of_one_byte, "not a leasehold store"),
        (database_of_another_program, "another program"),
        (marked_database_of_another_program, "another program"),
        (database_of_another_program_that_crashed, "another program"),
        (store_of_a_newer_leasehold, "upgrade leasehold"),
    ],
    ids=lambda given: getattr(given, "__name__", "refused"),
)
def test_a_file_that_is_not_ours_is_refused_and_not_touched(
    tmp_path: Path, make: Callable[[Path], None], message: str
) -> None:
    path = tmp_path / "file.db"
    make(path)
    before = contents_of(tmp_path)
    with pytest.raises(StoreUnusable, match=message) as refusal:
        connect(str(path))
    assert str(path) in str(refusal.value)
    assert refusal.value.path == str(path)
    assert contents_of(tmp_path) == before


def test_a_store_that_is_made_while_one_looks_at_it_is_not_taken_for_another_programs(tmp_path: Path) -> None:
    path = tmp_path / "leases.db"
    path.touch()
    with closing(apsw.Connection(str(path))) as connection:
        maker = MadeMeanwhile(connection, path)
        _refuse_foreign(maker, path)  # type: ignore[arg-type]
        assert maker.made


class MadeMeanwhile:
    """A connection to an empty file that somebody else makes a store of right after the first look."""

    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self.made = False

    def _make(self) -> None:
        if not self.made:
            self.made = True
            open_store(self._path).close()

    def execute(self, statement: str) -> SimpleNamespace:
        answer = SimpleNamespace(get=self._connection.execute(statement).get)
        self._make()
        return answer

    def pragma(self, name: str) -> object:
        value = self._connection.pragma(name)
        self._make()
        return value


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match=r"is a folder; name a file in it, such as .*leases\.db"):
        SqliteStore(tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreUnusable, match="not a regular file"):
        SqliteStore(tmp_path / "pipe")


def test_a_file_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(StoreUnusable, match="Not a directory"):
        SqliteStore(tmp_path / "file" / "leases.db")
    assert contents_of(tmp_path) == {"file": b"precious"}


def test_a_file_with_a_second_name_is_refused(tmp_path: Path) -> None:
    open_store(tmp_path / "leases.db").close()
    (tmp_path / "alias.db").hardlink_to(tmp_path / "leases.db")
    before = contents_of(tmp_path)
    with pytest.raises(StoreUnusable, match="has 2 names"):
        open_store(tmp_path / "leases.db")
    assert contents_of(tmp_path) == before


def test_a_symbolic_link_leads_to_the_one_store(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "alias.db").symlink_to(tmp_path / "elsewhere" / "leases.db")
    with client_of(tmp_path / "alias.db", holder="one") as one:
        one.acquire("resource")
        with client_of(tmp_path / "elsewhere" / "leases.db", holder="two") as two:
            assert two.try_acquire("resource") is None
    assert contents_of(tmp_path).keys() == {"alias.db"}


@pytest.mark.parametrize("content", [None, b""], ids=["missing", "empty"])
def test_a_store_that_must_exist_is_not_made(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "leases.db"
    if content is not None:
        path.write_bytes(content)
    before = contents_of(tmp_path)
    with pytest.raises(StoreUnusable, match="there is no store"):
        open_store(path, create=False)
    assert contents_of(tmp_path) == before


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    # It holds nothing that could be lost, and is what a crash right after the file was made leaves behind.
    path = tmp_path / "leases.db"
    path.touch()
    with client_of(path) as client:
        client.acquire("resource")
    assert problems_of(path) == []


@pytest.mark.parametrize(
    ("file_mode", "folder_mode"),
    [(0o444, 0o777), (0o666, 0o555), (0o222, 0o777), (0o666, 0o000)],
    ids=[
        "file that cannot be written",
        "folder that cannot be written",
        "file that cannot be read",
        "closed folder",
    ],
)
def test_a_store_that_this_user_cannot_write_is_refused_and_not_touched(
    public_folder: Path, file_mode: int, folder_mode: int
) -> None:
    folder = public_folder / "store"
    path = folder / "leases.db"
    with client_of(path) as client:
        client.acquire("resource")
    path.chmod(file_mode)
    folder.chmod(folder_mode)
    before = contents_of(folder)
    with others(Other(open_as_nobody, path)) as (nobody,):
        assert "writable for this user" in nobody.hear()
        assert nobody.join() == 0
    assert contents_of(folder) == before


def test_a_store_cannot_be_made_where_this_user_cannot_write(public_folder: Path) -> None:
    with others(Other(open_as_nobody, public_folder / "leases.db")) as (nobody,):
        assert "Permission denied" in nobody.hear()
        assert nobody.join() == 0
    assert contents_of(public_folder) == {}


def open_as_nobody(pipe: Pipe, path: Path) -> None:
    become_nobody()
    with pytest.raises(StoreUnusable) as refusal:
        SqliteStore(path)
    pipe.send(str(refusal.value))


def mounts(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


MOUNTS = mounts(
    "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw",
    "30 22 0:26 / /net rw,nosuid - nfs4 server:/export rw",
    "31 30 0:27 / /net/local rw - xfs /dev/vdb rw",
    r"32 22 0:28 / /with\040a\040space rw master:1 propagate_from:2 - cifs //server/share rw",
    "33 22 0:29 / /früh rw - fuse.sshfs host: rw",
    "34 22 0:30 / /over rw - nfs server:/ rw",
    "35 34 0:31 / /over rw - btrfs /dev/vdc rw",
)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/leases.db", "ext4"),
        ("/network/leases.db", "ext4"),
        ("/net/leases.db", "nfs4"),
        ("/net/deep/down/leases.db", "nfs4"),
        ("/net/local/leases.db", "xfs"),
        ("/with a space/leases.db", "cifs"),
        ("/früh/leases.db", "fuse.sshfs"),
        ("/over/leases.db", "btrfs"),
    ],
)
def test_the_file_system_of_a_path_is_the_one_mounted_closest_to_it(path: str, kind: str) -> None:
    assert files.file_system_of(Path(path), MOUNTS) == kind


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "lustre"])
def test_a_network_file_system_is_refused_before_anything_is_made_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(files, "file_system_of", lambda path: kind)
    with pytest.raises(StoreUnusable, match=rf"network file system \({kind}\).* local disk"):
        SqliteStore(tmp_path / "store" / "leases.db")
    assert os.listdir(tmp_path) == []


def test_the_file_system_of_this_folder_is_known(tmp_path: Path) -> None:
    assert files.file_system_of(tmp_path / "leases.db") not in ("unknown", *files.NETWORK_FILE_SYSTEMS)

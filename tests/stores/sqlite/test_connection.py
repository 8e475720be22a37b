"""Which SQLite, and which files, are good enough; and that the others are left exactly as they were."""

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from leasehold import StoreDamaged, StoreUnusable, connect
from leasehold.stores.sqlite import SqliteStore, files
from leasehold.stores.sqlite.connection import _refuse_foreign, refuse_affected_library
from leasehold.stores.sqlite.migrations import all_migrations, migrate
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
    with client_of(tmp_path / "leases") as client:
        client.acquire("resource")
    assert problems_of(tmp_path / "leases") == []


def test_a_store_is_not_even_opened_with_a_library_that_can_lose_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client_of(tmp_path / "leases") as client:
        client.acquire("resource")
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    before = contents_of(tmp_path)
    with pytest.raises(StoreUnusable, match=r"SQLite 3\.51\.2 can lose commits"):
        open_store(tmp_path / "leases")
    assert contents_of(tmp_path) == before


def text_file(path: Path) -> None:
    path.write_text("Dear diary,\n" * 100)


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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (text_file, "not a leasehold store"),
        (file_of_one_byte, "was emptied"),
        (database_of_another_program, "another program"),
        (marked_database_of_another_program, "another program"),
        (database_of_another_program_that_crashed, "another program"),
    ],
    ids=lambda given: getattr(given, "__name__", "refused"),
)
def test_a_database_that_something_else_was_written_into_is_refused_and_not_touched(
    tmp_path: Path, make: Callable[[Path], None], message: str
) -> None:
    path = tmp_path / "leases"
    open_store(path).close()
    make(tmp_path / "file.db")
    (path / "leases.db").write_bytes((tmp_path / "file.db").read_bytes())
    before = contents_of(path)
    with pytest.raises(StoreDamaged, match=message) as refusal:
        connect(str(path))
    assert str(path) in str(refusal.value)
    assert refusal.value.path == str(path / "leases.db")
    assert contents_of(path) == before


@pytest.mark.parametrize(
    "make", [text_file, file_of_one_byte, database_of_another_program], ids=lambda make: make.__name__
)
def test_a_file_is_not_a_store_and_is_not_touched(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "file.db"
    make(path)
    before = contents_of(tmp_path)
    with pytest.raises(
        StoreUnusable, match=r"is a file, and a store is a folder.*leasehold restore"
    ) as refusal:
        connect(str(path))
    assert refusal.value.path == str(path)
    assert contents_of(tmp_path) == before


def test_the_database_of_a_store_is_not_the_store(tmp_path: Path) -> None:
    open_store(tmp_path / "leases").close()
    with pytest.raises(StoreUnusable, match=rf"a store is a folder; name {tmp_path / 'leases'}$"):
        connect(tmp_path / "leases" / "leases.db")


def test_a_store_of_a_newer_leasehold_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    with client_of(path) as client:
        client.acquire("resource")
    with closing(apsw.Connection(str(path / "leases.db"))) as connection:
        connection.pragma("user_version", all_migrations()[-1].version + 1)
    open_files = contents_of(path).keys()
    with pytest.raises(StoreUnusable, match="upgrade leasehold"):
        connect(path)
    with closing(apsw.Connection(str(path / "leases.db"))) as connection:
        assert connection.pragma("user_version") == all_migrations()[-1].version + 1
    assert open_files <= contents_of(path).keys()


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
            with closing(apsw.Connection(str(self._path))) as maker:
                migrate(maker, self._path)

    def execute(self, statement: str) -> SimpleNamespace:
        answer = SimpleNamespace(get=self._connection.execute(statement).get)
        self._make()
        return answer

    def pragma(self, name: str) -> object:
        value = self._connection.pragma(name)
        self._make()
        return value


def test_a_folder_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(
        StoreUnusable, match=r"is a folder with other things in it; name an empty or a new one"
    ):
        SqliteStore(tmp_path)
    assert contents_of(tmp_path) == {"thesis.txt": b"precious"}


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreUnusable, match="is not a folder"):
        SqliteStore(tmp_path / "pipe")


def test_a_file_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(StoreUnusable, match="Not a directory"):
        SqliteStore(tmp_path / "file" / "leases")
    assert contents_of(tmp_path) == {"file": b"precious"}


@pytest.mark.parametrize("name", files.ALL)
def test_a_file_with_a_second_name_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "leases"
    open_store(path).close()
    (tmp_path / "alias").hardlink_to(path / name)
    before = contents_of(path)
    with pytest.raises(StoreDamaged, match=f"{name} has 2 names"):
        open_store(path)
    assert contents_of(path) == before
    (tmp_path / "alias").unlink()
    open_store(path).close()


def test_a_symbolic_link_leads_to_the_one_store(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "elsewhere" / "leases")
    with client_of(tmp_path / "alias", holder="one") as one:
        one.acquire("resource")
        with client_of(tmp_path / "elsewhere" / "leases", holder="two") as two:
            assert two.try_acquire("resource") is None
    assert sorted(os.listdir(tmp_path)) == ["alias", "elsewhere"]


@pytest.mark.parametrize("is_there", [False, True], ids=["missing", "empty"])
def test_a_store_that_must_exist_is_not_made(tmp_path: Path, is_there: bool) -> None:
    path = tmp_path / "leases"
    if is_there:
        path.mkdir()
    with pytest.raises(StoreUnusable, match="there is no store"):
        open_store(path, create=False)
    assert path.exists() == is_there
    assert not is_there or os.listdir(path) == []


@pytest.mark.parametrize(
    "left", [(), ("identity",), ("identity", "leases.db"), ("lost+found",), (".gitignore",)]
)
def test_a_folder_with_nothing_that_could_be_lost_becomes_a_store(
    tmp_path: Path, left: tuple[str, ...]
) -> None:
    # As a crash right after something was made leaves it behind.
    path = tmp_path / "leases"
    path.mkdir()
    for name in left:
        (path / name).touch()
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
    path = public_folder / "store"
    with client_of(path) as client:
        client.acquire("resource")
    for file in path.iterdir():
        if file.is_file():
            file.chmod(file_mode)
    path.chmod(folder_mode)
    before = contents_of(path)
    with others(Other(open_as_nobody, path)) as (nobody,):
        assert "writable for this user" in nobody.hear()
        assert nobody.join() == 0
    assert contents_of(path) == before


def test_a_store_cannot_be_made_where_this_user_cannot_write(public_folder: Path) -> None:
    with others(Other(open_as_nobody, public_folder / "leases")) as (nobody,):
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
        ("/leases", "ext4"),
        ("/network/leases", "ext4"),
        ("/net/leases", "nfs4"),
        ("/net/deep/down/leases", "nfs4"),
        ("/net/local/leases", "xfs"),
        ("/with a space/leases", "cifs"),
        ("/früh/leases", "fuse.sshfs"),
        ("/over/leases", "btrfs"),
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
        SqliteStore(tmp_path / "store")
    assert os.listdir(tmp_path) == []


def test_the_file_system_of_this_folder_is_known(tmp_path: Path) -> None:
    assert files.file_system_of(tmp_path / "leases") not in ("unknown", *files.NETWORK_FILE_SYSTEMS)

"""Who may read the store's files: nobody else, or the group, whatever the umask says."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold import connect
from tests.stores.sqlite.support import NOBODY, Other, Pipe, become_nobody, client_of, others

FILES = {"identity", "leases.db", "leases.db-wal", "leases.db-shm", "turnstile", "writer"}


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o007, 0o177], ids="umask {:04o}".format)
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes_in(folder: Path) -> dict[str, int]:
    """Of the store's files; the folder of keys has tests of its own."""
    files = [file for file in folder.iterdir() if file.is_file() and file.name != ".gitignore"]
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in files}


@pytest.mark.usefixtures("_umask")
def test_a_store_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with connect(str(folder)) as client:
        client.acquire("resource")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert modes_in(folder) == dict.fromkeys(FILES, 0o600)


@pytest.mark.usefixtures("_umask")
def test_a_store_for_a_group_is_for_that_group(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with connect(str(folder), group=True) as client:
        client.acquire("resource")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o2770
        assert modes_in(folder) == dict.fromkeys(FILES, 0o660)


def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with connect(str(tmp_path)):
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
        assert set(modes_in(tmp_path).values()) == {0o600}


def test_a_store_for_a_group_stays_so_for_those_who_do_not_say_it_again(tmp_path: Path) -> None:
    path = tmp_path / "store"
    connect(str(path), group=True).close()
    with connect(str(path)) as client:
        client.acquire("resource")
        assert modes_in(path) == dict.fromkeys(FILES, 0o660)


def test_another_member_of_the_group_can_use_the_store(public_folder: Path) -> None:
    path = public_folder / "store"
    if os.geteuid() == 0:
        # The folder's group is passed on to what is made in it.
        path.mkdir()
        os.chown(path, 0, NOBODY)
        path.chmod(0o2770)
    with connect(str(path), group=True, holder="owner") as owner:
        lease = owner.acquire("resource")
        with others(Other(use_as_a_member, path)) as (member,):
            assert member.hear() is None
            token: int = member.hear()
            assert member.join() == 0
        assert token > lease.token
        lease.renew()


def use_as_a_member(pipe: Pipe, path: Path) -> None:
    become_nobody()
    with client_of(path, holder="member") as client:
        pipe.send(client.try_acquire("resource"))
        pipe.send(client.acquire("another").token)

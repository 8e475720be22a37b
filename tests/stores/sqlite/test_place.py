"""A store is a folder: what becomes of one whose files were moved, copied, removed, replaced or emptied."""

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import apsw
import pytest

from leasehold import Client, LeaseLost, StoreDamaged, StoreFailed, StoreReplaced, StoreUnusable
from leasehold.engine.port import EntryQuery
from leasehold.engine.recording import open_epoch
from leasehold.engine.registrar import Registrar
from leasehold.kernel.ledger.events import EpochRaised, KeyEnrolled, KeyRetired
from leasehold.stores.sqlite import connection as connection_module
from leasehold.stores.sqlite import opened as opened_module
from leasehold.stores.sqlite import place as place_module
from leasehold.stores.sqlite.backup import backup, restore
from leasehold.stores.sqlite.files import ALL, DATABASE, IDENTITY, LOG, SHARED_MEMORY, TURNSTILE, WRITER
from leasehold.testing.clock import FakeClock
from leasehold.testing.faults import FaultyDisk
from tests.lanes import some_of
from tests.stores.sqlite.support import (
    Other,
    Pipe,
    become_nobody,
    client_of,
    epoch_of,
    open_store,
    others,
    problems_of,
    tokens_of,
)

TTL = 3600
REPLACEABLE = (LOG, SHARED_MEMORY, WRITER, TURNSTILE)


def reasons_of(path: Path) -> list[str]:
    """Why the epoch of a store was raised, each time."""
    with closing(open_store(path, create=False)) as store, store.snapshot() as snapshot:
        entries = snapshot.entries(EntryQuery(types=("store.epoch_raised",)))
    return [entry.event.reason for entry in entries if isinstance(entry.event, EpochRaised)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store in which somebody holds something, and that nobody has open."""
    path = tmp_path / "leases"
    with client_of(path, holder="first") as client:
        client.acquire("resource", ttl=TTL).detach()
    return path


@pytest.fixture
def hot(path: Path) -> Path:
    """A store whose last user was killed: what was granted last is in the log only."""
    with others(Other(acquire_and_die, path)) as (other,):
        assert other.hear() > max(tokens_of_file(path))
        assert other.join() == -signal.SIGKILL
    assert (path / LOG).stat().st_size > 0
    return path


def acquire_and_die(pipe: Pipe, path: Path) -> None:
    with client_of(path, holder="killed") as client:
        pipe.send(client.acquire("granted last", ttl=TTL).token)
        os.kill(os.getpid(), signal.SIGKILL)


def tokens_of_file(path: Path) -> set[int]:
    """The tokens of a store that nobody has open, without entering it."""
    with closing(apsw.Connection(f"file:{path / DATABASE}?immutable=1", flags=OPEN_FLAGS)) as connection:
        return {token for (token,) in connection.execute("SELECT token FROM leases")}


OPEN_FLAGS = 0x1 | 0x40  # read-only, by a URI


def granted(path: Path, resource: str = "resource") -> int | None:
    """Try to acquire something, and return the token; None if somebody holds it."""
    with client_of(path, holder="newcomer") as client:
        lease = client.try_acquire(resource, ttl=TTL)
        return None if lease is None else lease.detach().token


# Alone


def test_a_store_that_nobody_touched_goes_on_as_it_was(path: Path) -> None:
    epoch = epoch_of(path)
    assert granted(path) is None
    assert (epoch_of(path), reasons_of(path)) == (epoch, [])


def test_a_store_is_known_by_what_its_files_are(path: Path) -> None:
    with closing(open_store(path)) as store:
        record = store._open_file().place.record
    assert record.files.keys() == {".", *ALL}
    status = (path / DATABASE).stat()
    assert record.files[DATABASE][:2] == (status.st_dev, status.st_ino)


@pytest.mark.parametrize("name", REPLACEABLE)
def test_what_can_be_made_anew_is_if_it_is_missing_from_a_closed_store(path: Path, name: str) -> None:
    epoch = epoch_of(path)
    (path / name).unlink()
    assert granted(path) is None
    assert (path / name).exists()
    assert (epoch_of(path), reasons_of(path)) == (epoch, [])
    assert problems_of(path) == []


@pytest.mark.parametrize("name", [DATABASE, IDENTITY])
def test_a_store_without_what_cannot_be_made_anew_is_refused(path: Path, name: str) -> None:
    (path / name).rename(path.parent / "away")
    with pytest.raises(StoreDamaged, match=f"{name} is missing|not the identity of a store"):
        open_store(path)
    assert not (path / name).exists()
    (path.parent / "away").rename(path / name)
    assert granted(path) is None, "it is as good as before once the file is back"
    assert reasons_of(path) == []


@pytest.mark.parametrize("name", [DATABASE, WRITER, TURNSTILE, IDENTITY])
def test_a_file_that_was_replaced_by_a_copy_of_itself_is_refused_and_named(path: Path, name: str) -> None:
    shutil.copy2(path / name, path.parent / "copy")
    (path.parent / "copy").rename(path / name)
    with pytest.raises(StoreDamaged, match=f"{name} is not what this store was used with"):
        open_store(path)


def test_a_log_that_was_replaced_by_another_is_refused(hot: Path) -> None:
    shutil.copy2(hot / LOG, hot.parent / "copy")
    (hot.parent / "copy").rename(hot / LOG)
    with pytest.raises(StoreDamaged, match=f"{LOG} is not what this store was used with"):
        open_store(hot)


def test_what_a_sql_shell_leaves_that_removed_the_log_or_made_another_costs_nothing(path: Path) -> None:
    epoch = epoch_of(path)
    for flags in (apsw.SQLITE_OPEN_READWRITE, apsw.SQLITE_OPEN_READONLY):
        with closing(apsw.Connection(str(path / DATABASE), flags=flags)) as shell:
            assert shell.execute("SELECT count(*) FROM leases").get == 1
    assert granted(path) is None
    assert (epoch_of(path), reasons_of(path)) == (epoch, [])
    assert problems_of(path) == []


@pytest.mark.parametrize("name", ALL)
def test_a_symbolic_link_in_the_place_of_a_file_is_refused(path: Path, name: str) -> None:
    (path / name).rename(path.parent / "elsewhere")
    (path / name).symlink_to(path.parent / "elsewhere")
    with pytest.raises(StoreDamaged, match=f"{name} is a symbolic link"):
        open_store(path)


@pytest.mark.parametrize(
    "change", [Path.unlink, lambda file: os.truncate(file, 0)], ids=["removed", "emptied"]
)
def test_a_hot_log_that_is_lost_raises_the_epoch(hot: Path, change: Callable[[Path], None]) -> None:
    highest = granted_last(hot)
    change(hot / LOG)
    token = granted(hot, "granted last")
    assert token is not None
    assert token > highest
    assert reasons_of(hot)[0].startswith("log lost")
    assert problems_of(hot) == []


def granted_last(path: Path) -> int:
    """The highest token in a hot log; read from a copy."""
    copy = path.parent / "copy to look at"
    shutil.copytree(path, copy)
    highest = max(tokens_of(copy))
    shutil.rmtree(copy)
    return highest


def test_a_hot_log_that_was_cut_raises_the_epoch(hot: Path) -> None:
    highest = granted_last(hot)
    os.truncate(hot / LOG, 32 + 24 + 2048)  # its header, and less than a commit
    token = granted(hot, "granted last")
    assert token is not None
    assert token > highest
    assert reasons_of(hot) == ["history lost"]


def test_a_hot_log_that_is_whole_loses_nothing(hot: Path) -> None:
    assert granted(hot, "granted last") is None
    assert reasons_of(hot) == []


def test_an_older_content_that_is_written_into_the_database_raises_the_epoch(path: Path) -> None:
    older = (path / DATABASE).read_bytes()
    with client_of(path, holder="second") as client:
        forgotten = client.acquire("another", ttl=TTL).detach().token
    (path / DATABASE).write_bytes(older)
    token = granted(path, "another")
    assert token is not None
    assert token > forgotten
    assert reasons_of(path) == ["history lost"]


def test_an_older_content_of_another_epoch_raises_the_epoch_even_if_the_wall_clock_was_set_back(
    tmp_path: Path,
) -> None:
    path, clock = tmp_path / "leases", FakeClock()
    with client_of(path, clock=clock) as client:
        client.acquire("resource").detach()
    older = (path / DATABASE).read_bytes()
    clock.reboot()
    with client_of(path, clock=clock) as client:
        forgotten = client.acquire("another").detach().token
    (path / DATABASE).write_bytes(older)
    with client_of(path, clock=clock) as client:
        assert client.acquire("another").token > forgotten


@pytest.mark.parametrize("size", [0, 1, 100])
def test_a_database_that_was_emptied_is_refused(path: Path, size: int) -> None:
    os.truncate(path / DATABASE, size)
    with pytest.raises(StoreDamaged, match="was emptied"):
        open_store(path)
    assert (path / DATABASE).stat().st_size == size


@pytest.mark.parametrize("size", [0, 100, 3072])
def test_an_identity_that_was_cut_is_refused(path: Path, size: int) -> None:
    os.truncate(path / IDENTITY, size)
    with pytest.raises(StoreDamaged, match=f"{IDENTITY} is damaged"):
        open_store(path).close()


def test_a_log_that_is_another_while_sqlite_opens_it_and_the_right_one_again_after_that_is_noticed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = connection_module.open_connection
    opened: list[apsw.Connection] = []

    def swap_around(database: Path, **options: Any) -> apsw.Connection:
        if not opened:
            (path / LOG).rename(path.parent / "away")
        opened.append(plain(database, **options))
        if len(opened) == 2:
            (path.parent / "away").rename(path / LOG)
        return opened[-1]

    monkeypatch.setattr(opened_module, "open_connection", swap_around)
    with closing(open_store(path)) as store:
        assert len(opened) == 4, "it is opened once more"
        assert store._open_file().writer is opened[2]
    assert granted(path) is None


# Moved and copied


def test_a_folder_that_was_moved_is_the_same_store(path: Path) -> None:
    epoch = epoch_of(path)
    moved = path.rename(path.parent / "moved")
    assert granted(moved) is None
    assert epoch_of(moved) == epoch


def test_files_that_were_moved_to_another_folder_raise_the_epoch(path: Path) -> None:
    epoch = epoch_of(path)
    moved = path.parent / "moved"
    moved.mkdir()
    for file in path.iterdir():
        file.rename(moved / file.name)
    assert granted(moved) is None
    assert epoch_of(moved) > epoch
    assert reasons_of(moved) == ["moved"]
    assert problems_of(moved) == []


def test_a_copy_raises_the_epoch_and_seals_with_a_key_that_the_old_one_vouches_for(path: Path) -> None:
    copy = path.parent / "copy"
    shutil.copytree(path, copy)
    assert granted(copy) is None
    assert reasons_of(copy) == ["copied"]
    with closing(open_store(copy)) as store, store.snapshot() as snapshot:
        raised = snapshot.entries(EntryQuery(types=("store.epoch_raised",)))[0].position
        enrolled, retired = snapshot.entries(EntryQuery(after=raised, limit=2))
        first, second = snapshot.signing_keys()
    assert isinstance(enrolled.event, KeyEnrolled)
    assert isinstance(retired.event, KeyRetired)
    assert enrolled.event.vouched_by == retired.event.public_key == first.public_key
    assert (first.is_admitted, second.is_admitted, second.reason) == (False, True, "copied")
    assert reasons_of(path) == [], "the original is as it was"
    assert problems_of(copy) == problems_of(path) == []


def test_two_copies_of_one_store_never_seal_with_one_key(path: Path) -> None:
    keys = []
    for name in ("one", "two"):
        copy = path.parent / name
        shutil.copytree(path, copy)
        open_and_write(copy)
        with closing(open_store(copy)) as store, store.snapshot() as snapshot:
            keys += [key.public_key for key in snapshot.signing_keys() if key.is_admitted]
    assert len(set(keys)) == 2


def open_and_write(path: Path) -> None:
    with client_of(path, holder="another") as client:
        client.acquire("something else", ttl=TTL).detach()


def test_a_copy_that_is_put_in_the_place_of_its_original_raises_the_epoch(path: Path) -> None:
    shutil.copytree(path, path.parent / "copy")
    with client_of(path, holder="second") as client:
        forgotten = client.acquire("another", ttl=TTL).detach().token
    for file in (path.parent / "copy").iterdir():
        if file.is_file():
            file.rename(path / file.name)
    token = granted(path, "another")
    assert token is not None
    assert token > forgotten
    assert reasons_of(path) == ["copied"]


def test_a_store_that_is_deleted_and_made_anew_gives_out_higher_tokens(path: Path) -> None:
    for _ in range(20):
        highest = max(tokens_of(path))
        shutil.rmtree(path)
        token = granted(path)
        assert token is not None
        assert token > highest, "even within one second"


def test_of_two_restores_of_one_backup_with_the_store_lost_in_between_the_second_has_higher_tokens(
    path: Path,
) -> None:
    saved = path.parent / "backup"
    backup(path, saved)
    highest = 0
    for _ in range(5):
        shutil.rmtree(path)
        restore(saved, path)
        token = granted(path, "another")
        assert token is not None
        assert token > highest
        highest = token


# In use


@pytest.mark.parametrize("name", ALL)
def test_nobody_comes_in_while_a_file_is_missing_and_another_is_inside(path: Path, name: str) -> None:
    with others(Other(stay_inside, path)) as (inside,):
        inside.hear()
        (path / name).rename(path.parent / "away")
        with pytest.raises(
            StoreDamaged, match=r"is missing; another process has the store open|not the identity"
        ):
            open_store(path)
        (path.parent / "away").rename(path / name)
        assert granted(path) is None
        inside.tell()
        assert inside.join() == 0


def stay_inside(pipe: Pipe, path: Path) -> None:
    with closing(open_store(path)):
        pipe.send("inside")
        pipe.recv()


@pytest.mark.parametrize("name", REPLACEABLE)
def test_who_is_alone_goes_on_when_something_is_removed_that_can_be_made_anew(path: Path, name: str) -> None:
    with client_of(path, holder="alone") as client:
        before = client.acquire("another", ttl=TTL)
        (path / name).unlink()
        assert client.acquire("a third", ttl=TTL).token > before.token
        before.renew()
        assert (path / name).exists()
    assert reasons_of(path) == (["log lost"] if name == LOG else [])
    assert {before.token} < tokens_of(path), "nothing that was acknowledged is lost"
    assert problems_of(path) == []


@pytest.mark.parametrize("name", [DATABASE, IDENTITY])
def test_who_is_inside_is_refused_when_what_cannot_be_made_anew_is_removed(path: Path, name: str) -> None:
    with client_of(path, holder="inside") as client:
        lease = client.acquire("another", ttl=TTL)
        (path / name).unlink()
        with pytest.raises(StoreDamaged):
            client.acquire("a third")
        client._holdings.forget(lease)


@pytest.mark.parametrize("name", [DATABASE, LOG, WRITER, TURNSTILE, IDENTITY])
def test_who_is_inside_is_refused_when_a_file_is_replaced(path: Path, name: str) -> None:
    with client_of(path, holder="inside") as client:
        lease = client.acquire("another", ttl=TTL)
        shutil.copy2(path / name, path.parent / "copy")
        (path.parent / "copy").rename(path / name)
        with pytest.raises(StoreDamaged, match=f"{name} is not what this store was used with"):
            client.acquire("a third")
        client._holdings.forget(lease)


def test_two_that_are_inside_agree_on_a_lock_that_was_removed(path: Path) -> None:
    """The first to notice leaves, and is refused as long as the other stays; that one mends it."""
    with client_of(path, holder="one") as one, client_of(path, holder="two") as two:
        one.acquire("of one", ttl=TTL).detach()
        two.acquire("of two", ttl=TTL).detach()
        (path / WRITER).unlink()
        with pytest.raises(StoreDamaged, match="writer is missing; another process"):
            one.acquire("more")
        two.acquire("more", ttl=TTL)
        assert one.try_acquire("more") is None
    assert problems_of(path) == []


def test_a_difference_after_the_commit_makes_the_outcome_unknown(tmp_path: Path) -> None:
    path, disk, clock = tmp_path / "leases", FaultyDisk(), FakeClock()
    with closing(open_store(path, disk=disk, clock=clock)) as store:
        open_epoch(store, to_write=True)
        clock.reboot()
        disk.at("sync", nth=1, action=lambda _: (path / TURNSTILE).unlink())
        with pytest.raises(StoreFailed, match="unknown") as failure:
            open_epoch(store, to_write=True)
        assert failure.value.outcome_unknown
    assert reasons_of(path) == ["reboot"]


def test_a_client_asks_again_after_an_outcome_that_is_unknown_and_gets_one_lease(tmp_path: Path) -> None:
    path, disk = tmp_path / "leases", FaultyDisk()
    with client_of(path, disk=disk) as client:
        client.acquire("before", ttl=TTL).detach()
        disk.at("sync", nth=1, action=lambda _: (path / TURNSTILE).unlink())
        token = client.acquire("in doubt", ttl=TTL).detach().token
        assert disk.fired == 1
    assert len(tokens_of(path)) == 2
    assert token in tokens_of(path)
    assert problems_of(path) == []


def test_a_folder_that_is_moved_away_while_it_is_used_is_used_no_more(path: Path) -> None:
    with client_of(path, holder="inside") as client:
        lease = client.acquire("another", ttl=TTL)
        moved = path.rename(path.parent / "moved")
        with pytest.raises(StoreUnusable, match="moved or removed"):
            client.acquire("a third")
        assert granted(moved, "another") is None, "it is still the same store, elsewhere"
        client._holdings.forget(lease)


def test_a_change_within_the_same_tick_of_the_files_clock_is_noticed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_store(path)) as store:
        place = store._open_file().place
        assert place.is_current()
        os.utime(path)  # The folder has just changed, so its ctime tells nothing yet.
        assert place.is_current()
        assert place._seen is None or place._seen[0] != path.stat().st_ctime_ns
        monkeypatch.setattr(place_module, "_RECENT_NS", -1)
        assert place.is_current()
        assert place._seen is not None
        (path / WRITER).rename(path / "away")
        assert not place.is_current()
        (path / "away").rename(path / WRITER)


# Restoring what is refused


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "how"),
    some_of(
        list(product([DATABASE, IDENTITY, WRITER, SHARED_MEMORY], ["removed", "replaced", "damaged"])), 5
    ),
)
def test_a_restore_puts_a_store_right_that_is_refused(path: Path, name: str, how: str) -> None:
    saved = path.parent / "backup"
    backup(path, saved)
    with client_of(path, holder="second") as client:
        forgotten = client.acquire("another", ttl=TTL).detach().token
    file = path / name
    content = file.read_bytes()
    if how != "damaged":
        file.unlink()
    if how != "removed":
        file.write_bytes(content if how == "replaced" else bytes(len(content)))
    restore(saved, path)
    assert granted(path) is None
    token = granted(path, "another")
    assert token is not None
    assert token > forgotten
    assert problems_of(path) == []


def test_a_restore_knows_the_epoch_of_a_damaged_store(tmp_path: Path) -> None:
    path, saved, clock = tmp_path / "leases", tmp_path / "backup", FakeClock()
    with client_of(path, clock=clock) as client:
        client.acquire("resource")
        backup(path, saved)
    for _ in range(3):
        clock.reboot()
        with client_of(path, clock=clock) as client:
            client.acquire("resource", adopt=True)
    (path / DATABASE).write_bytes(b"damaged" * 1_000)
    assert restore(saved, path, clock=clock).epoch == 5


def test_a_damaged_store_that_somebody_has_open_is_not_replaced(path: Path) -> None:
    saved = path.parent / "backup"
    backup(path, saved)
    with others(Other(stay_inside, path)) as (inside,):
        inside.hear()
        (path / SHARED_MEMORY).rename(path.parent / "away")
        with pytest.raises(StoreDamaged, match=r"another process has .* open"):
            restore(saved, path)
        (path.parent / "away").rename(path / SHARED_MEMORY)
        inside.tell()
        assert inside.join() == 0
    assert granted(path) is None


# What a member of a group could do


@pytest.mark.parametrize("name", [WRITER, TURNSTILE])
def test_a_link_to_somebodys_key_is_neither_followed_nor_opened_to_others(path: Path, name: str) -> None:
    (key,) = (path / "keys").iterdir()
    (path / name).unlink()
    (path / name).symlink_to(key)
    with pytest.raises(StoreDamaged, match="symbolic link"):
        open_store(path)
    assert key.stat().st_mode & 0o777 == 0o600


def test_a_link_among_the_keys_is_not_a_key(path: Path) -> None:
    (key,) = (path / "keys").iterdir()
    key.rename(path.parent / key.name)
    key.symlink_to(path.parent / key.name)
    with closing(open_store(path)) as store:
        assert store.sealer.ring.at_hand() == []
        with pytest.raises(StoreUnusable):
            store.sealer.ring.load(key.stem)


@pytest.mark.root
@pytest.mark.parametrize("name", [WRITER, IDENTITY])
def test_a_file_of_a_stranger_is_refused(path: Path, name: str) -> None:
    os.chown(path / name, 12_345, 12_345)
    with pytest.raises(StoreDamaged, match="belongs to user 12345"):
        open_store(path)


@pytest.mark.root
def test_what_root_makes_in_somebodys_store_its_owner_can_use(public_folder: Path) -> None:
    path = public_folder / "store"
    path.mkdir()
    os.chown(path, 65534, 65534)
    open_and_write(path)
    (path / WRITER).unlink()
    open_and_write_again(path)
    with others(Other(use_as_nobody, path)) as (owner,):
        assert owner.join() == 0


def open_and_write_again(path: Path) -> None:
    with client_of(path, holder="root") as client:
        client.acquire("once more", ttl=TTL).detach()


def use_as_nobody(pipe: Pipe, path: Path) -> None:
    become_nobody()
    with closing(open_store(path)), others():
        pass


# Mounts


@pytest.mark.root
@pytest.mark.parametrize("name", [DATABASE, LOG, WRITER, IDENTITY])
def test_a_file_that_is_mounted_by_itself_is_refused(path: Path, name: str) -> None:
    script = f"mount --bind '{path / name}' '{path / name}' && exec leasehold ls --store '{path}'"
    finished = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert finished.returncode == 1
    assert f"{name} is mounted by itself" in finished.stderr


@pytest.mark.root
def test_a_folder_that_is_mounted_elsewhere_is_the_same_store(path: Path) -> None:
    (path.parent / "mounted").mkdir()
    script = (
        f"mount --bind '{path}' '{path.parent}/mounted' && exec leasehold ls --store '{path.parent}/mounted'"
    )
    with client_of(path, holder="inside") as client:
        lease = client.acquire("another", ttl=TTL)
        finished = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script],
            capture_output=True,
            text=True,
            check=False,
            env=environment(),
        )
        assert finished.returncode == 0, finished.stderr
        assert str(lease.token) in finished.stdout
        lease.ensure()
    assert reasons_of(path) == []


def environment() -> dict[str, str]:
    import sys

    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def test_a_client_never_goes_on_in_another_store_than_its_own(path: Path) -> None:
    aside = path.with_name("aside")
    with client_of(path, holder="inside") as client:
        token = client.acquire("door", ttl=TTL).token
        path.rename(aside)
        with closing(open_store(path)) as store:
            Client(Registrar(store), holder="maker").close()
        for use in (lambda: client.acquire("window"), client.list, client.sweep):
            with pytest.raises(StoreReplaced, match="is another one than this client was connected to"):
                use()
        shutil.rmtree(path)
        aside.rename(path)
        assert client.acquire("window").token > token


def test_a_lease_of_a_store_that_was_replaced_is_lost_when_it_is_to_be_renewed(path: Path) -> None:
    with client_of(path, holder="inside") as client:
        lost = threading.Event()
        lease = client.acquire("another", ttl=TTL, on_lost=lambda loss: lost.set())
        shutil.rmtree(path)
        with closing(open_store(path)) as store:
            Client(Registrar(store), holder="maker").close()
        assert lease.kept is not None
        client._holdings.keeper._send("default", "inside", [lease.kept])
        assert lost.wait(30)
        with pytest.raises(LeaseLost):
            lease.ensure()

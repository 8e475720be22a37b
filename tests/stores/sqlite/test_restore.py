"""Putting a backup in the place of a store: no token repeats, nobody sees half of it."""

import errno
import itertools
import os
import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from leasehold import (
    InvalidInput,
    LeaseNotFound,
    StoreBusy,
    StoreError,
    StoreFailed,
    StoreFull,
    StoreUnusable,
)
from leasehold.engine.port import EntryQuery
from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.ledger.authority import COUNTER_LIMIT, EPOCH_LIMIT
from leasehold.kernel.ledger.events import EpochRaised
from leasehold.stores.sqlite import copying, place
from leasehold.stores.sqlite.backup import backup, restore
from leasehold.stores.sqlite.migrations import all_migrations
from leasehold.testing.clock import FakeClock
from leasehold.testing.faults import FaultyDisk, Operation
from tests.lanes import by_length
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

TTL = 3600


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store whose first ten grants are in a backup, and ten more are not."""
    path = tmp_path / "store"
    with client_of(path, holder="old") as client:
        for number in range(10):
            client.acquire(f"resource-{number}", ttl=TTL).detach()
        backup(path, tmp_path / "backup.db")
        for number in range(10, 20):
            client.acquire(f"resource-{number}", ttl=TTL).detach()
    return path


@pytest.fixture
def saved(tmp_path: Path, store: Path) -> Path:
    """The backup of it."""
    return tmp_path / "backup.db"


@pytest.fixture(autouse=True)
def no_restore_waits_for_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody wait until the clock has caught up with an epoch that so many restores in a second take."""
    monkeypatch.setattr("leasehold.stores.sqlite.place.sleep", lambda seconds: None)


@pytest.fixture
def page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "_PAGES_PER_STEP", 1)


def test_a_restored_store_holds_what_the_backup_does_and_grants_higher_tokens(
    store: Path, saved: Path
) -> None:
    forgotten, epoch = max(tokens_of(store)), epoch_of(store)
    restored = restore(saved, store)
    assert problems_of(store) == []
    assert restored.epoch > epoch
    assert restored.entries == 12
    with client_of(store) as client:
        assert len(client.list().statuses) == 10
        assert client.acquire("resource-15").token > forgotten
    assert problems_of(store) == []


def test_history_says_that_the_store_was_restored(store: Path, saved: Path) -> None:
    restore(saved, store)
    with closing(open_store(store)) as opened, opened.snapshot() as snapshot:
        (entry,) = snapshot.entries(EntryQuery(types=("store.epoch_raised",)))
    assert isinstance(entry.event, EpochRaised)
    assert entry.event.reason == "restored"


def test_the_epoch_rises_above_the_store_that_is_replaced(tmp_path: Path) -> None:
    path, clock = tmp_path / "store", FakeClock()
    with client_of(path, clock=clock) as client:
        client.acquire("resource")
        backup(path, tmp_path / "backup.db")
        for _ in range(3):
            clock.reboot()
            client.acquire("resource", adopt=True)
    before = tokens_of(path)
    assert epoch_of_highest(before) == 4
    assert restore(tmp_path / "backup.db", path, clock=clock).epoch == 5
    # Once more: had the second looked at the backup alone, it would begin the same epoch again.
    with client_of(path, clock=clock) as client:
        between = client.acquire("resource", adopt=True).token
    assert restore(tmp_path / "backup.db", path, clock=clock).epoch == 6
    with client_of(path, clock=clock) as client:
        assert client.acquire("resource", adopt=True).token > between > max(before)


def test_the_epoch_rises_above_the_backup_if_that_is_higher(tmp_path: Path, store: Path, saved: Path) -> None:
    other = tmp_path / "other"
    restore(saved, other)
    backup(other, tmp_path / "higher.db")
    higher = epoch_of(other)
    assert restore(tmp_path / "higher.db", store).epoch > higher > epoch_of_highest(tokens_of(other))


def test_a_store_that_has_used_up_its_epochs_is_not_restored(store: Path, saved: Path) -> None:
    with apsw.Connection(str(store / "leases.db")) as connection:
        connection.execute("UPDATE authority SET epoch = ?", (EPOCH_LIMIT - 1,))
    with pytest.raises(StoreUnusable, match="used up its epochs"):
        restore(saved, store)
    assert len(tokens_of(store)) == 20


def test_a_live_client_goes_on_with_the_restored_store_in_the_same_file(store: Path, saved: Path) -> None:
    inode = (store / "leases.db").stat().st_ino
    with others(Other(hold_across_a_restore, store)) as (live,):
        forgotten: int = live.hear()
        restore(saved, store)
        live.tell()
        seen, token = live.hear()
        assert seen == 10
        assert token > forgotten
        assert live.join() == 0
    assert (store / "leases.db").stat().st_ino == inode
    assert token in tokens_of(store), "the live client wrote where nobody else looks"
    assert problems_of(store) == []


def hold_across_a_restore(pipe: Pipe, path: Path) -> None:
    with client_of(path, holder="live") as client:
        lease = client.acquire("held across", ttl=TTL)
        assert len(client.list().statuses) == 21
        pipe.send(lease.token)
        pipe.recv()
        # It was granted after the backup, and there is no trace of it.
        seen = len(client.list().statuses)
        with pytest.raises(LeaseNotFound):
            lease.renew()
        assert lease.lost
        pipe.send((seen, client.acquire("held across", ttl=TTL).token))


@pytest.mark.usefixtures("page_by_page")
def test_readers_see_the_old_store_until_the_whole_new_one_is_there(store: Path, saved: Path) -> None:
    with client_of(store) as client:
        counts: list[int] = []
        restore(saved, store, lambda done, total: counts.append(len(client.list().statuses)))
        assert counts == [20] * (len(counts) - 1) + [10]


def test_a_restore_makes_a_store_where_there_is_none(tmp_path: Path, saved: Path) -> None:
    path = tmp_path / "new" / "folder"
    restore(saved, path)
    assert problems_of(path) == []
    assert path.stat().st_mode & 0o777 == 0o700
    assert len(tokens_of(path)) == 10


def test_a_plain_copy_of_a_stores_file_can_be_restored_too(tmp_path: Path, store: Path) -> None:
    shutil.copyfile(store / "leases.db", tmp_path / "copy.db")
    restored = tmp_path / "restored"
    assert restore(tmp_path / "copy.db", restored).epoch > epoch_of(store)
    assert len(tokens_of(restored)) == 20


def test_leases_of_the_backup_that_outlive_a_reboot_have_what_they_had_left(tmp_path: Path) -> None:
    path, clock = tmp_path / "store", FakeClock()
    with client_of(path, clock=clock) as client:
        survivor = client.acquire("survivor", ttl=100, survives_reboot=True).detach().lease_id
        local = client.acquire("local", ttl=100).detach().lease_id
        clock.advance(40)
        client.acquire("passing")
        backup(path, tmp_path / "backup.db")
    clock.reboot()
    restore(tmp_path / "backup.db", path, clock=clock)
    with client_of(path, clock=clock) as client:
        client.renew_many([survivor, local])
        survived, ended = client.get(survivor), client.get(local)
        assert survived is not None
        assert survived.expires_in == 100
        assert ended is not None
        assert ended.lease.state is LeaseState.REVOKED


def test_a_store_with_another_page_size_is_restored_all_the_same(
    tmp_path: Path, store: Path, saved: Path
) -> None:
    path = tmp_path / "other"
    open_store(path).close()
    with closing(apsw.Connection(str(path / "leases.db"))) as connection:
        connection.pragma("journal_mode", "delete")
        connection.pragma("page_size", 8192)
        connection.execute("VACUUM")
    for original in (saved, store / "leases.db"):
        restore(original, path)
        assert problems_of(path) == []
        assert tokens_of(path) == tokens_of_file(original)
    with closing(apsw.Connection(str(path / "leases.db"))) as connection:
        assert connection.pragma("page_size") == 8192
    assert not [name for name in contents_of(path) if name.endswith(".partial")]


@pytest.mark.parametrize("content", ["", "to be, or not to be", "SQLite format 3\0 or so they say" * 100])
def test_a_file_that_is_no_backup_is_refused(tmp_path: Path, store: Path, content: str) -> None:
    wrong = tmp_path / "wrong.db"
    wrong.write_text(content)
    before = contents_of(store)
    with pytest.raises(StoreUnusable, match=r"not a|damaged"):
        restore(wrong, store)
    assert contents_of(store) == before
    assert wrong.read_text() == content


def test_a_database_of_another_program_is_no_backup(tmp_path: Path, store: Path) -> None:
    wrong = tmp_path / "wrong.db"
    with apsw.Connection(str(wrong)) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    before = contents_of(store)
    with pytest.raises(StoreUnusable, match="not a backup of a leasehold store"):
        restore(wrong, store)
    assert contents_of(store) == before


def test_a_missing_backup_is_named_as_such(tmp_path: Path, store: Path) -> None:
    with pytest.raises(StoreUnusable, match="there is no backup at"):
        restore(tmp_path / "missing.db", store)
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreUnusable, match=r"is a folder; name a backup, or a database"):
        restore(tmp_path / "folder", store)
    assert len(tokens_of(store)) == 20


def test_a_backup_from_a_newer_leasehold_is_refused(store: Path, saved: Path) -> None:
    with apsw.Connection(str(saved)) as connection:
        connection.pragma("user_version", all_migrations()[-1].version + 1)
    with pytest.raises(StoreUnusable, match="upgrade leasehold"):
        restore(saved, store)
    assert len(tokens_of(store)) == 20


def test_a_store_from_a_newer_leasehold_is_not_overwritten(store: Path, saved: Path) -> None:
    with apsw.Connection(str(store / "leases.db")) as connection:
        connection.pragma("user_version", all_migrations()[-1].version + 1)
    connection.close()
    before = (store / "leases.db").read_bytes()
    with pytest.raises(StoreUnusable, match="upgrade leasehold"):
        restore(saved, store)
    assert (store / "leases.db").read_bytes() == before


def test_a_backup_is_refused_if_any_of_its_pages_is_damaged(store: Path, saved: Path) -> None:
    with closing(apsw.Connection(str(saved))) as connection:
        page_bytes, pages = connection.pragma("page_size"), connection.pragma("page_count")
    content = saved.read_bytes()
    for page in range(pages):
        damaged = bytearray(content)
        start = page * page_bytes if page else 100  # behind the header of the file
        damaged[start : (page + 1) * page_bytes] = bytes((page + 1) * page_bytes - start)
        saved.write_bytes(damaged)
        with pytest.raises(StoreUnusable, match=r"damaged|not a backup"):
            restore(saved, store)
    assert pages > 10
    assert len(tokens_of(store)) == 20


def test_files_of_another_program_are_not_overwritten(tmp_path: Path, saved: Path) -> None:
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "notes.txt").write_text("precious")
    with apsw.Connection(str(folder / "recipes.db")) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    before = contents_of(folder)
    for name in before:
        with pytest.raises(StoreUnusable, match="is a file, and a store is a folder"):
            restore(saved, folder / name)
    with pytest.raises(StoreUnusable, match="other things in it"):
        restore(saved, folder)
    assert contents_of(folder) == before


def test_a_store_cannot_be_restored_from_itself(store: Path) -> None:
    with pytest.raises(InvalidInput, match="from itself"):
        restore(store, store)
    with pytest.raises(InvalidInput, match="from itself"):
        restore(store / "leases.db", store)


def test_a_store_that_another_process_keeps_busy_is_left_alone_and_the_process_named(
    store: Path, saved: Path
) -> None:
    with others(Other(keep_busy, store)) as (busy,):
        busy.hear()
        with pytest.raises(StoreBusy, match=f"process {busy.pid}") as refusal:
            restore(saved, store, patience_seconds=0.1)
        assert refusal.value.process_id == busy.pid
        busy.tell()
        assert busy.join() == 0
    assert len(tokens_of(store)) == 20
    restore(saved, store)
    assert len(tokens_of(store)) == 10


def keep_busy(pipe: Pipe, path: Path) -> None:
    with open_store(path).write():
        pipe.send("busy")
        pipe.recv()


@pytest.mark.usefixtures("page_by_page")
def test_an_interrupted_restore_leaves_the_store_as_it_was(store: Path, saved: Path) -> None:
    before, epoch = tokens_of(store), epoch_of(store)
    for step in itertools.count(1):
        steps = itertools.count(1)

        def interrupt(done: int, total: int, steps: "itertools.count[int]" = steps, at: int = step) -> None:
            if next(steps) == at and done < total:
                raise KeyboardInterrupt

        try:
            restore(saved, store, interrupt)
        except KeyboardInterrupt:
            assert tokens_of(store) == before
            assert epoch_of(store) == epoch
        else:
            break
    assert step > 20
    assert len(tokens_of(store)) == 10


def test_a_killed_restore_leaves_the_old_store_or_the_new_one(store: Path, saved: Path) -> None:
    with others(Other(kill_at_every_step, saved, store)) as (killer,):
        outcomes: list[int] = killer.hear_to_the_end()
        assert killer.join() == 0
    # Each the old store, but for the last, which nobody killed.
    assert outcomes == [20] * (len(outcomes) - 1) + [10]
    assert len(outcomes) > 20


def kill_at_every_step(pipe: Pipe, saved: Path, path: Path) -> None:
    """Fork once for every step of a restore, kill the child in it, and look at what it left."""
    copying._PAGES_PER_STEP = 1
    never_wait()
    for at in itertools.count(1):
        child = os.fork()
        if child == 0:
            steps = itertools.count(1)
            restore(saved, path, lambda done, total: die() if next(steps) == at and done < total else None)  # noqa: B023
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert problems_of(path) == []
        pipe.send(len(tokens_of(path)))
        if status == 0:
            break


@pytest.mark.deep
def test_a_restore_that_is_killed_in_any_write_or_sync_leaves_the_old_store_or_the_new_one(
    store: Path, saved: Path
) -> None:
    old = epoch_of(store)
    with others(Other(kill_at_every_call, saved, store)) as (killer,):
        outcomes: list[tuple[int, int]] = killer.hear_to_the_end()
        assert killer.join() == 0
    assert {outcome for outcome, _ in outcomes} == {20, 10}
    assert len(outcomes) > by_length(20, 6)
    # Before the commit the old epoch; after it one that nobody has seen.
    assert all((epoch == old) == (count == 20) for count, epoch in outcomes)


def kill_at_every_call(pipe: Pipe, saved: Path, path: Path) -> None:
    never_wait()
    for at in itertools.count(1, by_length(1, 3)):
        child = os.fork()
        if child == 0:
            disk = FaultyDisk()
            disk.at("any", nth=at, action=lambda _: die())
            restore(saved, path, vfs=disk.name)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert problems_of(path) == []
        pipe.send((len(tokens_of(path)), epoch_of(path)))
        if status == 0:
            break


@pytest.mark.deep
@pytest.mark.parametrize(
    ("operation", "error", "expected"),
    [("write", errno.ENOSPC, StoreFull), ("write", errno.EIO, StoreFailed), ("sync", errno.EIO, StoreFailed)],
)
def test_a_restore_that_meets_a_disk_error_leaves_the_old_store_or_the_new_one(
    store: Path, saved: Path, operation: Operation, error: int, expected: type[StoreError]
) -> None:
    with closing(open_store(store)):  # As long as it is open, nobody else has to tidy up on closing.
        for nth in itertools.count(1, by_length(1, 3)):
            epoch, disk = epoch_of(store), FaultyDisk()
            disk.fail(operation, nth=nth, error=error, lasting=True)
            try:
                restore(saved, store, vfs=disk.name)
            except StoreError as failure:
                assert type(failure) is expected  # noqa: PT017
                assert epoch_of(store) == epoch
            else:
                # Once it is committed, the store is restored, whatever else the disk has to say.
                assert epoch_of(store) > epoch
            assert problems_of(store) == []
            if disk.fired == 0:
                break
    assert nth > 1
    assert len(tokens_of(store)) == 10


def never_wait() -> None:
    """Do in another process what `no_restore_waits_for_the_clock` does in this one."""
    setattr(place, "sleep", lambda seconds: None)  # noqa: B010


def die() -> None:
    os.kill(os.getpid(), 9)


def tokens_of_file(path: Path) -> set[int]:
    with closing(apsw.Connection(str(path))) as connection:
        return {token for (token,) in connection.execute("SELECT token FROM leases")}


def epoch_of_highest(tokens: set[int]) -> int:
    return max(tokens) // COUNTER_LIMIT

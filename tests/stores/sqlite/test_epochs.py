"""When the store cannot know what it granted, it begins a higher epoch first, and durably."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from leasehold.engine.port import EntryQuery
from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.ledger.authority import COUNTER_LIMIT
from leasehold.kernel.ledger.chain import Entry
from leasehold.testing.clock import FakeClock
from leasehold.testing.faults import FaultyDisk
from tests.stores.sqlite.support import client_of, open_store, problems_of


def entries_of(path: Path, clock: FakeClock | None = None) -> list[Entry]:
    with closing(open_store(path, clock=clock)) as store, store.snapshot() as snapshot:
        return snapshot.entries(EntryQuery())


def test_after_a_reboot_the_epoch_is_raised_before_anything_is_granted(tmp_path: Path) -> None:
    path, clock = tmp_path / "leases", FakeClock()
    with client_of(path, clock=clock) as client:
        before = client.acquire("resource").detach().token
    clock.reboot()
    with client_of(path, clock=clock) as client:
        after = client.acquire("another").detach().token
    assert (before // COUNTER_LIMIT, after // COUNTER_LIMIT) == (1, 2)
    types = [entry.event.type for entry in entries_of(path)]
    assert types[:4] == ["store.opened", "lease.issued", "store.epoch_raised", "lease.issued"]
    assert problems_of(path) == []


def test_after_a_reboot_leases_of_local_processes_are_revoked_and_others_keep_what_they_had_left(
    tmp_path: Path,
) -> None:
    path, clock = tmp_path / "leases", FakeClock()
    with client_of(path, clock=clock, holder="before") as client:
        local = client.acquire("local", ttl=100).detach().lease_id
        remote = client.acquire("remote", ttl=100, survives_reboot=True).detach().lease_id
        clock.advance(30)
        client.acquire("the last thing before the power cut")
    clock.reboot(tick_ns=5_000_000_000)
    with client_of(path, clock=clock, holder="after") as client:
        assert client.try_acquire("local") is not None
        assert client.try_acquire("remote") is None
        ended, surviving = client.get(local), client.get(remote)
        assert ended is not None
        assert (ended.lease.state, ended.lease.end_reason) == (LeaseState.REVOKED, "reboot")
        clock.advance(69)
        assert client.try_acquire("remote") is None
        clock.advance(1)
        assert client.try_acquire("remote") is not None
        assert surviving is not None
        types = [entry.event.type for entry in client.history(lease_id=remote)]
        assert types == ["lease.issued", "lease.rearmed", "lease.expired"]
    assert problems_of(path) == []


def test_a_clock_that_went_back_raises_the_epoch(tmp_path: Path) -> None:
    path, clock = tmp_path / "leases", FakeClock()
    with client_of(path, clock=clock) as client:
        before = client.acquire("resource").token
        clock.set_back(10)
        after = client.acquire("another").token
    assert after // COUNTER_LIMIT == before // COUNTER_LIMIT + 1
    assert problems_of(path) == []


@pytest.mark.parametrize("reboot", [False, True], ids=["same boot", "after a reboot"])
def test_a_copied_store_raises_its_epoch(tmp_path: Path, reboot: bool) -> None:
    original, copy, clock = tmp_path / "leases", tmp_path / "copy", FakeClock()
    with client_of(original, clock=clock) as client:
        client.acquire("resource").detach()
    shutil.copytree(original, copy)
    if reboot:
        clock.reboot()
    with client_of(copy, clock=clock) as client:
        assert client.acquire("another").token // COUNTER_LIMIT == 2
    assert problems_of(copy) == []
    with client_of(original, clock=clock) as client:
        assert client.acquire("another").token // COUNTER_LIMIT == 1 + reboot


def test_an_old_copy_in_the_place_of_a_removed_store_raises_its_epoch_even_under_the_same_inode(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    for attempt in range(100):
        path = tmp_path / str(attempt)
        with client_of(path, clock=clock) as client:
            client.acquire("resource").detach()
        shutil.copytree(path, tmp_path / "old")
        with client_of(path, clock=clock) as client:
            forgotten = client.acquire("another").detach().token
        inode = path.stat().st_ino
        shutil.rmtree(path)
        shutil.copytree(tmp_path / "old", path)
        shutil.rmtree(tmp_path / "old")
        if path.stat().st_ino == inode:
            break  # The file system has given the number of the removed file out again, as most do.
    with client_of(path, clock=clock) as client:
        assert client.acquire("another").token > forgotten
    assert problems_of(path) == []


def test_a_moved_folder_is_the_same_store(tmp_path: Path) -> None:
    path, moved, clock = tmp_path / "leases", tmp_path / "moved", FakeClock()
    with client_of(path, clock=clock) as client:
        client.acquire("resource").detach()
    path.rename(moved)
    with client_of(moved, clock=clock) as client:
        assert client.acquire("another").token // COUNTER_LIMIT == 1


def test_relaxed_durability_syncs_a_new_epoch_and_nothing_else(tmp_path: Path) -> None:
    path, clock, disk = tmp_path / "leases", FakeClock(), FaultyDisk()
    with client_of(path, clock=clock, durability="fast", disk=disk) as client:
        client.acquire("resource").detach()
        disk.repair()
        client.acquire("another").detach()
        assert disk.calls["write", "log"] > 0
        assert disk.calls["sync", "log"] == 0
        clock.reboot()
        client.acquire("after the reboot").detach()
        assert disk.calls["sync", "log"] > 0
        disk.repair()
        client.acquire("once more").detach()
        assert disk.calls["sync", "log"] == 0


def test_relaxed_durability_has_the_new_epoch_on_disk_before_the_first_grant_under_it(tmp_path: Path) -> None:
    path, clock, disk = tmp_path / "leases", FakeClock(), FaultyDisk()
    with client_of(path, clock=clock, durability="fast", disk=disk) as client:
        client.acquire("resource").detach()
        clock.reboot()
        # What the log holds when the epoch is synced: everything up to it, and no grant behind it.
        synced: list[bytes] = []
        disk.at("sync", nth=1, action=lambda _: synced.append((path / "leases.db-wal").read_bytes()))
        client.acquire("after the reboot").detach()
    assert b"store.epoch_raised" in synced[0]
    assert b"after the reboot" not in synced[0]


def test_full_durability_syncs_every_commit(tmp_path: Path) -> None:
    path, disk = tmp_path / "leases", FaultyDisk()
    with client_of(path, disk=disk) as client:
        for number in range(5):
            disk.repair()
            client.acquire(f"resource-{number}").detach()
            assert disk.calls["sync", "log"] == 1

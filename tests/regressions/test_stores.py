"""Mistakes that were once in a store, and must not come back.

Each test shows one of them as a user would have met it; docs/track-record.md tells how it was found. A bug
that the simulator finds is kept here too, as the shortest sequence that shows it and not as its seed: a
seed means another world as soon as the simulator learns something new.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from leasehold.engine.batch import Outcome, Rules, run_batch
from leasehold.engine.port import Batch, EntryQuery, Store
from leasehold.errors import ClientClosed, StoreRejected
from leasehold.kernel.lease.answers import Granted, Renewed
from leasehold.kernel.lease.commands import Acquire, Renew
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.journal import Change
from leasehold.kernel.ledger.tick import Tick
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock

SECOND = 1_000_000_000


def test_the_history_of_a_lease_is_whole_whatever_its_id(tmp_path: Path) -> None:
    """A renewal of several leases was missing from the history of one whose id JSON has to escape."""
    clock = FakeClock()
    store = SqliteStore(tmp_path / "leases", clock=clock)
    names = ('with "quotes"', "with\\backslash", "plain")
    for name in names:
        assert isinstance(acquire(store, name, resource=name), Granted)
    clock.advance(1)
    renewal = Renew(request_id="renewal", lease_ids=names, holder="ann")
    assert isinstance(run_batch(store, [renewal], Rules())[0], Renewed)
    for name in names:
        with store.snapshot() as snapshot:
            history = snapshot.entries(EntryQuery(lease_id=name))
        assert [entry.event.type for entry in history] == ["lease.issued", "lease.renewed"]
    store.close()


def test_a_store_in_memory_is_written_while_somebody_looks() -> None:
    """A snapshot kept the writers' lock, so that whoever wrote while looking waited for itself for ever."""
    store = MemoryStore(clock=FakeClock())
    acquire(store, "lease-1", resource="door")
    with store.snapshot() as snapshot:
        before = snapshot.head
        commands = [claim("lease-2", resource="gate")]
        assert isinstance(run_batch(store, commands, Rules(), blocking=False)[0], Granted)
        assert snapshot.head == before


def test_a_store_in_memory_holds_the_law_against_whoever_writes_past_it() -> None:
    """It took a second exclusive lease on a resource, which the SQLite store has always rejected."""
    store = MemoryStore(clock=FakeClock())
    granted = acquire(store, "lease-1", resource="door")
    assert isinstance(granted, Granted)
    with store.snapshot() as snapshot:
        authority, entries = snapshot.authority, snapshot.entries(EntryQuery())
    assert authority is not None
    double = Batch(
        entries=entries[-1:],
        changes=[Change(LEASE, "lease-2", None, replace(granted.lease, lease_id="lease-2", holder="bob"))],
        authority=authority,
        ended_eras=[],
    )
    with store.write() as transaction, pytest.raises(StoreRejected):
        transaction.commit(double)


def test_a_closed_store_in_memory_refuses_to_be_used() -> None:
    """It went on working, so that a program which used a closed client was never told."""
    store = MemoryStore(clock=FakeClock())
    store.close()
    with pytest.raises(ClientClosed):
        store.wait(0, timeout=0)
    assert isinstance(acquire(store, "lease-1", resource="door"), ClientClosed)


def test_a_snapshot_that_somebody_still_refers_to_does_not_hold_later_ones_back(tmp_path: Path) -> None:
    """It left a statement half-read, so every later look through the same connection saw its moment."""
    store = SqliteStore(tmp_path / "leases", clock=FakeClock())
    acquire(store, "lease-1", resource="door")
    with store.snapshot() as first:
        assert first.head.position == 2
    acquire(store, "lease-2", resource="gate")
    with store.snapshot() as second:
        assert second.head.position == 3
    assert first is not second
    store.close()


def claim(lease_id: str, resource: str) -> Acquire:
    return Acquire(
        request_id=f"claim {lease_id}", lease_id=lease_id, resource=resource, holder="ann", ttl_ns=60 * SECOND
    )


def acquire(store: Store, lease_id: str, resource: str) -> Outcome:
    return run_batch(store, [claim(lease_id, resource)], Rules())[0]


def test_of_leases_that_lapse_at_one_moment_the_oldest_is_swept_first(store: Store, clock: FakeClock) -> None:
    """A SQLite store that was asked for one of them chose the one that it had written first: who shares."""
    sharing = replace(claim("lease-1", resource="gate"), mode=Mode.SHARED)
    run_batch(store, [claim("lease-2", resource="door"), sharing], Rules())
    clock.advance(3600)
    with store.snapshot() as snapshot:
        due = [snapshot.due(Tick(value=clock.tick_ns()), limit) for limit in (1, 2)]
    assert due == [[(LEASE, "lease-2")], [(LEASE, "lease-2"), (LEASE, "lease-1")]]


def test_a_store_that_cannot_even_be_looked_at_on_a_full_disk_says_so(tmp_path: Path) -> None:
    """It was told as a failed disk, with the advice to ask again under the same request id."""
    path = tmp_path / "leases"
    SqliteStore(path).close()
    look = "import leasehold, sys; leasehold.connect(sys.argv[1])"
    # To look, SQLite has to make a file of 32 KiB beside the store. With this limit no file can be so long.
    found = subprocess.run(
        ["sh", "-c", 'ulimit -f 16; exec "$0" -c "$1" "$2"', sys.executable, look, str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"leasehold.errors.StoreFull: no space left for {path / 'leases.db'}; free some" in found.stderr


@pytest.mark.parametrize(("here", "closed"), [("work/below", "../.leasehold"), ("work", ".")])
def test_a_store_that_may_not_be_looked_at_is_refused_and_not_passed_by(
    tmp_path: Path, here: str, closed: str
) -> None:
    """Looking for the nearest store failed with an error of the operating system, and none of ours."""
    work = tmp_path / "work"
    SqliteStore(work / ".leasehold").close()
    (work / "below").mkdir()
    told = as_mere_owner(tmp_path / here, closed, 0o000)
    (tmp_path / here / closed).chmod(0o700)
    assert told == f"STORE_UNUSABLE {work / '.leasehold'} cannot be used as a store: Permission"
    assert list((work / "below").iterdir()) == []


def test_a_folder_in_which_no_store_can_be_made_is_refused(tmp_path: Path) -> None:
    """Making the folder for a new store failed with an error of the operating system, and none of ours."""
    work = tmp_path / "work"
    work.mkdir()
    told = as_mere_owner(work, ".", 0o500)
    assert told == f"STORE_UNUSABLE {work / '.leasehold'} cannot be used as a store: Permission"


def as_mere_owner(folder: Path, closed: str, mode: int) -> str:
    """Connect, with a folder closed, as a user for whom modes are an obstacle; return what is told."""
    script = (
        "import os, leasehold\n"
        f"os.chmod({closed!r}, {mode})\n"
        "try:\n"
        "    leasehold.connect()\n"
        "except leasehold.LeaseholdError as error:\n"
        "    print(error.code, str(error).partition(' denied')[0])\n"
    )
    limits = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    environment = {name: value for name, value in os.environ.items() if name != "LEASEHOLD_URL"}
    finished = subprocess.run(
        [*limits, sys.executable, "-c", script],
        cwd=folder,
        env=environment | {"PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return finished.stdout.rstrip("\n")

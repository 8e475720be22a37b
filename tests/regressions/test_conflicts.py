"""Mistakes that were once made where another writer comes in between, and must not come back.

In a store that does not keep writers apart, any commit can meet another one.
"""

from collections.abc import Callable

import pytest

from leasehold.engine.audit import audit, rebuild
from leasehold.engine.keyholding import rotate
from leasehold.engine.port import Batch, Conflict, Store
from leasehold.engine.pruning import prune
from leasehold.engine.recording import open_epoch
from leasehold.engine.registrar import Registrar
from leasehold.errors import StoreRejected
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.state import State
from leasehold.stores.memory import MemoryStore
from leasehold.stores.memory.writing import MemoryTransaction
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import WatchedStore, claim, granted

HOUR_NS = 3600 * 10**9


def disturb(store: WatchedStore, times: int) -> None:
    """Let another writer come in between at the next commits."""
    conflicts = iter(range(times))

    def conflict(batch: Batch) -> None:
        if next(conflicts, None) is not None:
            raise Conflict

    store.before_commit = conflict


def open_after_a_reboot(store: Store, clock: FakeClock) -> None:
    clock.reboot()
    open_epoch(store)


def rotate_key(store: Store, clock: FakeClock) -> None:
    rotate(store, actor="ops")


def prune_history(store: Store, clock: FakeClock) -> None:
    clock.advance(2 * 3600)
    assert prune(store, actor="ops", keep_ns=HOUR_NS).entries > 0


WORK = pytest.mark.parametrize("work", [open_after_a_reboot, rotate_key, prune_history])


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def watched(clock: FakeClock) -> WatchedStore:
    watched = WatchedStore(MemoryStore(clock=clock))
    granted(Registrar(watched).call(claim("door")))
    watched.commits.clear()
    return watched


@WORK
def test_what_another_writer_comes_in_between_of_is_done_again(
    watched: WatchedStore, clock: FakeClock, work: Callable[[Store, FakeClock], None]
) -> None:
    """Opening an epoch, and changing keys, let the conflict out to the caller."""
    disturb(watched, times=2)

    work(watched, clock)

    assert watched.commits
    assert audit(watched).problems == []


def test_a_store_is_opened_although_another_program_opens_it_at_the_same_time() -> None:
    store = WatchedStore(MemoryStore())
    disturb(store, times=1)

    granted(Registrar(store).call(claim("door")))


@WORK
def test_who_is_never_let_alone_is_told_so(
    watched: WatchedStore, clock: FakeClock, work: Callable[[Store, FakeClock], None]
) -> None:
    disturb(watched, times=1_000)

    with pytest.raises(StoreRejected, match="other writers kept changing"):
        work(watched, clock)
    assert not watched.commits


def test_tables_are_made_anew_although_another_writer_comes_in_between(
    watched: WatchedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    conflicts = iter([Conflict(), Conflict()])
    make_anew = MemoryTransaction.rebuild

    def disturbed(self: MemoryTransaction, state: State) -> None:
        for error in conflicts:
            raise error
        make_anew(self, state)

    monkeypatch.setattr(MemoryTransaction, "rebuild", disturbed)

    assert rebuild(watched).of(LEASE)
    assert next(conflicts, None) is None

"""The disk fails at the first, second, … nth call until the operation succeeds, and nothing is lost."""

import errno
import itertools
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from leasehold import Client, StoreError, StoreFailed, StoreFull
from leasehold.engine.audit import audit
from leasehold.engine.questions import LeaseStatus
from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.ledger.authority import COUNTER_LIMIT
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock
from leasehold.testing.faults import FaultyDisk, Operation
from tests.stores.sqlite.support import Other, Pipe, client_of, open_store, others, problems_of

TTL = 3600
FAULTS: list[tuple[Operation, int, type[StoreError]]] = [
    ("write", errno.ENOSPC, StoreFull),
    ("write", errno.EIO, StoreFailed),
    ("sync", errno.EIO, StoreFailed),
]
every_fault = pytest.mark.parametrize(
    ("operation", "error", "expected"), FAULTS, ids=["full at a write", "error at a write", "error at a sync"]
)


class Step:
    """One thing a client does, which can be tried again when it failed."""

    def __init__(self, client: Client, clock: FakeClock) -> None:
        self.client = client
        self.clock = clock

    def prepare(self, nth: int) -> None:
        """Set the stage while the disk still works."""

    def run(self, nth: int) -> None:
        """Do it, or do it again."""
        raise NotImplementedError


class Acquiring(Step):
    def run(self, nth: int) -> None:
        self.client.acquire(f"resource-{nth}", ttl=TTL, request_id=f"request-{nth}").detach()


class Renewing(Step):
    leases: tuple[str, ...] = ()

    def prepare(self, nth: int) -> None:
        self.leases = self.leases or tuple(
            self.client.acquire(f"resource-{each}", ttl=TTL).detach().lease_id for each in range(20)
        )
        self.clock.advance(1)

    def run(self, nth: int) -> None:
        renewed = self.client.renew_many(self.leases)
        assert all(isinstance(status, LeaseStatus) and status.expires_in == TTL for status in renewed)


class Releasing(Step):
    def prepare(self, nth: int) -> None:
        self.lease = self.client.acquire(f"resource-{nth}", ttl=TTL).detach().lease_id

    def run(self, nth: int) -> None:
        self.client.release(self.lease)
        status = self.client.get(self.lease)
        assert status is not None
        assert status.lease.state is LeaseState.RELEASED


class RaisingTheEpoch(Step):
    epoch = 0

    def prepare(self, nth: int) -> None:
        self.clock.reboot()

    def run(self, nth: int) -> None:
        token = self.client.acquire(f"resource-{nth}", ttl=TTL, request_id=f"request-{nth}").detach().token
        epoch, self.epoch = self.epoch, token // COUNTER_LIMIT
        assert self.epoch > epoch


@pytest.mark.parametrize("durability", ["full", "fast"])
@pytest.mark.parametrize("kind", [Acquiring, Renewing, Releasing, RaisingTheEpoch])
def test_a_disk_error_at_any_point_leaves_nothing_half_done_and_is_over_when_the_disk_works(
    tmp_path: Path, kind: type[Step], durability: str
) -> None:
    path, disk, clock = tmp_path / "leases", FaultyDisk(), FakeClock()
    with client_of(path, disk=disk, clock=clock, durability=durability) as client, store_at(path) as witness:
        step = kind(client, clock)
        numbers = itertools.count(1)
        for operation, error, expected in FAULTS:
            for nth in itertools.count(1):
                number = next(numbers)
                step.prepare(number)
                highest, head = highest_token(client), position_of(witness)
                disk.fail(operation, nth=nth, error=error, lasting=True)
                failure = failure_of(lambda: step.run(number))  # noqa: B023
                fired = disk.fired
                disk.repair()
                if failure is None:
                    assert fired == 0
                    break
                assert type(failure) is expected, failure
                assert str(path) in str(failure)
                assert audit(witness).problems == []
                # An epoch has a commit of its own, before that of the lease.
                assert client.history(after=head) == [], "what failed shows nevertheless"
                step.run(number)
                assert audit(witness).problems == []
                assert all(token > highest for token in tokens_since(client, head))
            assert failures_were_reached(kind, operation, durability, nth)
    assert a_new_process_can_acquire(path)


def failures_were_reached(kind: type[Step], operation: Operation, durability: str, nth: int) -> bool:
    """Whatever is written is written in several pieces; in relaxed durability only an epoch is synced."""
    synced = durability == "full" or kind is RaisingTheEpoch
    return nth > 8 if operation == "write" else (nth > 1) == synced


@every_fault
def test_a_disk_error_while_a_store_is_made_leaves_no_obstacle_to_making_it(
    tmp_path: Path, operation: Operation, error: int, expected: type[StoreError]
) -> None:
    disk = FaultyDisk()
    for nth in itertools.count(1):
        path = tmp_path / f"{nth}"
        made: list[SqliteStore] = []
        disk.fail(operation, nth=nth, error=error, lasting=True)
        failure = failure_of(lambda: made.append(open_store(path, disk=disk)))  # noqa: B023
        fired = disk.fired
        disk.repair()
        if failure is None:
            made[0].close()
            assert fired == 0
            break
        assert type(failure) is expected, failure
        assert str(path) in str(failure)
        with client_of(path, disk=disk) as client:
            assert client.acquire("resource").token
        assert problems_of(path) == []
    assert nth > 3


@every_fault
def test_a_commit_whose_checkpoint_fails_is_found_again_by_its_request_id(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    operation: Operation,
    error: int,
    expected: type[StoreError],
) -> None:
    monkeypatch.setattr("leasehold.stores.sqlite.connection._CHECKPOINT_PAGES", 1)
    path, disk = tmp_path / "leases", FaultyDisk()
    with client_of(path, disk=disk) as client, store_at(path) as witness:
        for nth in itertools.count(1):
            disk.repair()
            disk.fail(operation, nth=nth, error=error, file="store", lasting=True)
            failure = failure_of(lambda: Acquiring(client, FakeClock()).run(nth))  # noqa: B023
            fired = disk.fired
            disk.repair()
            # The commit came before its checkpoint.
            (status,) = client.inspect(f"resource-{nth}")
            again = client.acquire(f"resource-{nth}", ttl=TTL, request_id=f"request-{nth}").detach()
            assert (again.lease_id, again.token) == (status.lease.lease_id, status.lease.token)
            assert audit(witness).problems == []
            if not fired:
                break
            # Checkpoint what is left, or the next one has more pages to write than the fault has patience.
            client.acquire(f"other-{nth}", ttl=TTL).release()
            # An error after which the outcome is unknown is asked about by the client itself.
            assert failure is None or type(failure) is expected is StoreFull
    assert nth > 1
    assert a_new_process_can_acquire(path)


def test_an_error_that_passes_is_made_good_before_the_caller_sees_it(tmp_path: Path) -> None:
    path, disk = tmp_path / "leases", FaultyDisk()
    with client_of(path, disk=disk) as client:
        disk.fail("sync", error=errno.EIO)
        first = client.acquire("resource", ttl=TTL)
        assert disk.fired == 1
        assert len(client.history(resource="resource")) == 1
        assert client.get(first.lease_id) is not None


def test_a_commit_that_failed_at_its_last_sync_and_came_to_light_after_a_crash_is_not_granted_twice(
    tmp_path: Path,
) -> None:
    path = tmp_path / "leases"
    with others(Other(die_after_an_unsynced_commit, path)) as (victim,):
        assert victim.join() == -9
    with client_of(path, holder="victim") as client:
        # Whether the bytes survive is up to the disk; here they do.
        (status,) = client.inspect("resource")
        again = client.acquire("resource", ttl=TTL, request_id="request")
        assert (again.lease_id, again.token) == (status.lease.lease_id, status.lease.token)
        assert client.acquire("another").token > again.token
    assert problems_of(path) == []


def die_after_an_unsynced_commit(pipe: Pipe, path: Path) -> None:
    import os
    import signal

    disk = FaultyDisk()
    with client_of(path, holder="victim", disk=disk) as client:
        disk.at("sync", nth=1, action=lambda _: os.kill(os.getpid(), signal.SIGKILL))
        client.acquire("resource", ttl=TTL, request_id="request")


def failure_of(run: Callable[[], object]) -> StoreError | None:
    try:
        run()
    except StoreError as failure:
        return failure
    return None


@contextmanager
def store_at(path: Path) -> Iterator[SqliteStore]:
    with closing(open_store(path)) as store:
        yield store


def position_of(store: SqliteStore) -> int:
    with store.snapshot() as snapshot:
        return snapshot.head.position


def highest_token(client: Client) -> int:
    return max([0, *tokens_since(client, 0)])


def tokens_since(client: Client, position: int) -> Iterator[int]:
    for entry in client.history(after=position, types=["lease.issued"]):
        token = getattr(entry.event, "token", None)
        assert isinstance(token, int)
        yield token


def a_new_process_can_acquire(path: Path) -> bool:
    with others(Other(acquire_and_say, path)) as (other,):
        token: int = other.hear()
        assert other.join() == 0
    with client_of(path) as client:
        return highest_token(client) == token


def acquire_and_say(pipe: Pipe, path: Path) -> None:
    with client_of(path, holder="newcomer") as client:
        pipe.send(client.acquire("a resource for newcomers").token)

"""A store that can be looked over, and a committer that says when a call has come."""

import itertools
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from leasehold.engine.batch import Outcome, Request
from leasehold.engine.bells import Bells
from leasehold.engine.call import Call
from leasehold.engine.committer import Committer
from leasehold.engine.port import Batch, Snapshot, SoftState, Store, Transaction, WouldBlock
from leasehold.engine.registrar import Registrar
from leasehold.engine.sealing import Sealer
from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.commands import Acquire, Release
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.records import Keys, Records
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND as SECOND

SIGNAL_SECONDS = 30.0
"""How long to wait for something that is sure to come. A test that waits so long has failed."""

_PYTHON = re.compile(r"\w\(\w+=|<\w+\.|\bNone\b|\bb['\"]|\[\(|Error\(")

Kind = TypeVar("Kind")
_numbers = itertools.count(1)


def claim(resource: str, holder: str = "ann", **fields: Any) -> Acquire:
    """A claim with ids of its own."""
    number = next(_numbers)
    defaults: dict[str, Any] = {"lease_id": f"lease-{number}", "request_id": f"request-{number}"}
    defaults["ttl_ns"] = 10 * SECOND
    return Acquire(resource=resource, holder=holder, **(defaults | fields))


def release(lease: Lease) -> Release:
    return Release(
        lease_ids=(lease.lease_id,),
        holder=lease.holder,
        tenant=lease.tenant,
        request_id=f"request-{next(_numbers)}",
    )


def expect(kind: type[Kind], outcome: object) -> Kind:
    """The outcome, which has to be of one kind."""
    assert isinstance(outcome, kind), outcome
    return outcome


def registrar_of(client: Any) -> Registrar:
    """The registrar that a client, of whatever shape, talks to."""
    desk = getattr(client, "target", client)._session.desk
    desk = getattr(desk, "inner", desk)
    assert isinstance(desk, Registrar)
    return desk


def created(batch: Batch) -> list[Lease]:
    """The leases that a batch makes."""
    return [change.after for change in batch.changes if change.before is None]


def granted(outcome: object) -> Lease:
    return expect(Granted, outcome).lease


def is_told_plainly(problems: list[str]) -> bool:
    """Say whether nobody has to know Python to read what an audit found."""
    return not any(_PYTHON.search(problem) for problem in problems)


class WatchedStore:
    """A store that counts what is asked of it, and lets a test step in at any moment.

    `occupy` makes it behave as if another process were writing: who does not want to wait is turned away,
    who does, waits; `waiting` is released for each of these.
    """

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.commits: list[Batch] = []
        self.reads: list[Keys] = []
        self.writers: list[str] = []
        """The name of the thread that opened each transaction."""
        self.other_families: Families | None = None
        """Families to decide by, if they are not those of the inner store: with quotas, say."""
        self.durable: list[bool] = []
        """Whether each transaction was to be made durable in any case."""
        self.before_commit: Callable[[Batch], None] = lambda batch: None
        self.after_commit: Callable[[Batch], None] = lambda batch: None
        self.waiting = threading.Semaphore(0)
        self.process_id: int | None = None
        self._free = threading.Event()
        self._free.set()

    @property
    def url(self) -> str:
        return self.inner.url

    @property
    def sealer(self) -> Sealer:
        return self.inner.sealer

    @property
    def bells(self) -> Bells:
        return self.inner.bells

    def occupy(self, process_id: int = 4242) -> None:
        self.process_id = process_id
        self._free.clear()

    def vacate(self) -> None:
        self.process_id = None
        self._free.set()

    @contextmanager
    def write(self, *, blocking: bool = True, durable: bool = False) -> Iterator[Transaction]:
        if not self._free.is_set():
            if not blocking:
                raise WouldBlock
            self.waiting.release()
            assert self._free.wait(SIGNAL_SECONDS)
        with self.inner.write(blocking=blocking, durable=durable) as transaction:
            self.writers.append(threading.current_thread().name)
            self.durable.append(durable)
            commit, read = transaction.commit, transaction.read

            def watched(batch: Batch) -> None:
                self.before_commit(batch)
                commit(batch)
                self.commits.append(batch)
                self.after_commit(batch)

            def watched_read(keys: Keys) -> Records:
                self.reads.append(keys)
                return read(keys)

            transaction.commit = watched  # type: ignore[method-assign]
            transaction.read = watched_read  # type: ignore[method-assign]
            yield transaction

    @property
    def families(self) -> Families:
        return self.inner.families if self.other_families is None else self.other_families

    @property
    def soft(self) -> SoftState:
        return self.inner.soft

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        return self.inner.snapshot()

    def wait(self, position: int, timeout: float) -> bool:
        return self.inner.wait(position, timeout)

    def blocker(self) -> int | None:
        return self.process_id

    def close(self) -> None:
        self.inner.close()


class SignallingCommitter(Committer):
    """A committer that says when a call has got its place in the queue, or need not queue up."""

    def __init__(self, store: Store, *, timeout: float = SIGNAL_SECONDS) -> None:
        self.queued = threading.Semaphore(0)
        super().__init__(store, timeout=timeout)

    def _take_lead(self, request: Request) -> bool:
        lead = super()._take_lead(request)
        if lead:
            self.queued.release()
        return lead

    def _enqueue(self, call: Call) -> bool:
        lead = super()._enqueue(call)
        self.queued.release()
        return lead

    def wait_until_queued(self, calls: int) -> None:
        """Wait for so many calls more to come."""
        for _ in range(calls):
            assert self.queued.acquire(timeout=SIGNAL_SECONDS)


class Caller(threading.Thread):
    """A call from a thread of its own, and what came of it."""

    def __init__(self, call: Callable[[], Outcome]) -> None:
        super().__init__(daemon=True)
        self._call = call
        self._outcome: Outcome | None = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._outcome = self._call()
        except BaseException as error:
            self.error = error

    def ended(self) -> None:
        self.join(SIGNAL_SECONDS)
        assert not self.is_alive(), "the call was never answered"

    def outcome(self) -> Outcome:
        self.ended()
        if self.error is not None:
            raise self.error
        assert self._outcome is not None
        return self._outcome

"""What a monitoring system can know of this server, and how it is counted.

Counters tell what this server has done since it was started; what local programs do to the same store is not
in them (`leasehold metrics` counts along the ledger, whoever has written it). Labels are bounded: kinds of
commands and questions, stable codes, known reasons; never a name that a client has chosen.

What stands now is counted by looking at all of it. A look that took long is not repeated soon, so that
monitoring never takes more than a small part of the time.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from leasehold.engine.batch import Done
from leasehold.engine.desk import Failure, Outcome
from leasehold.engine.port import LeaseQuery, Store
from leasehold.engine.status import statuses_of
from leasehold.errors import LeaseLost, StoreError, error_with
from leasehold.kernel.lease.answers import Waiting
from leasehold.kernel.lease.events import (
    REBOOT,
    LeaseExpired,
    LeaseIssued,
    LeaseLeft,
    LeaseQueued,
    LeaseReleased,
    LeaseRevoked,
)
from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.ledger.events import REGISTRAR, Event
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND

_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_WAITS = (0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
_WAITERS_MAXIMUM = 10_000
"""How many claims are remembered to tell how long they waited."""
_STALE = frozenset({"STALE_TOKEN", "STALE_EPOCH", "LEASE_VIOLATION"})
_PAGE = 1_000
_LOOKING_SHARE = 20
"""A look that took a second is good for so many."""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Meters:
    """All that is counted in one server."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._requests = Counter(
            "leasehold_http_requests",
            "Requests, by method and status.",
            ["method", "status"],
            registry=registry,
        )
        self._operations = Counter(
            "leasehold_operations",
            "Commands and questions, by kind and by what became of them.",
            ["kind", "outcome"],
            registry=registry,
        )
        self._seconds = Histogram(
            "leasehold_operation_seconds",
            "How long commands and questions took, by kind.",
            ["kind"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._counted: dict[tuple[str, str], tuple[Counter, Histogram]] = {}
        """What counts an operation, by kind and outcome: to find it anew costs more than to count."""
        self._batches = Histogram(
            "leasehold_batch_commands", "Commands in one transaction.", buckets=_SIZES, registry=registry
        )
        self._granted = Counter("leasehold_grants", "Leases that were granted.", registry=registry)
        self._ended = Counter("leasehold_endings", "Leases that ended, by how.", ["how"], registry=registry)
        self._lost = Counter(
            "leasehold_losses",
            "Leases that ended against their holders' will, by reason.",
            ["reason"],
            registry=registry,
        )
        self._left = Counter("leasehold_waits_in_vain", "Claims that left the queue.", registry=registry)
        self._waited = Histogram(
            "leasehold_wait_seconds",
            "How long claims waited to be granted.",
            buckets=_WAITS,
            registry=registry,
        )
        self._stale = Counter(
            "leasehold_stale_refused",
            "Commands refused because their lease or token was not good any more, by code.",
            ["code"],
            registry=registry,
        )
        self._store_errors = Counter(
            "leasehold_store_errors", "What the store could not do, by code.", ["code"], registry=registry
        )
        self.streams = 0
        """How many event streams are open."""
        self._streams = Gauge("leasehold_streams_open", "Event streams that are open.", registry=registry)
        self.under_way = 0
        """How many requests are being answered."""
        self._under_way = Gauge(
            "leasehold_http_requests_under_way", "Requests that are being answered.", registry=registry
        )
        self._live = Gauge("leasehold_live_leases", "Leases that are held now.", registry=registry)
        self._queue = Gauge("leasehold_waiting_claims", "Claims that wait now.", registry=registry)
        self._longest = Gauge(
            "leasehold_longest_queue",
            "Claims that wait for the same resource, where most do.",
            registry=registry,
        )
        self._queued: OrderedDict[str, int] = OrderedDict()
        self._good_until = 0.0

    def request(self, method: str, status: int) -> None:
        """Count a request."""
        self._requests.labels(method if method in _METHODS else "other", str(status)).inc()

    def operation(self, kind: str, outcome: Outcome, seconds: float) -> None:
        """Count a command, or a question, and what became of it."""
        code = _code_of(outcome)
        counted = self._counted.get((kind, code))
        if counted is None:
            counted = self._counted[kind, code] = (
                self._operations.labels(kind, code),
                self._seconds.labels(kind),
            )
        counted[0].inc()
        counted[1].observe(seconds)
        if code.islower():
            return
        error = error_with(code)
        if issubclass(error, LeaseLost) or code in _STALE:
            self._stale.labels(code).inc()
        elif issubclass(error, StoreError):
            self._store_errors.labels(code).inc()

    def batch(self, done: Done) -> None:
        """Count what one transaction has done. Called by the committer, after the commit."""
        self._batches.observe(len(done.outcomes))
        for event in done.events:
            count = self._counts.get(type(event))
            if count is not None:
                count(self, event)

    def _count_issued(self, event: LeaseIssued) -> None:
        self._granted.inc()
        since_ns = self._queued.pop(event.lease_id, None)
        if since_ns is not None:
            self._waited.observe(max(0, event.at_ns - since_ns) / NANOSECONDS_PER_SECOND)

    def _count_queued(self, event: LeaseQueued) -> None:
        self._queued.setdefault(event.lease_id, event.at_ns)
        if len(self._queued) > _WAITERS_MAXIMUM:
            self._queued.popitem(last=False)

    def _count_left(self, event: LeaseLeft) -> None:
        self._queued.pop(event.lease_id, None)
        self._left.inc()

    def _count_released(self, event: LeaseReleased) -> None:
        del event
        self._ended.labels("released").inc()

    def _count_expired(self, event: LeaseExpired) -> None:
        del event
        self._ended.labels("expired").inc()
        self._lost.labels("expired").inc()

    def _count_revoked(self, event: LeaseRevoked) -> None:
        self._ended.labels("revoked").inc()
        by_registrar = REBOOT if event.reason == REBOOT else "registrar"
        self._lost.labels(by_registrar if event.actor == REGISTRAR else "operator").inc()

    _counts: dict[type[Event], Callable[["Meters", Any], None]] = {
        LeaseIssued: _count_issued,
        LeaseQueued: _count_queued,
        LeaseLeft: _count_left,
        LeaseReleased: _count_released,
        LeaseExpired: _count_expired,
        LeaseRevoked: _count_revoked,
    }

    def text(self, store: Store) -> bytes:
        """Return everything in the text format of Prometheus. Looks at the store, so it can take a while."""
        began = time.monotonic()
        if began >= self._good_until:
            self._look(store)
            took = time.monotonic() - began
            self._good_until = began + took * _LOOKING_SHARE
        self._streams.set(self.streams)
        self._under_way.set(self.under_way)
        return generate_latest(self.registry)

    def _look(self, store: Store) -> None:
        """Count what stands and what waits, as of one moment."""
        live = 0
        queues: dict[tuple[str, str], int] = {}
        query = LeaseQuery(states=(LeaseState.ACTIVE, LeaseState.PENDING), limit=_PAGE)
        with store.snapshot() as snapshot:
            while found := snapshot.leases(query):
                for status in statuses_of(found, snapshot):
                    lease = status.lease
                    if lease.state is LeaseState.PENDING:
                        place = (lease.tenant, lease.resource)
                        queues[place] = queues.get(place, 0) + status.is_live
                    else:
                        live += status.is_live
                query = LeaseQuery(states=query.states, limit=_PAGE, after=found[-1].lease_id)
        self._live.set(live)
        self._queue.set(sum(queues.values()))
        self._longest.set(max(queues.values(), default=0))


def _code_of(outcome: Outcome) -> str:
    match outcome:
        case Refusal():
            return outcome.rule or outcome.code.value
        case Failure():
            return outcome.code
        case Waiting():
            return "waiting"
        case _:
            return "ok"

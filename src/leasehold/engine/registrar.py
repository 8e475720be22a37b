"""The authority that a client talks to: commands in, answers out, and a look at what is there.

Reads do not wait for writers. They see the store as of one moment, and say how long each lease has left at
that moment, by the authority's clock.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from leasehold.engine.audit import Audit, audit
from leasehold.engine.batch import Outcome
from leasehold.engine.call import Call
from leasehold.engine.clock import Ids
from leasehold.engine.committer import Committer
from leasehold.engine.port import EntryQuery, Head, LeaseQuery, Snapshot, Store
from leasehold.engine.pruning import Pruning, prune
from leasehold.engine.recording import open_epoch
from leasehold.engine.sealing import NoKeyAtHand
from leasehold.engine.signing import SigningKey
from leasehold.errors import HistoryPruned, InvalidInput, StoreBusy, error_of
from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.family import lease_part
from leasehold.kernel.lease.lineage import standing
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.lease.paths import is_path
from leasehold.kernel.lease.records import (
    LEASE,
    LeaseFound,
    children_of,
    lease_keys,
)
from leasehold.kernel.lease.ticket import CLAIM_WINDOW_NS
from leasehold.kernel.ledger.authority import ClockReading, now_of, observe
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.commands import LOCAL, Caller, Command
from leasehold.kernel.ledger.keys import Key
from leasehold.kernel.ledger.records import EVERYTHING, Missing
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND, Now
from leasehold.kernel.ledger.view import View

_AnswerType = TypeVar("_AnswerType")

PAGE_MAXIMUM = 10_000


class LeaseStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A lease and how it stands at the moment of the answer."""

    lease: Lease
    expires_in: float
    """Seconds left by the authority's clock; 0 for a lease that has ended or expired."""

    @property
    def is_live(self) -> bool:
        """Say whether the lease still stands."""
        return self.expires_in > 0


class PrunedHistory(msgspec.Struct, frozen=True, kw_only=True):
    """Where a history begins that was pruned."""

    pruned: int
    """The last entry that is gone."""
    checkpoint: int
    """The entry that stands for all that are."""
    at_ns: int
    """When it was pruned, in wall time."""
    actor: str
    """Who did it."""


class Registrar:
    """Kernel, engine and store, as one thing to talk to."""

    def __init__(self, store: Store, *, timeout: float = 30.0) -> None:
        self.store = store
        self.timeout = timeout
        """How many seconds a command waits for another process to finish writing."""
        self.ids = Ids()
        open_epoch(store)
        self._committer = Committer(store, timeout=timeout)

    def call(self, command: Command, caller: Caller = LOCAL) -> Outcome:
        """Run a command, and wait for its outcome."""
        return self._committer.call(command, caller)

    def submit(self, command: Command, deliver: Callable[[Outcome], None], caller: Caller = LOCAL) -> Call:
        """Run a command soon, and hand its outcome to `deliver`."""
        return self._committer.submit(command, deliver, caller)

    def withdraw(self, call: Call) -> StoreBusy | None:
        """Take a submitted command back and return why; None if it is too late for that."""
        return self._committer.withdraw(call)

    def get(self, lease_id: str) -> LeaseStatus | None:
        """Return a lease by its id."""
        with self.store.snapshot() as snapshot:
            found = snapshot.lease(lease_id)
            return None if found is None else status_of(found, snapshot)

    def won(self, lease_ids: tuple[str, ...]) -> Granted | None:
        """Return what a waiting claim was granted, if that can be told by looking."""
        with self.store.snapshot() as snapshot:
            return won(snapshot, lease_ids)

    def standing_on(self, tenant: str, resource: str) -> list[LeaseStatus]:
        """Return the leases that stand on a resource now, oldest token first."""
        with self.store.snapshot() as snapshot:
            found = _read(snapshot, resources={(tenant, resource)}).records.values()
            statuses = _statuses_of([one for one in found if one.state is LeaseState.ACTIVE], snapshot)
        return _live(statuses)

    def children(self, tenant: str, lease_id: str) -> list[LeaseStatus]:
        """Return standing leases that were derived from a lease, up to a page of them, oldest token first."""
        with self.store.snapshot() as snapshot:
            found = _read(snapshot, scans={children_of(lease_id)}).records.values()
            statuses = _statuses_of([lease for lease in found if lease.tenant == tenant], snapshot)
        return _live(statuses)

    def crowd(self, tenant: str, resource: str) -> tuple[list[LeaseStatus], list[LeaseStatus]]:
        """Return who holds a resource, and who waits for it, first in line first.

        For a path, also who holds, or waits for, something above or below it.
        """
        everything = (tenant, resource, EVERYTHING)
        trees = {everything} if is_path(resource) else set()
        with self.store.snapshot() as snapshot:
            found = _read(snapshot, resources={(tenant, resource)}, queues={everything}, trees=trees).records
            statuses = [one for one in _statuses_of(list(found.values()), snapshot) if one.is_live]
        waiting = [one for one in statuses if one.lease.state is LeaseState.PENDING]
        held = [one for one in statuses if one.lease.state is LeaseState.ACTIVE]
        return held, sorted(waiting, key=lambda status: status.lease.place)

    def page(self, query: LeaseQuery) -> list[LeaseStatus]:
        """Return one page of leases."""
        _check_limit(query.limit)
        with self.store.snapshot() as snapshot:
            return _statuses_of(snapshot.leases(query), snapshot)

    def entries(self, query: EntryQuery) -> list[Entry]:
        """Return one page of the ledger."""
        _check_limit(query.limit)
        with self.store.snapshot() as snapshot:
            return snapshot.entries(query)

    def beginning(self) -> PrunedHistory | None:
        """Return where the history begins; None if nothing was ever pruned."""
        with self.store.snapshot() as snapshot:
            kept = snapshot.checkpoint()
            if kept is None:
                return None
            (entry,) = snapshot.entries(EntryQuery(after=kept.position - 1, limit=1))
            event = entry.event
            return PrunedHistory(
                pruned=snapshot.pruned, checkpoint=kept.position, at_ns=event.at_ns, actor=event.actor
            )

    def follow(self, query: EntryQuery) -> tuple[list[Entry], int]:
        """Return one page of the ledger, and where the ledger ended at that moment.

        Raise HistoryPruned if entries right behind `query.after` are gone; 0 asks for whatever there is.
        """
        with self.store.snapshot() as snapshot:
            gone = snapshot.pruned
            if 0 < query.after < gone:
                raise HistoryPruned(
                    f"entries up to {gone} were pruned, and you have seen {query.after}; look at what "
                    f"stands now, and go on behind {gone}",
                    position=gone,
                )
            return snapshot.entries(query), snapshot.head.position

    def position(self) -> int:
        """Return the position of the ledger's last entry."""
        with self.store.snapshot() as snapshot:
            return snapshot.head.position

    def has_overdue(self) -> bool:
        """Say whether time has done anything that nobody has recorded."""
        with self.store.snapshot() as snapshot:
            authority = snapshot.authority
            return authority is not None and bool(
                snapshot.due(now_of(authority, snapshot.reading()).tick, limit=1)
            )

    def head(self) -> Head:
        """Return where the ledger ends."""
        with self.store.snapshot() as snapshot:
            return snapshot.head

    def verify(self, head: Head | None, first_key: str | None, trusted: tuple[str, ...]) -> Audit:
        """Check the whole ledger against itself, a head kept elsewhere, and the tables."""
        return audit(self.store, expected=head, first_key=first_key, trusted=trusted)

    def prune(self, actor: str, keep_ns: int, *, dry_run: bool) -> Pruning:
        """Remove old history, or say what would be removed."""
        return prune(self.store, actor=actor, keep_ns=keep_ns, dry_run=dry_run)

    def signing_key(self) -> SigningKey:
        """Return the key that this process signs with; it is enrolled first if need be."""
        while True:
            with suppress(NoKeyAtHand), self.store.snapshot() as snapshot:
                return self.store.sealer.key_for(snapshot.authority, snapshot.signing_keys)
            open_epoch(self.store, to_write=True)

    def signing_keys(self) -> list[Key]:
        """Return every key that the ledger ever admitted, in the order of their enrolment."""
        with self.store.snapshot() as snapshot:
            return snapshot.signing_keys()

    def stop_granting(self) -> None:
        """Take no more claims; what was granted can still be given back."""
        self._committer.stop_granting()

    def close(self) -> None:
        """Stop taking commands, and let go of the store."""
        if self._committer.close():
            self.store.close()


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= PAGE_MAXIMUM:
        raise InvalidInput(f"limit must be from 1 to {PAGE_MAXIMUM}", field="limit", limit=PAGE_MAXIMUM)


def won(snapshot: Snapshot, lease_ids: tuple[str, ...]) -> Granted | None:
    """Return what a waiting claim was granted, as of a snapshot; None if nothing, or if it had better ask.

    It lasts for the rest of the claim window, unless the claim is made again, or the lease is renewed.
    """
    if observe(snapshot.authority, snapshot.reading()) is not None:
        return None  # The clock or the file is not what it was.
    found = list(_read(snapshot, keys=set(lease_ids)).records.values())
    statuses = {status.lease.lease_id: status for status in _statuses_of(found, snapshot)}
    granted = [statuses[lease_id] for lease_id in lease_ids if lease_id in statuses]
    if len(granted) < len(lease_ids) or not all(_can_wait_for_confirmation(status) for status in granted):
        return None
    first, *others = (status.lease for status in granted)
    left_ns = int(min(status.expires_in for status in granted) * NANOSECONDS_PER_SECOND)
    return Granted(lease=first, expires_in_ns=left_ns, also=tuple(others))


def _can_wait_for_confirmation(status: LeaseStatus) -> bool:
    """Say whether a lease was just won by a waiter, who may act on it, and has time enough to confirm it.

    One with a lock-delay must not be acted on before: what nobody confirmed leaves no delay behind.
    """
    lease = status.lease
    if not lease.is_unconfirmed or lease.lock_delay_ns:
        return False
    return status.expires_in * NANOSECONDS_PER_SECOND > min(CLAIM_WINDOW_NS, lease.ttl_ns) // 2


def _read(snapshot: Snapshot, **wanted: Any) -> LeaseFound:
    found: LeaseFound = snapshot.read(lease_keys(**wanted)).families[LEASE]
    return found


def _live(statuses: list[LeaseStatus]) -> list[LeaseStatus]:
    """Return those that stand, oldest token first."""
    return sorted((status for status in statuses if status.is_live), key=lambda status: status.lease.token)


def status_of(lease: Lease, snapshot: Snapshot, reading: ClockReading | None = None) -> LeaseStatus:
    """Say how one lease stands by what time, and the ends of its ancestors, have done to it.

    It does not matter whether anybody has recorded that. `reading`: the time, if it was read already.
    """
    authority = snapshot.authority
    if authority is None:
        return LeaseStatus(lease=lease, expires_in=0.0)
    now = now_of(authority, reading or snapshot.reading())
    expires = lease.expires_tick
    if lease.delegation is None and expires is not None and expires.comparable(now.tick):
        # By far the most usual look, and nothing else has to be known for it.
        return LeaseStatus(lease=lease, expires_in=lease.ticks_remaining(now.tick) / NANOSECONDS_PER_SECOND)
    return _status_of(lease, snapshot, View(snapshot.families, authority), now)


def _statuses_of(leases: list[Lease], snapshot: Snapshot) -> list[LeaseStatus]:
    """Say how leases stand at one moment."""
    authority = snapshot.authority
    if authority is None or len(leases) == 1:
        return [status_of(lease, snapshot) for lease in leases]
    now = now_of(authority, snapshot.reading())
    view = View(snapshot.families, authority)
    return [_status_of(lease, snapshot, view, now) for lease in leases]


def _status_of(lease: Lease, snapshot: Snapshot, view: View, now: Now) -> LeaseStatus:
    while True:
        try:
            lease_now, left_ns = standing(lease, lease_part(view), now)
            return LeaseStatus(lease=lease_now, expires_in=left_ns / NANOSECONDS_PER_SECOND)
        except Missing as missing:
            view.load(missing.keys, snapshot.read(missing.keys))


def answer_of(outcome: Outcome, kind: type[_AnswerType]) -> _AnswerType:
    """Return the answer in an outcome; raise what it was refused with, or what went wrong."""
    if isinstance(outcome, kind):
        return outcome
    if isinstance(outcome, Refusal):
        raise error_of(outcome)
    if isinstance(outcome, Exception):
        raise outcome
    raise TypeError(f"expected {kind.__name__}, got {type(outcome).__name__}")

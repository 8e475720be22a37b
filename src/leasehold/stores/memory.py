"""A store in memory, for one process.

Everything the port promises holds between the threads of a process, except durability: the store is gone
with the process.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice

from leasehold.engine.bells import LocalBells
from leasehold.engine.clock import Clock, SystemClock
from leasehold.engine.port import Batch, Checkpoint, EntryQuery, Head, LeaseQuery, LedgerRow
from leasehold.engine.sealing import Sealer
from leasehold.engine.signing import MemoryKeyRing
from leasehold.engine.turn import Turn
from leasehold.errors import ClientClosed, StoreRejected, StoreUnusable
from leasehold.kernel.authority import Authority, ClockReading, Era
from leasehold.kernel.chain import Entry
from leasehold.kernel.events import Event
from leasehold.kernel.keys import Key
from leasehold.kernel.lease import Lease, LeaseState, Mode
from leasehold.kernel.records import CHILDREN_PAGE, Keys, Records
from leasehold.kernel.replay import State
from leasehold.kernel.tick import Tick
from leasehold.stores.memory_ledger import Ledgered, entry_matches
from leasehold.stores.memory_queues import read_queues


class MemoryStore:
    """Records and the ledger in dictionaries, with one lock for writers and one for each moment."""

    def __init__(self, clock: Clock | None = None, identity: str = "memory:1") -> None:
        self.clock = clock or SystemClock()
        self.identity = identity
        self.sealer = Sealer(MemoryKeyRing())
        self.bells = LocalBells()
        self._process_id = os.getpid()
        self._turn = Turn()
        # Entered by itself, not through the condition: Ctrl-C on the way in would leave that locked for ever.
        self._moment = threading.Lock()
        self._grown = threading.Condition(self._moment)
        self._tables = MemoryTables()
        self._closed = False

    @property
    def url(self) -> str:
        """Return the address of a store in memory; every one that is opened is a new one."""
        return "memory:"

    @contextmanager
    def write(self, *, blocking: bool = True, durable: bool = False) -> Iterator["MemoryTransaction"]:
        """Open a transaction; leaving the block without a commit changes nothing."""
        del durable  # Nothing here outlives the process, whatever one asks for.
        self._ensure_open()
        self._turn.begin(blocking=blocking)
        try:
            self._ensure_open()
            yield MemoryTransaction(self._tables, self.reading, self._commit)
        finally:
            self._turn.end()

    def _commit(self, batch: Batch) -> None:
        with self._moment:
            if self._tables.readers:
                # Whoever looks at the present tables goes on seeing them; we leave them behind.
                self._tables = self._tables.copy()
            self._tables.take_in(batch)
            self._grown.notify_all()

    @contextmanager
    def snapshot(self) -> Iterator["MemorySnapshot"]:
        """Open a consistent read that no writer has to wait for: it costs the next commit a copy."""
        self._ensure_open()
        with self._moment:
            self._ensure_open()
            tables = self._tables
            tables.readers += 1
        try:
            yield MemorySnapshot(tables, self.reading)
        finally:
            with self._moment:
                tables.readers -= 1

    def reading(self) -> ClockReading:
        """Read the authority clock."""
        return ClockReading(
            tick_value=self.clock.tick_ns(),
            wall_ns=self.clock.wall_ns(),
            boot_id=self.clock.boot_id(),
            identity=self.identity,
        )

    def wait(self, position: int, timeout: float) -> bool:
        """Return True once the ledger goes beyond `position`, or False after `timeout` seconds."""
        self._ensure_open()
        with self._moment:
            self._grown.wait_for(lambda: self._closed or self._tables.position > position, timeout)
            self._ensure_open()
            return self._tables.position > position

    def blocker(self) -> int | None:
        """Return None: only threads of this process can be in the way."""
        return None

    def close(self) -> None:
        """Refuse any further use; the memory goes when the last reference does. Closing twice is fine."""
        if self._process_id != os.getpid():
            return
        with self._moment:
            self._closed = True
            self._grown.notify_all()
        self.bells.close()

    def _ensure_open(self) -> None:
        if self._closed:
            raise ClientClosed("this store was closed; connect again")
        if self._process_id != os.getpid():
            raise StoreUnusable(
                f"this store is in the memory of process {self._process_id}, which this one was forked from; "
                "to share leases between processes, use a store in a file"
            )


class MemoryTables(Ledgered):
    """What the store keeps: the ledger, the records, and the indexes it is asked by."""

    def __init__(self) -> None:
        super().__init__()
        self.authority: Authority | None = None
        self.eras: dict[int, Era] = {}
        self.revision = object()
        """Another one after each change."""
        self.keys: dict[bytes, Key] = {}
        self.readers = 0
        """How many snapshots look at these tables, which must not change meanwhile."""

    def copy(self) -> "MemoryTables":
        """Return tables with the same content, to be changed instead of these."""
        twin = MemoryTables()
        twin.authority = self.authority
        twin.eras = dict(self.eras)
        twin.entries = list(self.entries)
        twin.leases = dict(self.leases)
        twin.standing = {key: dict(here) for key, here in self.standing.items()}
        twin.waiting = {key: dict(here) for key, here in self.waiting.items()}
        twin.requests = dict(self.requests)
        twin.keys = dict(self.keys)
        twin.checkpoint = self.checkpoint
        return twin

    def take_in(self, batch: Batch) -> None:
        """Take a whole batch in; raise StoreRejected, and change nothing, if it cannot be."""
        self._refuse_impossible(batch)
        try:
            self._take_in(batch)
        except BaseException:
            self._take_in(batch)  # Interrupted half-way: then whole, because it cannot be nothing any more.
            raise

    def _take_in(self, batch: Batch) -> None:
        """Take a batch in that is possible; doing so twice gives the same."""
        self.entries[self.behind(batch.entries[0].position - 1) :] = batch.entries
        for lease in (*batch.changed, *batch.created):
            self._put(lease)
        for era in batch.ended_eras:
            self.eras[era.number] = era
        for key in batch.keys:
            self.keys[key.public_key] = key
        self.remember(batch.entries)
        if batch.pruned is not None:
            for lease_id in batch.pruned.forgotten:
                self.leases.pop(lease_id, None)
            self.take_away(batch.pruned.through, batch.pruned.checkpoint)
        self.authority = batch.authority
        self.revision = object()

    def rebuild(self, state: State) -> None:
        """Take the records from a state, and the rest of the tables from the records and the ledger."""
        assert state.authority is not None, "a ledger that begins has a registrar"
        made = MemoryTables()
        for lease in state.leases.values():
            made._put(lease)
        made.remember(self.entries)
        self.leases, self.standing, self.waiting = made.leases, made.standing, made.waiting
        self.requests = made.requests
        self.authority, self.eras, self.keys = state.authority, dict(state.eras), dict(state.keys)
        self.revision = object()

    def _refuse_impossible(self, batch: Batch) -> None:
        """Keep unique what must be, whatever the law has let through: lease ids, and exclusive leases."""
        changed = {lease.lease_id: lease for lease in batch.changed}
        taken: set[tuple[str, str]] = set()
        names: set[str] = set()
        for lease in batch.created:
            if lease.lease_id in self.leases or lease.lease_id in names:
                raise StoreRejected("a lease with this id exists already; propose another")
            names.add(lease.lease_id)
        for lease in (*batch.changed, *batch.created):
            if not _is_alone(lease):
                continue
            key = (lease.tenant, lease.resource)
            others = (one for one in self.standing.get(key, {}) if one != lease.lease_id)
            if key in taken or any(_is_alone(changed.get(one, self.leases[one])) for one in others):
                raise StoreRejected("another exclusive lease stands on this resource")
            taken.add(key)

    def _put(self, lease: Lease) -> None:
        """Keep a lease, and the indexes of those that stand, and those that wait, in step."""
        self.leases[lease.lease_id] = lease
        key = (lease.tenant, lease.resource)
        for state, index in ((LeaseState.ACTIVE, self.standing), (LeaseState.PENDING, self.waiting)):
            here = index.setdefault(key, {})
            if lease.state is state:
                here[lease.lease_id] = None
            else:
                here.pop(lease.lease_id, None)
            if not here:
                del index[key]


class MemorySnapshot:
    """One consistent look at the tables."""

    def __init__(self, tables: MemoryTables, reading: Callable[[], ClockReading]) -> None:
        self._tables = tables
        self.reading = reading

    @property
    def authority(self) -> Authority | None:
        """Return the registrar's record."""
        return self._tables.authority

    @property
    def head(self) -> Head:
        """Return where the ledger ends."""
        entries = self._tables.entries
        return Head(position=entries[-1].position, hash=entries[-1].hash) if entries else Head()

    def read(self, keys: Keys) -> Records:
        """Return the records that exist for `keys`."""
        tables = self._tables
        wanted = dict.fromkeys(keys.leases)
        for resource in keys.resources:
            wanted |= tables.standing.get(resource, {})
        events = {key: tables.requests[key] for key in keys.requests if key in tables.requests}
        wanted |= dict.fromkeys(lease_id for event in events.values() for lease_id in event.lease_ids)
        records = Records(
            leases=[tables.leases[lease_id] for lease_id in wanted if lease_id in tables.leases],
            requests=events,
            holders={key: self._count(tenant=key[0], holder=key[1]) for key in keys.holders},
            tenants={tenant: self._count(tenant=tenant, holder=None) for tenant in keys.tenants},
            eras={number: tables.eras[number] for number in keys.eras if number in tables.eras},
            children={parent: self._children(parent) for parent in keys.children},
        )
        read_queues(tables, keys, records)
        found = (*records.leases, *(child for here in records.children.values() for child in here))
        named = keys.resources | {(lease.tenant, lease.resource) for lease in found}
        records.awaited = {key for key in named if tables.is_awaited(key)}
        return records

    def _children(self, parent_id: str) -> list[Lease]:
        """Return unended children of a lease, by looking at all that stands."""
        children = (lease for lease in self._standing() if parent_of(lease) == parent_id)
        return list(islice(children, CHILDREN_PAGE))

    def _standing(self) -> Iterator[Lease]:
        for here in self._tables.standing.values():
            for lease_id in here:
                yield self._tables.leases[lease_id]

    def _count(self, tenant: str, holder: str | None) -> int:
        return sum(
            lease.tenant == tenant and holder in (None, lease.holder) and not lease.is_terminal
            for lease in self._tables.leases.values()
        )

    def lease(self, lease_id: str) -> Lease | None:
        """Return one lease by its id."""
        return self._tables.leases.get(lease_id)

    def signing_keys(self) -> list[Key]:
        """Return every key that the ledger ever admitted."""
        return list(self._tables.keys.values())

    def leases(self, query: LeaseQuery) -> list[Lease]:
        """Return the leases that a query asks for, in the order of their ids."""
        found = [lease for lease in self._tables.leases.values() if _lease_matches(lease, query)]
        return sorted(found, key=lambda lease: lease.lease_id)[: query.limit]

    def entries(self, query: EntryQuery) -> list[Entry]:
        """Return the ledger entries that a query asks for."""
        found: list[Entry] = []
        for entry in self._tables.entries[self._tables.behind(query.after) :]:
            if len(found) == query.limit:
                break
            if entry_matches(entry, query):
                found.append(entry)
        return found

    def rows(self, after: int, limit: int) -> list[LedgerRow]:
        """Return the ledger as it is kept, behind a position."""
        start = self._tables.behind(after)
        found = self._tables.entries[start : start + limit]
        return [(one.position, one.body, one.hash, one.seal, None, one.event) for one in found]

    @property
    def pruned(self) -> int:
        """Return the position of the last entry that is gone."""
        return self._tables.pruned

    def checkpoint(self) -> Checkpoint | None:
        """Return what stands for entries that are gone."""
        return self._tables.checkpoint

    def filing(self, event: Event) -> tuple[object, ...]:
        """Return what an event is found by: itself."""
        return (event,)

    def state(self) -> State:
        """Return everything that the tables say."""
        tables = self._tables
        return State(
            leases=dict(tables.leases),
            authority=tables.authority,
            eras=dict(tables.eras),
            keys=dict(tables.keys),
        )


class MemoryTransaction(MemorySnapshot):
    """The only writer while it lasts."""

    def __init__(
        self, tables: MemoryTables, reading: Callable[[], ClockReading], commit: Callable[[Batch], None]
    ) -> None:
        super().__init__(tables, reading)
        self.commit = commit
        """Take the whole batch in, or raise and take nothing."""

    @property
    def revision(self) -> object:
        """Return what stands for the tables as they are now."""
        return self._tables.revision

    def rebuild(self, state: State) -> None:
        """Make the tables anew, but not the ledger."""
        self._tables.rebuild(state)

    def lapsed(self, now: Tick, limit: int) -> list[str]:
        """Return standing leases that time may have ended, the longest overdue first, then the oldest.

        Behind them come the children that an ended lease has left.
        """
        overdue = [
            (lease.expires_tick.era, lease.expires_tick.value, lease.token, lease.lease_id)
            for lease in self._tables.unended()
            if lease.expires_tick is not None
            and (lease.expires_tick.era, lease.expires_tick.value) <= (now.era, now.value)
        ]
        found = dict.fromkeys(lease_id for *_, lease_id in sorted(overdue))
        found |= dict.fromkeys(lease.lease_id for lease in self._standing() if self._is_orphan(lease))
        return list(found)[:limit]

    def _is_orphan(self, lease: Lease) -> bool:
        parent = self._tables.leases.get(parent_of(lease) or "")
        return parent is not None and parent.delegation is not None and parent.delegation.orphaned


def _is_alone(lease: Lease) -> bool:
    return lease.mode is Mode.EXCLUSIVE and lease.state is LeaseState.ACTIVE


def _lease_matches(lease: Lease, query: LeaseQuery) -> bool:
    return (
        query.tenant in (None, lease.tenant)
        and query.resource in (None, lease.resource)
        and (query.resource_prefix is None or lease.resource.startswith(query.resource_prefix))
        and query.holder in (None, lease.holder)
        and (not query.states or lease.state in query.states)
        and (query.held_at_ns is None or lease.was_held_at(query.held_at_ns))
        and (query.after is None or lease.lease_id > query.after)
    )


def parent_of(lease: Lease) -> str | None:
    """Return the lease that one was derived from, if it was."""
    return None if lease.delegation is None else lease.delegation.parent

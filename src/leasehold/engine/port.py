"""What a store has to be able to do, and nothing more.

A store keeps records and events, tells its own clock, and commits a batch whole or not at all. It knows
nothing about the law of leases: it never decides who may hold what.

How it fails: with a `StoreError`, after which nothing of the batch is there, unless the error says that
the outcome is unknown. A store that notices at commit that what was read has changed meanwhile raises
`Conflict`, and the engine decides again on fresh records.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from leasehold.engine.bells import Bells
from leasehold.engine.sealing import Sealer
from leasehold.kernel.lease.events import Event
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.lease.records import Keys, Records
from leasehold.kernel.ledger.authority import Authority, ClockReading, Era
from leasehold.kernel.ledger.chain import GENESIS_HASH, Entry
from leasehold.kernel.ledger.keys import Key
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick


class WouldBlock(Exception):
    """Another writer is at work, and the caller did not want to wait."""


class Conflict(Exception):
    """What a transaction read has changed before it could commit. Decide again."""


class Head(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where the ledger ends: the position and the hash of its last entry."""

    position: int = 0
    hash: bytes = GENESIS_HASH


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The state that stands for entries which are gone; nothing of it is believed yet."""

    position: int
    """Which entry vouches for it."""
    state: bytes


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """What a commit takes away, beside the checkpoint that it adds."""

    through: int
    """Entries up to here."""
    forgotten: Sequence[str]
    """Leases by id."""
    checkpoint: Checkpoint
    """Replaces the one before."""


class Batch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one transaction commits: events, and the records as they are after them."""

    entries: list[Entry]
    created: list[Lease]
    changed: list[Lease]
    authority: Authority
    ended_eras: list[Era]
    reshaped: set[str] = msgspec.field(default_factory=set)
    """Which of the changed leases have changed in more than their time and their end: mode, token, ticket."""
    opens_epoch: bool = True
    """False spares a store the writing of the authority's epoch, era and clock: they are what they were."""
    keys: Sequence[Key] = ()
    """Keys that were enrolled or retired."""
    pruned: Pruned | None = None


class LeaseQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which leases to list, in the order of their ids (for one client, the order of their grants)."""

    tenant: str | None = None
    """None: of every tenant."""
    resource: str | None = None
    resource_prefix: str | None = None
    holder: str | None = None
    states: tuple[LeaseState, ...] = ()
    """Empty: any state."""
    held_at_ns: int | None = None
    """Only those that were held at this wall time."""
    after: str | None = None
    """Continue behind this lease id."""
    limit: int = 100


class EntryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which ledger entries to read, in order."""

    after: int = 0
    limit: int = 1_000
    tenant: str | None = None
    lease_id: str | None = None
    resource: str | None = None
    holder: str | None = None
    types: tuple[str, ...] = ()


LedgerRow = tuple[Any, ...]
"""An entry as a store keeps it, for those who check it: nothing of it is believed yet.

Its position, body, hash and seal (or None); how many tokens of its epoch had been given out at the end of
its commit (None where that is not kept); and behind that what the store finds it by, which has to be what
`filing` gives for the event in the body. Plain tuples, because a long ledger has millions.
"""


class Snapshot(Protocol):
    """One consistent look at the store, which sees no later commit."""

    @property
    def authority(self) -> Authority | None:
        """Return the registrar's record; None in a store nobody has used yet."""
        ...

    @property
    def head(self) -> Head:
        """Return where the ledger ends."""
        ...

    def reading(self) -> ClockReading:
        """Read the authority clock now."""
        ...

    def read(self, keys: Keys) -> Records:
        """Return the records that exist for `keys`."""
        ...

    def lease(self, lease_id: str) -> Lease | None:
        """Return one lease by its id."""
        ...

    def signing_keys(self) -> list[Key]:
        """Return every key that the ledger ever admitted, in the order of their enrolment."""
        ...

    def lapsed(self, now: Tick, limit: int) -> list[str]:
        """Return leases recorded as standing that time may have ended, the longest overdue first."""
        ...

    def leases(self, query: LeaseQuery) -> list[Lease]:
        """Return the leases that a query asks for."""
        ...

    def entries(self, query: EntryQuery) -> list[Entry]:
        """Return the ledger entries that a query asks for, without checking their hashes."""
        ...

    def rows(self, after: int, limit: int) -> Sequence[LedgerRow]:
        """Return the ledger as it is kept, behind a position."""
        ...

    @property
    def pruned(self) -> int:
        """Return the position of the last entry that is gone; 0 if the ledger has its first."""
        ...

    def checkpoint(self) -> Checkpoint | None:
        """Return what stands for entries that are gone."""
        ...

    def filing(self, event: Event) -> tuple[object, ...]:
        """Return what this store finds an event by."""
        ...

    def state(self) -> State:
        """Return everything that the tables say, whole, to be held against the ledger."""
        ...


class Transaction(Snapshot, Protocol):
    """The only writer while it lasts (or one that will notice at commit that it was not)."""

    @property
    def revision(self) -> object:
        """Return what stands for the store's whole content, before and again after the commit.

        Equal to the revision of another transaction only if nothing whatever was committed in between; None
        if the store cannot tell.
        """
        ...

    def rebuild(self, state: State) -> None:
        """Replace the content of all tables but the ledger's, durably; or raise and change nothing."""
        ...

    def commit(self, batch: Batch) -> None:
        """Make the whole batch durable, or raise and leave nothing of it."""
        ...


class Readable(Protocol):
    """What can be looked at: a store, or a copy of one."""

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Open a consistent read that no writer has to wait for."""
        ...


class Store(Readable, Protocol):
    """Where records and the ledger live."""

    @property
    def url(self) -> str:
        """Return the address under which this store can be opened again."""
        ...

    @property
    def sealer(self) -> Sealer:
        """Return what finds the key that this process seals the ledger with."""
        ...

    @property
    def bells(self) -> Bells:
        """Return where those are woken who wait for leases of this store."""
        ...

    def write(self, *, blocking: bool = True, durable: bool = False) -> AbstractContextManager[Transaction]:
        """Open a transaction; leaving the block without a commit changes nothing.

        `blocking=False` raises WouldBlock instead of waiting for another writer. `durable=True` makes
        this commit survive a power cut even in a store that relaxes that for others.
        """
        ...

    def wait(self, position: int, timeout: float) -> bool:
        """Return True once the ledger goes beyond `position`, or False after `timeout` seconds.

        A hint: it may come late by the store's polling interval, and never gives False for True.
        """
        ...

    def blocker(self) -> int | None:
        """Return the id of the process that keeps other writers waiting, if there is one and it is known."""
        ...

    def close(self) -> None:
        """Let go of files and connections. Closing twice is fine."""
        ...

"""What a store has to be able to do, and nothing more.

A store keeps records and events, tells its own clock, and commits a batch whole or not at all. It knows how
the records of each family are kept and found, on a *shelf* (leases have one of their own, all others are
kept as documents), and nothing about the law: it never decides who may hold what.

How it fails: with a `StoreError`, after which nothing of the batch is there, unless the error says that
the outcome is unknown. A store that notices at commit that what was read has changed meanwhile raises
`Conflict`, and the engine decides again on fresh records.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Annotated, Any, Protocol

import msgspec

from leasehold.engine.bells import Bells
from leasehold.engine.sealing import Sealer
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.ledger.authority import Authority, ClockReading, Era
from leasehold.kernel.ledger.chain import GENESIS_HASH, Entry
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.journal import Change
from leasehold.kernel.ledger.keys import Key
from leasehold.kernel.ledger.records import Keys, Records
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick

Progress = Callable[[int, int], None]
"""Is told how much of how much is done."""


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
    forgotten: Mapping[str, Sequence[str]]
    """Records by family and key."""
    checkpoint: Checkpoint
    """Replaces the one before."""


class Batch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one transaction commits: events, and the records before and after them."""

    entries: list[Entry]
    changes: Sequence[Change]
    """Each record once. What is new, and what of it has changed, is the store's own business."""
    authority: Authority
    ended_eras: list[Era]
    opens_epoch: bool = True
    """False spares a store the writing of all of the authority's record but its counter and its clock."""
    keys: Sequence[Key] = ()
    """Keys that were enrolled or retired."""
    pruned: Pruned | None = None


Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""What every store can compare with; what has come over a wire is held to it."""


class LeaseQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which leases to list, in the order of their ids (for one client, the order of their grants)."""

    tenant: str | None = None
    """None: of every tenant."""
    resource: str | None = None
    resource_prefix: str | None = None
    holder: str | None = None
    states: tuple[LeaseState, ...] = ()
    """Empty: any state."""
    held_at_ns: Number | None = None
    """Only those that were held at this wall time."""
    after: str | None = None
    """Continue after this lease id."""
    limit: int = 100


class EntryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which ledger entries to read, in order."""

    after: Number = 0
    limit: Number = 1_000
    tenant: str | None = None
    lease_id: str | None = None
    resource: str | None = None
    holder: str | None = None
    types: tuple[str, ...] = ()
    family: str | None = None
    """Only events of this family, or of `store` and `key`: the registrar's own."""


LedgerRow = tuple[Any, ...]
"""An entry as a store keeps it, for those who check it: nothing of it is believed yet.

Its position, body, hash and seal (or None); how many tokens of its epoch had been given out at the end of
its commit (None where that is not kept); and behind that what the store finds it by, which has to be what
`filing` gives for the event in the body. Plain tuples, because a long ledger has millions.
"""


class SoftState(Protocol):
    """What can be lost without harm: heartbeats, statistics, positions. The last value wins.

    It is in no ledger, no replay and no verify, and no decision of the law reads it.
    """

    def put(self, family: str, values: Mapping[str, bytes]) -> None:
        """Keep values by key, each in the place of the one before; an empty one takes its key away."""
        ...

    def get(self, family: str) -> dict[str, bytes]:
        """Return all values of a family, by key."""
        ...


class Snapshot(Protocol):
    """One consistent look at the store, which sees no later commit."""

    @property
    def families(self) -> Families:
        """Return the families that this store was opened with."""
        ...

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

    def due(self, now: Tick, limit: int) -> list[tuple[str, str]]:
        """Return records, by family and key, that time has something to do with, the longest overdue first.

        Behind the leases among them come the children that an ended lease has left.
        """
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

    def defects(self, progress: Progress | None = None) -> list[str]:
        """Return what is wrong with how this store keeps things, whatever the ledger says.

        `progress` is told how much of how much is done; what it raises ends the search.
        """
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
    def families(self) -> Families:
        """Return the families that this store was opened with."""
        ...

    @property
    def url(self) -> str:
        """Return the address under which this store can be opened again."""
        ...

    @property
    def soft(self) -> SoftState:
        """Return what is kept beside the ledger."""
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

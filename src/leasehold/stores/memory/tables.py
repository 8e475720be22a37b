"""What a store in memory keeps, and how a batch is taken in: whole, or not at all."""

from leasehold.engine.port import Batch
from leasehold.errors import StoreRejected
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.ledger.authority import Authority, Era
from leasehold.kernel.ledger.keys import Key
from leasehold.kernel.ledger.state import State
from leasehold.stores.memory.ledger import Ledgered


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
        self.refuse_impossible(batch)
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

    def refuse_impossible(self, batch: Batch) -> None:
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


def _is_alone(lease: Lease) -> bool:
    return lease.mode is Mode.EXCLUSIVE and lease.state is LeaseState.ACTIVE

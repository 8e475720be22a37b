"""The ledger of a store in memory: the entries that were not pruned, and what stands for the others."""

from leasehold.engine.port import Checkpoint, EntryQuery
from leasehold.kernel.lease.events import Event, LeaseIssued, Remembered
from leasehold.kernel.ledger.chain import Entry
from leasehold.stores.memory.queues import Unended


class Ledgered(Unended):
    """Entries in order, and which of them each request caused."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []
        self.requests: dict[str, Event] = {}
        self.checkpoint: Checkpoint | None = None

    @property
    def pruned(self) -> int:
        """Return the position of the last entry that is gone. Some entry is always left."""
        return self.entries[0].position - 1 if self.entries else 0

    @property
    def position(self) -> int:
        """Return where the ledger ends."""
        return self.entries[-1].position if self.entries else 0

    def behind(self, position: int) -> int:
        """Return where in the list the entries behind a position begin."""
        return max(0, position - self.pruned)

    def grants_of(self, lease_ids: set[str]) -> dict[str, Event]:
        """Return the events that granted leases, by looking at all that is left of the ledger."""
        if not lease_ids:
            return {}
        issued = (entry.event for entry in self.entries if isinstance(entry.event, LeaseIssued))
        return {event.lease_id: event for event in issued if event.lease_id in lease_ids}

    def take_away(self, through: int, checkpoint: Checkpoint) -> None:
        """Drop the first entries, and the requests that they had caused; doing so twice gives the same."""
        self.checkpoint = checkpoint
        self.entries = self.entries[self.behind(through) :]
        self.requests = {}
        self.remember(self.entries)

    def remember(self, entries: list[Entry]) -> None:
        """Keep which event each request caused."""
        for entry in entries:
            if isinstance(entry.event, Remembered) and entry.event.request is not None:
                self.requests[entry.event.request] = entry.event


def entry_matches(entry: Entry, query: EntryQuery) -> bool:
    """Say whether an entry is among those that a query asks for, wherever it stands."""
    event = entry.event
    return (
        query.tenant in (None, getattr(event, "tenant", None))
        and (query.lease_id is None or query.lease_id in event.lease_ids)
        and query.resource in (None, getattr(event, "resource", None))
        and query.holder in (None, getattr(event, "holder", None))
        and (not query.types or event.type in query.types)
    )

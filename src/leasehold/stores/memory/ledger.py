"""The ledger of a store in memory: the entries that were not pruned, and what stands for the others."""

from leasehold.engine.port import Checkpoint, EntryQuery
from leasehold.kernel.lease.events import LeaseIssued
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.events import Event


class MemoryLedger:
    """Entries in order, and which of them each request caused."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.requests: dict[str, Event] = {}
        self.checkpoint: Checkpoint | None = None

    def copy(self) -> "MemoryLedger":
        """Return a ledger with the same content, to be changed instead of this one."""
        twin = MemoryLedger()
        twin.entries = list(self.entries)
        twin.requests = dict(self.requests)
        twin.checkpoint = self.checkpoint
        return twin

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

    def append(self, entries: list[Entry]) -> None:
        """Take entries in; doing so twice gives the same."""
        self.entries[self.behind(entries[0].position - 1) :] = entries
        self._remember(entries)

    def take_away(self, through: int, checkpoint: Checkpoint) -> None:
        """Drop the first entries, and the requests that they had caused; doing so twice gives the same."""
        self.checkpoint = checkpoint
        self.entries = self.entries[self.behind(through) :]
        self.remember_anew()

    def remember_anew(self) -> None:
        """Find out from the entries which event each request caused."""
        self.requests = {}
        self._remember(self.entries)

    def _remember(self, entries: list[Entry]) -> None:
        for entry in entries:
            event = entry.event
            if event.is_remembered and event.request is not None:
                self.requests[event.request] = event

    def grants_of(self, lease_ids: set[str]) -> dict[str, Event]:
        """Return the events that granted leases, by looking at all that is left of the ledger."""
        if not lease_ids:
            return {}
        issued = (entry.event for entry in self.entries if isinstance(entry.event, LeaseIssued))
        return {event.lease_id: event for event in issued if event.lease_id in lease_ids}

    def find(self, query: EntryQuery) -> list[Entry]:
        """Return the entries that a query asks for."""
        found: list[Entry] = []
        for entry in self.entries[self.behind(query.after) :]:
            if len(found) == query.limit:
                break
            if _matches(entry.event, query):
                found.append(entry)
        return found


def _matches(event: Event, query: EntryQuery) -> bool:
    """Say whether an event is among those that a query asks for, wherever it stands."""
    tenant, lease_id, resource, holder, _ = event.filing
    return (
        query.tenant in (None, tenant)
        and (query.lease_id in (None, lease_id) or _is_among_leases(event, query.lease_id))
        and query.resource in (None, resource)
        and query.holder in (None, holder)
        and (not query.types or event.type in query.types)
        and (query.family is None or event.type.startswith(f"{query.family}."))
    )


def _is_among_leases(event: Event, lease_id: str | None) -> bool:
    """Say whether a lease is among several that an event has changed."""
    return lease_id in event.keys and event.type.startswith(f"{LEASE}.")

"""A transaction on a store in memory."""

from collections.abc import Callable

from leasehold.engine.port import Batch
from leasehold.kernel.authority import ClockReading
from leasehold.kernel.lease import Lease
from leasehold.kernel.replay import State
from leasehold.kernel.tick import Tick
from leasehold.stores.memory.reading import MemorySnapshot, parent_of
from leasehold.stores.memory.tables import MemoryTables


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
        found |= dict.fromkeys(lease.lease_id for lease in self.standing() if self._is_orphan(lease))
        return list(found)[:limit]

    def _is_orphan(self, lease: Lease) -> bool:
        parent = self._tables.leases.get(parent_of(lease) or "")
        return parent is not None and parent.delegation is not None and parent.delegation.orphaned

"""A transaction on a store in memory."""

from collections.abc import Callable

from leasehold.engine.port import Batch
from leasehold.kernel.ledger.authority import ClockReading
from leasehold.kernel.ledger.state import State
from leasehold.stores.memory.reading import MemorySnapshot
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
        """Rebuild the tables, but not the ledger."""
        self._tables.rebuild(state)

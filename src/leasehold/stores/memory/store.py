"""Transactions, snapshots and waiting on tables in memory."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from leasehold.engine.bells import LocalBells
from leasehold.engine.clock import Clock, SystemClock
from leasehold.engine.news import News
from leasehold.engine.port import Batch
from leasehold.engine.sealing import Sealer
from leasehold.engine.signing import MemoryKeyRing
from leasehold.engine.turn import Turn
from leasehold.errors import ClientClosed, StoreUnusable
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.ledger.authority import ClockReading
from leasehold.kernel.ledger.family import Families
from leasehold.stores.memory.reading import MemorySnapshot
from leasehold.stores.memory.soft import MemorySoftState
from leasehold.stores.memory.tables import MemoryTables
from leasehold.stores.memory.writing import MemoryTransaction


class MemoryStore:
    """Records and the ledger in dictionaries, with one lock for writers and one for each moment."""

    def __init__(
        self,
        clock: Clock | None = None,
        identity: str = "memory:1",
        families: Families = LEASES,
    ) -> None:
        self.clock = clock or SystemClock()
        self.identity = identity
        self.families = families
        self.sealer = Sealer(MemoryKeyRing())
        self.bells = LocalBells()
        self._process_id = os.getpid()
        self._turn = Turn()
        self._moment = threading.Lock()
        self._grown = News()
        self._tables = MemoryTables(families)
        self._soft = MemorySoftState()
        self._closed = False

    @property
    def url(self) -> str:
        """Return the address of a store in memory; every one that is opened is a new one."""
        return "memory:"

    @property
    def soft(self) -> MemorySoftState:
        """Return what is kept beside the ledger."""
        self._ensure_open()
        return self._soft

    @contextmanager
    def write(self, *, blocking: bool = True, durable: bool = False) -> Iterator[MemoryTransaction]:
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
            if batch.pruned is not None:
                self._soft.forget(batch.pruned.forgotten)
        self._grown.tell()

    @contextmanager
    def snapshot(self) -> Iterator[MemorySnapshot]:
        """Open a consistent read that no writer has to wait for: it costs the next commit a copy."""
        self._ensure_open()
        tables: MemoryTables | None = None
        try:
            with self._moment:
                self._ensure_open()
                tables = self._tables
                tables.readers += 1
            yield MemorySnapshot(tables, self.reading)
        finally:
            if tables is not None:
                with self._moment:
                    tables.readers -= 1

    def reading(self) -> ClockReading:
        """Read the authority clock."""
        # Wall time first: what a lease has left, added to it, is never later than the truth.
        return ClockReading(
            wall_ns=self.clock.wall_ns(),
            tick_value=self.clock.tick_ns(),
            boot_id=self.clock.boot_id,
            identity=self.identity,
        )

    def wait(self, position: int, timeout: float) -> bool:
        """Return True once the ledger goes beyond `position`, or False after `timeout` seconds."""
        self._ensure_open()
        grown = self._grown.wait_for(lambda: self._closed or self._tables.position > position, timeout)
        self._ensure_open()
        return grown

    def blocker(self) -> int | None:
        """Return None: only threads of this process can be in the way."""
        return None

    def close(self) -> None:
        """Refuse any further use; the memory goes when the last reference does. Closing twice is fine."""
        if self._process_id != os.getpid():
            return
        with self._moment:
            self._closed = True
        self._grown.tell()
        self.bells.close()

    def _ensure_open(self) -> None:
        if self._closed:
            raise ClientClosed("this store was closed; connect again")
        if self._process_id != os.getpid():
            raise StoreUnusable(
                f"this store is in the memory of process {self._process_id}, which this one was forked from; "
                "to share leases between processes, use a store in a file"
            )

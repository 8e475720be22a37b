"""Where the simulated store's bytes are, and how they get lost.

A disk keeps what was committed. In a `fast` world a power cut takes a random number of the last commits, back
to the last one that was synced, and never anything from between. A commit that failed may have reached the
disk all the same, and come to light when the machine starts again, unless another commit has overwritten
it meanwhile.
"""

from collections.abc import Mapping
from typing import Any

from leasehold.engine.port import Batch
from leasehold.engine.signing import SEED_BYTES, MemoryKeyRing, SigningKey
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.family import Families
from leasehold.stores.memory.soft import MemorySoftState
from leasehold.stores.memory.tables import MemoryTables
from simulator.stage import Stage


class Disk:
    """The one copy of the store that engines use at present."""

    def __init__(self, stage: Stage, families: Families) -> None:
        self._stage = stage
        self._fast = stage.plan.fast
        self.tables = MemoryTables(families)
        self.soft = MemorySoftState()
        self.version = 0
        """Counts the changes, so that a transaction notices that it was not alone."""
        self.identity = "8:1"
        self.highest_epoch = 0
        """What is known of epochs outside the tables, and stays when those are replaced."""
        self.key_ring = MemoryKeyRing(lambda: SigningKey(stage.random.randbytes(SEED_BYTES)))
        """The keys beside the store, which every engine of this machine can read."""
        self._synced = self.tables.copy()
        self._unsynced: list[Batch] = []
        self._ghost: Batch | None = None

    @property
    def entries(self) -> list[Entry]:
        """Return the ledger."""
        return self.tables.entries

    def records(self, family: str) -> Mapping[str, Any]:
        """Return the records of a family, by key."""
        return self.tables.shelves[family].records

    def commit(self, batch: Batch, *, durable: bool) -> None:
        """Take a batch in."""
        self._take_in(batch)
        if not self._fast:
            return
        self._unsynced.append(batch)
        if durable or self._stage.random.random() < 0.05:
            self._sync()

    def _take_in(self, batch: Batch) -> None:
        self.tables.take_in(batch)
        self.highest_epoch = max(self.highest_epoch, batch.authority.epoch)
        self.version += 1
        self._ghost = None

    def _sync(self) -> None:
        self._synced = self.tables.copy()
        self._unsynced = []

    def leave_ghost(self, batch: Batch) -> None:
        """Let a commit fail whose bytes have reached the disk already."""
        self._ghost = batch

    def recover_ghost(self) -> Batch | None:
        """Bring to light what a failed commit left behind, if nothing was written over it."""
        ghost = self._ghost
        if ghost is not None:
            self._take_in(ghost)
            self._sync()
        return ghost

    def cut_power(self) -> bool:
        """Lose what was not synced, or the last part of it; return whether that was anything."""
        if not self._unsynced:
            return False
        count = len(self._unsynced)
        kept = self._stage.random.choice((0, 0, self._stage.random.randint(0, count)))
        survivors = self._unsynced[:kept]
        self.replace(self._synced)
        for batch in survivors:
            self._take_in(batch)
        self._sync()
        return kept < count

    def replace(self, content: MemoryTables) -> None:
        """Put another content in the place of the present one, safe on the disk."""
        self.tables = content.copy()
        self.version += 1
        self._ghost = None
        self._sync()

    def rename(self) -> None:
        """Become another file, as a copy is."""
        self.identity = f"8:{int(self.identity.partition(':')[2]) + 1}"

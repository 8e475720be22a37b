"""A store that fails in every way that the port allows, and keeps its promises all the same.

It is an optimistic one: engines do not wait for each other, and one whose transaction was not alone finds
that out at its commit. So another engine can come in between at the worst moments, without threads.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from leasehold.engine.bells import LocalBells
from leasehold.engine.port import Batch, Conflict, WouldBlock
from leasehold.engine.sealing import Sealer
from leasehold.errors import StoreFailed, StoreFull, StoreRejected
from leasehold.kernel.ledger.authority import ClockReading
from leasehold.kernel.ledger.family import Families
from leasehold.stores.memory.reading import MemorySnapshot
from leasehold.stores.memory.writing import MemoryTransaction
from simulator.clocks import AuthorityClock
from simulator.disk import Disk
from simulator.stage import Stage
from simulator.witness import Witness


class Look:
    """At which state of the ledger, and at which tick, a transaction decided."""

    def __init__(self, position: int) -> None:
        self.position = position
        self.tick: int | None = None


class SimulatedStore:
    """One engine's way to the disk."""

    def __init__(
        self,
        stage: Stage,
        clock: AuthorityClock,
        disk: Disk,
        witness: Witness,
        *,
        families: Families,
        come_between: Callable[["SimulatedStore"], None],
        break_down: Callable[[], None],
    ) -> None:
        self._stage = stage
        self._clock = clock
        self._disk = disk
        self._witness = witness
        self._come_between = come_between
        self._break_down = break_down
        self.families = families
        self.soft = disk.soft
        self.sealer = Sealer(disk.key_ring)
        self.bells = LocalBells()
        self.looks: list[Look] = []
        """The transactions of the present batch, without those that were in vain."""
        self.committed: list[Batch] = []

    @property
    def url(self) -> str:
        """Return an address that nobody can use."""
        return "simulated:"

    def begin_batch(self) -> None:
        """Forget the transactions of the last batch."""
        self.looks = []
        self.committed = []

    @contextmanager
    def write(self, *, blocking: bool = True, durable: bool = False) -> Iterator[MemoryTransaction]:
        """Open a transaction; leaving the block without a commit changes nothing."""
        if not blocking and self._stage.strikes("store was busy"):
            raise WouldBlock
        self._come_between(self)
        look = Look(self._disk.tables.position)
        self.looks.append(look)
        version = self._disk.version

        def reading() -> ClockReading:
            found = self.reading()
            look.tick = found.tick_value
            return found

        def commit(batch: Batch) -> None:
            self._commit(batch, look, version, durable=durable)

        yield MemoryTransaction(self._disk.tables, reading, commit)

    def _commit(self, batch: Batch, look: Look, version: int, *, durable: bool) -> None:
        self._come_between(self)
        if self._disk.version != version or self._stage.strikes("store met a conflict"):
            self.looks.remove(look)
            raise Conflict
        if self._stage.strikes("store rejected a batch"):
            raise StoreRejected("simulated")
        if self._stage.strikes("store was full"):
            raise StoreFull("simulated")
        self._disk.tables.refuse_impossible(batch)  # Of what the store refuses, nothing reaches the disk.
        if self._stage.strikes("store failed before the commit"):
            if self._stage.random.random() < 0.5:
                self._disk.leave_ghost(batch)
                self._break_down()
            raise StoreFailed("simulated")
        if self._stage.strikes("commit took long"):
            self._stage.pass_time(self._stage.up_to(self._stage.plan.ttl_ns))
        self._disk.commit(batch, durable=durable)
        self.committed.append(batch)
        self._witness.saw(batch, look.tick)
        if self._stage.strikes("store failed after the commit"):
            raise StoreFailed("simulated")

    @contextmanager
    def snapshot(self) -> Iterator[MemorySnapshot]:
        """Open a consistent read; nothing else happens while it lasts."""
        yield MemorySnapshot(self._disk.tables, self.reading)

    def reading(self) -> ClockReading:
        """Read the authority clock."""
        return ClockReading(
            tick_value=self._clock.tick_ns(),
            wall_ns=self._clock.wall_ns(),
            boot_id=self._clock.boot_id,
            identity=self._disk.identity,
            epoch_floor=self._disk.highest_epoch,
        )

    def wait(self, position: int, timeout: float) -> bool:
        """Say whether the ledger goes beyond `position`; nothing here waits."""
        del timeout
        return self._disk.tables.position > position

    def blocker(self) -> int | None:
        """Return None: nobody waits for anybody."""
        return None

    def close(self) -> None:
        """Do nothing: the disk stays."""

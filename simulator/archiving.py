"""What is done to a store's history from time to time: it is pruned, and the tables are made anew from it."""

from random import Random

from msgspec.structs import replace

from leasehold.engine.audit import audit, rebuild
from leasehold.engine.pruning import prune
from leasehold.errors import LedgerBroken, StoreError
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.commands import REQUEST_MEMORY_NS
from leasehold.stores.memory.tables import MemoryTables
from simulator.disk import Disk
from simulator.stage import Stage
from simulator.store import SimulatedStore
from simulator.witness import Witness

PRUNE = "history to be pruned"


class Archivist:
    """Looks after the history, with dice of its own: other worlds are what they were without it."""

    def __init__(self, stage: Stage, disk: Disk, witness: Witness, store: SimulatedStore) -> None:
        self._stage = stage
        self._disk = disk
        self._witness = witness
        self._store = store
        self._random = Random(f"archivist {stage.plan.seed}")

    def start(self) -> None:
        """Plan what is done when."""
        for kind in self._stage.plan.archiving:
            when_ns = int(self._stage.plan.horizon_ns * self._random.uniform(0.2, 0.95))
            self._stage.after(when_ns, lambda kind=kind: self._do(kind))  # type: ignore[misc]

    def _do(self, kind: str) -> None:
        if self._disk.tables.authority is None:
            return
        self._stage.say("archivist: {}", kind)
        self._stage.tally.note(kind)
        if kind == PRUNE:
            self._prune()
        else:
            self._rebuild()
        self._check_whole()

    def _prune(self) -> None:
        """Let everybody sleep until some of the history is old, and remove that; others come in between."""
        some_ns = self._random.choice((-4, -2, -1, 1)) * self._stage.plan.ttl_ns
        self._stage.sleep(REQUEST_MEMORY_NS + some_ns)
        try:
            prune(
                self._store,
                actor="operator",
                keep_ns=REQUEST_MEMORY_NS,
                batch_entries=self._random.choice((5, 40, 1_000)),
            )
        except LedgerBroken as error:
            self._stage.violate("{}", error)
        except StoreError:
            self._stage.check()  # Half-way, perhaps: what is there has to be right all the same.

    def _rebuild(self) -> None:
        """Damage some rows, and make them anew before anybody else looks."""
        stage, tables = self._stage, self._disk.tables
        before, stage.calm = tables.copy(), True
        try:
            for lease_id in self._random.sample(list(tables.leases), k=min(3, len(tables.leases))):
                if self._random.random() < 0.5:
                    del tables.leases[lease_id]
                else:
                    tables.leases[lease_id] = replace(tables.leases[lease_id], holder="nobody", ttl_ns=1)
            for name in self._others(tables):
                tables.shelves[name].records.clear()
            rebuild(self._store)
        finally:
            stage.calm = False
        self._disk.version += 1
        for name in ("leases", "standing", "waiting", "requests", "authority", "eras", "keys"):
            if getattr(tables, name) != getattr(before, name):
                stage.violate("the {} that were made anew are not what they were", name)
        for name in self._others(tables):
            if tables.shelves[name].records != before.shelves[name].records:
                stage.violate("the records of {} that were made anew are not what they were", name)

    def _others(self, tables: MemoryTables) -> list[str]:
        return [name for name in tables.shelves if name != LEASE]

    def _check_whole(self) -> None:
        problems = audit(self._store).problems
        if problems:
            self._stage.violate("{}", "; ".join(problems))

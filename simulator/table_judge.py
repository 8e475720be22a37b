"""Whether the tables say what the ledger says, and what must always hold does, for every family."""

from typing import Any

from leasehold.engine.port import Batch
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.state import State, invariants
from simulator.disk import Disk
from simulator.stage import Stage
from simulator.truth import Truth


class TableJudge:
    """Checks what a commit has written."""

    def __init__(self, stage: Stage, disk: Disk, families: Families) -> None:
        self._stage = stage
        self._disk = disk
        self._families = families
        self._state = State()
        self._before: dict[tuple[str, str], Any] = {}
        """What events have touched, by family and key, as it was before."""

    def begin(self, state: State) -> None:
        """Begin with a commit, whose events are going to be folded into `state`."""
        self._state, self._before = state, {}

    def touch(self, event: Event) -> None:
        """Note what an event is about to change."""
        if event.is_own:
            return
        name = self._families.of_event[type(event)].name
        records = self._state.of(name)
        for key in event.keys:
            self._before.setdefault((name, key), records.get(key))

    def check(self, batch: Batch, truth: Truth) -> None:
        """Check what was written, once the truth has taken in the whole commit."""
        self._check_changes(batch)
        gone = {} if batch.pruned is None else batch.pruned.forgotten
        for (name, key), _ in self._before.items():
            found, said = self._disk.records(name).get(key), self._state.of(name).get(key)
            if found != said:
                self._stage.violate("{} is not what the ledger says, which is {}", found, said)
        for name, keys in gone.items():
            if not self._state.of(name).keys().isdisjoint(keys):
                self._stage.violate("{} were let go of, and are in the ledger", keys)
        self._check_own()
        problems = invariants(self._concerned(truth), self._families)
        problems += truth.accounts.problems(self._disk.records(LEASE))
        if problems:
            self._stage.violate("{}", "; ".join(problems))

    def _check_changes(self, batch: Batch) -> None:
        """A batch names each record once that is another now than before, and what it was."""
        written = {(change.family, change.key): (change.before, change.after) for change in batch.changes}
        if len(written) < len(batch.changes):
            self._stage.violate("a record was written twice: {}", batch.changes)
        happened = {
            (name, key): (before, self._state.of(name).get(key))
            for (name, key), before in self._before.items()
        }
        for name, change in happened.items():
            if change[0] != change[1] and name not in written:
                self._stage.violate("events changed {}, and it was not written", name)
        for name, change in written.items():
            if change != happened.get(name):
                self._stage.violate("{} was written as {}, and is {}", name, change, happened.get(name))

    def _check_own(self) -> None:
        tables, state = self._disk.tables, self._state
        if tables.authority != state.authority or tables.eras != state.eras:
            self._stage.violate("{} is not what the ledger says", tables.authority)

    def _concerned(self, truth: Truth) -> State:
        """Return everything but leases that ended before, of which there are very many."""
        leases = self._state.of(LEASE)
        touched = (key for name, key in self._before if name == LEASE)
        names = dict.fromkeys((*truth.standing, *truth.waiting, *touched))
        concerned = {lease_id: leases[lease_id] for lease_id in names if lease_id in leases}
        return State(
            records={**self._state.records, LEASE: concerned},
            authority=self._state.authority,
            eras=self._state.eras,
            keys=self._state.keys,
        )

"""What happens to the machine, its clock and the store's file."""

from leasehold.engine.keyholding import rotate
from leasehold.engine.port import Conflict
from leasehold.engine.recording import record
from leasehold.errors import StoreError
from leasehold.kernel.ledger.authority import EPOCH_ZERO_NS, observe, raise_epoch
from leasehold.stores.memory.tables import MemoryTables
from simulator.behaviour import Behaviour
from simulator.clocks import AuthorityClock
from simulator.disk import Disk
from simulator.engine import SimulatedEngine
from simulator.plan import SECOND
from simulator.stage import Stage
from simulator.store import SimulatedStore
from simulator.witness import Witness


class Disasters:
    """Everything that strikes all engines at once."""

    def __init__(
        self,
        stage: Stage,
        *,
        clock: AuthorityClock,
        disk: Disk,
        witness: Witness,
        engines: list[SimulatedEngine],
        store: SimulatedStore,
    ) -> None:
        self._stage = stage
        self._clock = clock
        self._disk = disk
        self._witness = witness
        self._engines = engines
        self._store = store
        self.local: list[Behaviour] = []
        """Clients on the store's machine."""
        self._copies: list[MemoryTables] = []

    def strike(self, kind: str) -> None:
        """Let one of them happen, if it can."""
        self._stage.say("disaster: {}", kind)
        happened = {
            "wall clock jumped": self._jump_wall,
            "authority clock went back": self._go_back,
            "machine rebooted": self._reboot,
            "restored from a backup": self._restore,
            "key rotated": self._rotate_key,
            "file copied": self._swap,
            "file copied and machine rebooted": self._swap_and_reboot,
        }[kind]()
        if happened:
            self._stage.tally.note(kind)

    def _jump_wall(self) -> bool:
        """Set the wall clock; not back while nothing else tells a copy what is later: see `_swap`."""
        direction = self._stage.random.choice((-1, 1))
        jump_ns = direction * self._stage.up_to(10**6 * SECOND)
        if self._is_unnoticed_copy() and not self._is_later_than_all_epochs(self._clock.wall_ns() + jump_ns):
            return False
        self._clock.jump_wall(jump_ns)
        return True

    def _is_unnoticed_copy(self) -> bool:
        """Say whether no epoch has begun yet in the copy that was put in the store's place."""
        authority = self._disk.tables.authority
        return authority is not None and authority.identity != self._disk.identity

    def _is_later_than_all_epochs(self, wall_ns: int) -> bool:
        return (wall_ns - EPOCH_ZERO_NS) // SECOND > self._witness.highest_epoch

    def _go_back(self) -> bool:
        self._clock.go_back(1 + self._stage.up_to(4 * self._stage.plan.ttl_ns))
        return True

    def take_copy(self) -> None:
        """Keep a copy of the store for later."""
        if self._disk.entries:
            self._copies.append(self._disk.tables.copy())

    def _reboot(self) -> bool:
        self._stop_machine()
        before = self._hashes()
        if self._disk.cut_power():
            self._stage.tally.note("power cut lost history")
            self._witness.history_was_lost(before)
            return True
        ghost = self._disk.recover_ghost()
        if ghost is not None:
            self._stage.tally.note("failed commit came to light after a reboot")
            self._witness.saw(ghost, ghost.entries[0].event.tick.value)
        return True

    def _stop_machine(self) -> None:
        for engine in self._engines:
            engine.crash()
        for behaviour in self.local:
            behaviour.die_with_machine()
        self._clock.reboot()

    def _restore(self) -> bool:
        """Do as `leasehold restore` does: replace the content, above every epoch there was."""
        if not self._copies or self._disk.tables.authority is None:
            return False
        self._replace(self._stage.random.choice(self._copies))
        while True:
            try:
                with self._store.write(durable=True) as transaction:
                    authority, reading = transaction.authority, transaction.reading()
                    assert authority is not None
                    observed = observe(authority, reading)
                    new_era = observed is not None and observed.tick.era != authority.era
                    restored = raise_epoch(authority, reading, reason="restored", new_era=new_era)
                    record(transaction, [restored], self._store.sealer)
                return True
            except (Conflict, StoreError):
                self._stage.check()

    def _rotate_key(self) -> bool:
        """Seal with another key from now on; copies from before know the old one, which is still here."""
        if self._disk.tables.authority is None:
            return False
        while True:
            try:
                rotate(self._store, actor="operator", reason="simulated")
                return True
            except StoreError:
                self._stage.check()

    def _swap(self) -> bool:
        """Put a plain copy of the folder in its place, which the store notices by itself.

        All that is known of the epochs of the one before is gone with it, and the wall clock alone keeps
        tokens from repeating. If that was set back, or is before the copy is first used, the store promises
        nothing: docs/concepts/guarantees.md, "What cannot be seen from inside".
        """
        copies = [copy for copy in self._copies if copy.authority is not None]
        if not copies or not self._is_later_than_all_epochs(self._clock.wall_ns()):
            return False
        copy = self._stage.random.choice(copies)
        assert copy.authority is not None
        self._replace(copy)
        self._disk.highest_epoch = copy.authority.epoch
        self._disk.rename()
        if self._stage.random.random() < 0.25:
            # Further than the copy is old; and what is noticed first must not hide the other.
            self._clock.go_back(self._stage.plan.horizon_ns)
        return True

    def _swap_and_reboot(self) -> bool:
        swapped = self._swap()
        self._stop_machine()
        return swapped

    def _replace(self, copy: MemoryTables) -> None:
        for engine in self._engines:
            engine.crash()
        before = self._hashes()
        self._disk.replace(copy)
        self._witness.history_was_lost(before)

    def _hashes(self) -> list[bytes]:
        return [entry.hash for entry in self._witness.archive.history()]

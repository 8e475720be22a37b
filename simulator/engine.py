"""An engine process: it gathers requests, runs them as the real engine does, and dies at bad moments."""

from collections.abc import Sequence

from leasehold.engine.batch import Outcome, Recall, Rules, run_batch
from leasehold.engine.port import WouldBlock
from leasehold.engine.status import won
from leasehold.errors import StoreError
from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.ticket import NEXT_IN_LINE
from simulator.judge import Judge
from simulator.post import Envelope, Post
from simulator.stage import Process, Stage
from simulator.store import SimulatedStore
from simulator.witness import Witness


class SimulatedEngine(Process):
    """One of several engines on the same store."""

    def __init__(
        self, stage: Stage, store: SimulatedStore, post: Post, witness: Witness, judge: Judge
    ) -> None:
        super().__init__(stage)
        self._store = store
        self._post = post
        self._witness = witness
        self._judge = judge
        self._inbox: list[Envelope] = []
        self._scheduled = False
        self._down = False
        self._stopped = False
        """Somebody has stopped it, and it comes back only when it is started."""
        self._recall = Recall()
        self._rung: set[str] = set()
        """Where the last batch has rung."""

    @property
    def is_waiting(self) -> bool:
        """Say whether this engine could run a batch right now."""
        return bool(self._inbox) and not self._is_down and self.stage.now_ns >= self.resumes_ns

    @property
    def _is_down(self) -> bool:
        return self._down or self._stopped

    def owns(self, store: SimulatedStore) -> bool:
        """Say whether a store is this engine's own way to the disk."""
        return store is self._store

    def look(self, lease_ids: tuple[str, ...]) -> Granted | None:
        """Look what a waiter on this machine has won, as it would do itself."""
        with self._store.snapshot() as snapshot:
            granted = won(snapshot, lease_ids)
        if granted is not None:
            self._judge.check_look(lease_ids, granted, self._store.reading().tick_value)
        return granted

    def receive(self, envelope: Envelope) -> None:
        """Take a request in, and run it with whatever else has come by then."""
        if self._is_down:
            return
        self._inbox.append(envelope)
        self._schedule()

    def _schedule(self) -> None:
        if self._scheduled or not self._inbox:
            return
        self._scheduled = True
        if self.stage.strikes("engine stalled"):
            self.pause(self.stage.up_to(4 * self.stage.plan.ttl_ns))
        self.later(self._delay_ns(), self._run_scheduled)

    def _delay_ns(self) -> int:
        """Draw when to run. The moment at which a lease ends is the one where mistakes are made."""
        stage = self.stage
        if stage.random.random() < 0.1:
            tick = self._store.reading().tick_value
            end_tick = self._witness.truth.next_end(tick)
            if end_tick is not None and end_tick - tick < stage.plan.ttl_ns // 2:
                return end_tick - tick + stage.random.choice((-1, 0, 0, 1))
        return stage.up_to(stage.plan.latency_ns)

    def _run_scheduled(self) -> None:
        self._scheduled = False
        self.run()

    def run(self) -> None:
        """Run what is waiting as one batch."""
        taken, self._inbox = self._inbox, []
        if not taken:
            return
        if self.stage.strikes("engine crashed before its batch"):
            self.crash()
            return
        outcomes = self._run_batch(taken)
        if outcomes is None:
            self._inbox = taken + self._inbox
            self._schedule()
            return
        self.stage.check()
        commands = [envelope.command for envelope in taken]
        self._judge.check(self._store, commands, outcomes, self._rung)
        if self.stage.strikes("engine crashed between commit and reply"):
            self.crash()
            return
        self._witness.acknowledge()
        for envelope, outcome in zip(taken, outcomes, strict=True):
            self._post.reply(envelope, outcome)

    def _run_batch(self, taken: list[Envelope]) -> Sequence[Outcome] | None:
        """Return the outcomes, or None if another writer was in the way."""
        stage = self.stage
        sweep_limit = stage.random.choice((0, 0, 1, 64))
        rules = Rules(sweep_limit=sweep_limit, wake=self._ring)
        self._rung = set()
        blocking = stage.random.random() < 0.5
        self._store.begin_batch()
        stage.say("batch of {}", len(taken))
        try:
            commands = [envelope.command for envelope in taken]
            callers = [envelope.pending.caller for envelope in taken]
            return run_batch(
                self._store, commands, rules, callers=callers, recall=self._recall, blocking=blocking
            )
        except WouldBlock:
            return None
        except StoreError as error:
            return [error] * len(taken)

    def _ring(self, addresses: frozenset[str]) -> None:
        self._rung |= {address.removesuffix(NEXT_IN_LINE) for address in addresses}
        self._post.ring(frozenset(one for one in addresses if not one.endswith(NEXT_IN_LINE)))

    def crash(self) -> None:
        """Lose everything that was not committed, and come back after a while."""
        self.die()
        self._inbox = []
        self._scheduled = False
        self._down = True
        self._recall = Recall()
        self.later(self.stage.up_to(self.stage.plan.ttl_ns), self._come_back)

    def _come_back(self) -> None:
        self._down = False

    def stop(self) -> None:
        """Be down, until somebody starts it again."""
        self.crash()
        self._stopped = True

    def start(self) -> None:
        """Be there again after it was stopped."""
        self._stopped = False

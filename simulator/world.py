"""A whole simulated world, from a seed to a verdict."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec

from leasehold.engine.audit import audit
from leasehold.engine.batch import Rules, run_batch
from leasehold.engine.recording import open_epoch
from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.commands import Acquire
from leasehold.kernel.lease.family import lease_family
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.lease.ticket import KEPT_NS
from leasehold.kernel.ledger.commands import REQUEST_MEMORY_NS
from leasehold.kernel.ledger.family import Families
from simulator.archiving import Archivist
from simulator.asking import Asker
from simulator.behaviour import Behaviour
from simulator.beliefs import Beliefs
from simulator.certifying import Notary
from simulator.client import SimulatedClient
from simulator.clocks import AuthorityClock, HolderClock
from simulator.disasters import Disasters
from simulator.disk import Disk
from simulator.engine import SimulatedEngine
from simulator.judge import Judge
from simulator.outages import Outages
from simulator.plan import Plan, draw_plan
from simulator.post import Post
from simulator.stage import Stage
from simulator.store import SimulatedStore
from simulator.tally import Tally
from simulator.troupe import Troupe
from simulator.witness import Witness


class SimulationFailed(AssertionError):
    """A promise was broken in the world of a seed."""

    def __init__(self, seed: int, problem: str, lines: list[str]) -> None:
        super().__init__(f"seed {seed}: {problem}")
        self.seed = seed
        self.problem = problem
        self.lines = lines
        """What happened last."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A world in which every promise was kept."""

    seed: int
    plan: Plan
    tally: Tally
    entries: int
    """How long its ledger was in the end."""
    head: bytes
    """The hash of the ledger's last entry: two runs of one seed have the same."""


def simulate(
    seed: int, trace: Callable[[str], None] | None = None, troupes: Sequence[Troupe[Any]] = ()
) -> Report:
    """Run the world of a seed; raise SimulationFailed if a promise was broken in it.

    `troupes` play other families of records in it, beside leases.
    """
    random = Random(seed)
    stage = Stage(draw_plan(seed, random), random, trace)
    world = World(stage, troupes)
    try:
        world.run()
    except Exception as error:
        problem = str(stage.violation or f"{type(error).__name__}: {error}")
        raise SimulationFailed(seed, problem, stage.last_lines()) from error
    last = world.disk.entries[-1]
    return Report(seed=seed, plan=stage.plan, tally=stage.tally, entries=last.position, head=last.hash)


class World:
    """Engines, clients, a disk and a clock, and those who watch over them."""

    def __init__(self, stage: Stage, troupes: Sequence[Troupe[Any]]) -> None:
        self._stage = stage
        self._others = [troupe.family for troupe in troupes]
        families = self._families(stage.plan.quotas)
        self._clock = AuthorityClock(stage)
        self.disk = Disk(stage, families)
        self._witness = Witness(stage, self.disk, families)
        self._judge = Judge(stage, self._witness)
        self._beliefs = Beliefs(stage, self._witness)
        self._post = Post(stage, self._witness.senders)
        self._engines = self._post.engines
        self._come_between_depth = 0
        for _ in range(stage.plan.engines):
            store = self._new_store()
            self._engines.append(SimulatedEngine(stage, store, self._post, self._witness, self._judge))
        self._disasters = Disasters(
            stage,
            clock=self._clock,
            disk=self.disk,
            witness=self._witness,
            engines=self._engines,
            store=self._new_store(),
        )
        self._clients: list[SimulatedClient] = []
        for number in range(stage.plan.clients):
            # Tenants know nothing of each other, so their holders may go by the same names.
            tenant = stage.plan.tenants[number % len(stage.plan.tenants)]
            self._add_client(tenant, f"holder-{number // len(stage.plan.tenants)}")
        self._witness.company.hire(troupes, self._new_actor, lambda: self._witness.truth)

    def _families(self, quotas: Quotas) -> Families:
        return Families((lease_family(quotas), *self._others))

    def _new_actor(self) -> Asker:
        """Make somebody who asks, and holds nothing."""
        drift_ppm = self._stage.plan.drift_ppm
        return Asker(self._stage, self._post, HolderClock(self._stage, drift_ppm))

    def _new_store(self) -> SimulatedStore:
        return SimulatedStore(
            self._stage,
            self._clock,
            self.disk,
            self._witness,
            families=self._families(self._witness.quotas),
            come_between=self._come_between,
            break_down=self._break_down,
        )

    def _add_client(self, tenant: str, holder: str) -> None:
        stage = self._stage
        local = stage.plan.fast or stage.random.random() < 0.5
        client = SimulatedClient(
            stage, self._post, self._witness, self._beliefs, tenant=tenant, holder=holder, local=local
        )
        self._clients.append(client)
        behaviour = Behaviour(client, stable=stage.random.random() < 0.5, peers=self._clients)
        if local:
            self._disasters.local.append(behaviour)
        behaviour.start()

    def _come_between(self, store: SimulatedStore) -> None:
        """Let another engine run its batch first, right in the middle of this one's."""
        if self._come_between_depth or self._stage.calm:
            return
        waiting = [engine for engine in self._engines if engine.is_waiting and not engine.owns(store)]
        if not waiting or not self._stage.strikes("another engine came in between"):
            return
        self._come_between_depth += 1
        try:
            self._stage.random.choice(waiting).run()
        finally:
            self._come_between_depth -= 1

    def _break_down(self) -> None:
        """Where a disk fails, the machine sometimes follows."""
        if self._stage.random.random() < 0.1:
            self._stage.after(0, lambda: self._strike("machine rebooted"))

    def run(self) -> None:
        """Let the world run its course, and check what it has come to."""
        stage, plan = self._stage, self._stage.plan
        stage.say("{}", plan)
        Archivist(stage, self.disk, self._witness, self._new_store()).start()
        Notary(stage, self._clock, self._witness, self._new_store(), self._clients).start()
        Outages(stage, self._witness, self._engines, self._new_store()).start()
        self._witness.company.start()
        for number, kind in enumerate(plan.disasters):
            share = (number + stage.random.random()) / len(plan.disasters)
            when_ns = int(plan.horizon_ns * (0.15 + 0.75 * share))
            stage.after(stage.random.randrange(when_ns), self._disasters.take_copy)
            stage.after(when_ns, lambda kind=kind: self._strike(kind))  # type: ignore[misc]
        stage.run(plan.horizon_ns)
        stage.calm = True
        stage.run(stage.now_ns + 4 * plan.ttl_ns)
        self._check_liveness()
        self._repeat_old_requests()
        self._check_whole()

    def _strike(self, kind: str) -> None:
        if kind == "two incarnations at once":
            client = self._stage.random.choice(self._clients)
            client.pause(self._stage.up_to(2 * self._stage.plan.ttl_ns))
            self._add_client(client.tenant, client.holder)
            self._stage.tally.note(kind)
        else:
            self._disasters.strike(kind)

    def _check_liveness(self) -> None:
        """Once everything has run out, everything can be had, swept or not."""
        stage = self._stage
        self._witness.quotas = Quotas()
        store = self._new_store()
        for client in self._clients:
            client.die()
        open_epoch(store)  # After a reboot that nobody has noticed yet, what leases had left begins only now.
        crowded = stage.plan.crowded
        stage.run(stage.now_ns + 10 * stage.plan.ttl_ns + crowded * KEPT_NS)
        for tenant in stage.plan.tenants:
            for resource in (*stage.plan.resources, *("/",) * crowded):
                command = Acquire(
                    tenant=tenant,
                    request_id=stage.new_name("last"),
                    lease_id=stage.new_name("lease"),
                    resource=resource,
                    holder=stage.new_name("heir"),
                    ttl_ns=stage.plan.ttl_ns,
                )
                (outcome,) = run_batch(store, [command], Rules())
                stage.check()
                if not isinstance(outcome, Granted):
                    stage.violate("{} could not be had when all was over: {}", resource, outcome)

    def _repeat_old_requests(self) -> None:
        """Send some requests again, after the time for which they had to be remembered."""
        stage = self._stage
        stage.run(stage.now_ns + REQUEST_MEMORY_NS)
        store = self._new_store()
        for envelope in self._post.sent:
            if isinstance(envelope.command, Acquire):
                store.begin_batch()
                outcomes = run_batch(store, [envelope.command], Rules())
                stage.check()
                self._judge.check(store, [envelope.command], outcomes)
                if isinstance(outcomes[0], Granted) and not outcomes[0].repeated:
                    stage.tally.note("request repeated after it was forgotten")

    def _check_whole(self) -> None:
        self._witness.check_acknowledged()
        self._witness.check_end()
        problems = audit(self._new_store()).problems
        if problems:
            self._stage.violate("{}", "; ".join(problems))

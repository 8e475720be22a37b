"""What holders do all day, and what else happens to them."""

from msgspec.structs import replace

from leasehold.engine.batch import Outcome
from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.commands import Acquire, Release, Renew, Revoke
from leasehold.kernel.lease.model import Mode, ReleaseReason
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.commands import Sweep
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from simulator.client import SimulatedClient
from simulator.crowding import Crowding
from simulator.delegating import Delegating


class Behaviour:
    """The restless life of one client."""

    def __init__(self, client: SimulatedClient, *, stable: bool, peers: list[SimulatedClient]) -> None:
        self._client = client
        self._stage = client.stage
        self._delegating = Delegating(client, peers) if client.stage.plan.delegating else None
        self._stable = stable
        """It comes back from death under the same name."""
        self._crowding = Crowding(client, peers) if client.stage.plan.crowded else None
        self._granted: Acquire | None = None
        """The last claim that was granted, and is its own request."""

    def start(self) -> None:
        """Begin to do things, again and again."""
        self._client.later(self._stage.up_to(self._stage.plan.ttl_ns), self._live)

    def _live(self) -> None:
        if self._stage.calm:
            return
        client, stage = self._client, self._stage
        if stage.strikes("holder died"):
            self._die()
            return
        if stage.strikes("holder paused"):
            self._pause()
        self._do_something()
        client.later(int(stage.plan.ttl_ns * stage.random.uniform(0.02, 0.5)), self._live)

    def _pause(self) -> None:
        duration_ns = self._stage.up_to(5 * self._stage.plan.ttl_ns)
        trusted_ns = [belief.kept.trusted_for_ns for belief in self._client.held.values()]
        if trusted_ns and max(trusted_ns) < duration_ns:
            self._stage.tally.note("holder paused beyond its lease")
        self._client.pause(duration_ns)

    def _die(self) -> None:
        client, stage = self._client, self._stage
        client.die()
        if not self._stable:
            client.holder = stage.new_name("newcomer")
        client.later(stage.up_to(2 * stage.plan.ttl_ns), self._come_back)

    def die_with_machine(self) -> None:
        """End as every process of a machine does that reboots."""
        self._client.die()
        self._client.later(self._stage.up_to(self._stage.plan.ttl_ns), self._come_back)

    def _come_back(self) -> None:
        if self._stable:
            self._stage.tally.note("holder came back under its name")
        self._live()

    def _do_something(self) -> None:
        random = self._stage.random
        if random.random() > self._stage.plan.busy + 0.5:
            return
        if self._crowding is not None and self._crowding.does_something():
            return
        held = list(self._client.held)
        if held and random.random() < 0.75:
            self._use(random.choice(held), held)
        elif random.random() < 0.8:
            self.acquire(adopt=random.random() < 0.15)
        else:
            self._meddle()

    def _use(self, lease_id: str, held: list[str]) -> None:
        """Do something with a lease that is held."""
        client, stage = self._client, self._stage
        ttl_ns = stage.plan.ttl_ns
        if self._delegating is not None and self._delegating.uses(lease_id):
            return
        match stage.random.choices(
            ("act", "renew", "renew all", "release", "release all", "adopt"), (60, 8, 8, 12, 5, 7)
        )[0]:
            case "act":
                self._act(lease_id)
            case "renew":
                client.renew((lease_id,), stage.random.choice((None, ttl_ns // 2, ttl_ns, 2 * ttl_ns)))
            case "renew all":
                client.renew(tuple(held), None)
            case "release":
                client.release((lease_id,), ReleaseReason.COMPLETED)
            case "release all":
                client.release(tuple(held), ReleaseReason.VOLUNTARY)
            case "adopt":
                self.acquire(client.held[lease_id].lease.resource, adopt=True)

    def _act(self, lease_id: str) -> None:
        """Check the lease, and act; the act may take its time between the two."""
        belief = self._client.held[lease_id]
        if not self._client.ensure(belief):
            return
        delay_ns = 0
        if self._stage.strikes("act arrived late"):
            delay_ns = self._stage.up_to(4 * self._stage.plan.ttl_ns)
        lease = belief.lease
        self._stage.after(delay_ns, lambda: self._client.beliefs.act(belief, lease))

    def acquire(self, resource: str | None = None, *, adopt: bool = False) -> None:
        """Ask for a resource. Who adopts stops trusting its own old lease before it asks."""
        client, stage = self._client, self._stage
        random, ttl_ns = stage.random, stage.plan.ttl_ns
        resource = resource or random.choice(stage.plan.resources)
        for lease_id, belief in list(client.held.items()):
            if adopt and belief.lease.resource == resource:
                client.forget(lease_id)
        lease_id = stage.new_name("lease")
        scope, budget = self._delegating.endowment(adopt=adopt) if self._delegating else (None, None)
        command = Acquire(
            tenant=client.tenant,
            request_id=lease_id if random.random() < 0.5 else stage.new_name("acquire"),
            lease_id=lease_id,
            resource=resource,
            holder=client.holder,
            ttl_ns=random.choice((ttl_ns // 2, ttl_ns, ttl_ns, 3 * ttl_ns)),
            mode=Mode.SHARED if random.random() < 0.3 else Mode.EXCLUSIVE,
            adopt=adopt,
            max_renewals=random.choice((-1, -1, -1, 0, 2)),
            bound_to_boot=client.local and random.random() < 0.8,
            scope=scope,
            budget=budget,
        )
        client.ask(command, lambda outcome, sent_ns: self._take(command, outcome, sent_ns))

    def _take(self, command: Acquire, outcome: Outcome, sent_ns: int) -> None:
        client, stage = self._client, self._stage
        if isinstance(outcome, Granted):
            if not outcome.ended:
                client.take(outcome, sent_ns, renewing=stage.random.random() < 0.6)
                self._granted = command if command.is_its_own_request else self._granted
        elif isinstance(outcome, Refusal):
            if outcome.code is RefusalCode.HELD and stage.random.random() < 0.6:
                # At the very moment at which the obstacle goes away by itself.
                client.later(outcome.expires_in_ns or 0, lambda: self._again(command.resource))
            elif outcome.code is RefusalCode.ALREADY_HELD and stage.random.random() < 0.5:
                self.acquire(command.resource, adopt=True)
        elif stage.random.random() < 0.5:
            # Nobody knows what became of it, so whatever it was is given back.
            client.release((command.lease_id,), ReleaseReason.ABORTED)

    def _again(self, resource: str) -> None:
        if not self._stage.calm:
            self.acquire(resource)

    def _meddle(self) -> None:
        """Do what is nobody's business, or an operator's."""
        client, stage = self._client, self._stage
        known = list(client.witness.truth.leases)[-8:]
        if not known:
            return
        lease_id = stage.random.choice(known)
        request_id = stage.new_name("meddle")
        match stage.random.randrange(8):
            case 0:
                client.ask(self._odd_release(lease_id, request_id), _ignore)
            case 1:
                renew = Renew(
                    tenant=client.tenant, lease_ids=tuple(known), holder="stranger", request_id=request_id
                )
                client.ask(renew, _ignore)
            case 2 | 3:
                revoke = Revoke(
                    tenant=client.tenant,
                    lease_id=lease_id,
                    operator="olga",
                    reason="simulated",
                    request_id=request_id,
                )
                client.ask(revoke, _ignore)
            case 4:
                for key in known:
                    sweep = Sweep(family=LEASE, key=key, request_id=stage.new_name("sweep"))
                    client.ask(sweep, _ignore)
            case 5:
                client.ask(self._odd_claim(lease_id, request_id), _ignore)
            case 6:
                self._use_request_id_again()
            case _:
                self._release_by_name()

    def _odd_release(self, lease_id: str, request_id: str) -> Release:
        """Give back what is another's: another holder's, or that of a namesake in another tenant."""
        client = self._client
        foreign = client.witness.truth.leases[lease_id].key[0] != client.tenant
        holder = client.holder if foreign else "stranger"
        return Release(tenant=client.tenant, lease_ids=(lease_id,), holder=holder, request_id=request_id)

    def _odd_claim(self, lease_id: str, request_id: str) -> Acquire:
        """Ask for a lease id that is taken, or for no time at all."""
        ttl_ns = self._stage.random.choice((0, self._stage.plan.ttl_ns))
        resource = self._stage.random.choice(self._stage.plan.resources)
        return Acquire(
            tenant=self._client.tenant,
            request_id=request_id,
            lease_id=lease_id,
            resource=resource,
            holder="stranger",
            ttl_ns=ttl_ns,
        )

    def _use_request_id_again(self) -> None:
        """Ask for something else under the id of a claim that was granted."""
        first = self._granted
        if first is None or first.holder != self._client.holder:
            return
        self._stage.tally.note("request id used again")
        other = Mode.SHARED if first.mode is Mode.EXCLUSIVE else Mode.EXCLUSIVE
        self._client.ask(replace(first, mode=other), _ignore)

    def _release_by_name(self) -> None:
        """Give back whatever goes under this name, as one who has just come back might."""
        client = self._client
        mine = [
            lease
            for lease in client.witness.truth.standing.values()
            if lease.holder == client.holder and lease.key[0] == client.tenant
        ]
        for lease in mine:
            if not client.holds(lease.lease_id):
                client.witness.taken_back.add(lease.lease_id)
        if mine:
            client.release(tuple(lease.lease_id for lease in mine), ReleaseReason.ABORTED)


def _ignore(outcome: Outcome, sent_ns: int) -> None:
    del outcome, sent_ns

"""What holders do with scopes and budgets: spend, derive children, hand them on, and use them too long."""

from leasehold.engine.batch import Outcome
from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.commands import Derive, Spend
from leasehold.kernel.lease.model import Mode, ReleaseReason
from leasehold.kernel.lease.scope import Scope
from simulator.accounts import PARTS, Account
from simulator.client import SimulatedClient

_TOOLS = ("read", "run", "write")
_NAMESPACES = ("data", "data/raw", "logs")
_FOR_CHILDREN = ("desk", "shelf", "drawer", "lamp", "chair")
"""What children are derived for, mostly: some of it others want, too."""
_MOST = {"episodes": 12, "tool_calls": 40, "tokens": 1_000, "duration_ms": 60_000}


class Delegating:
    """What one client does beyond holding leases."""

    def __init__(self, client: SimulatedClient, peers: list[SimulatedClient]) -> None:
        self._client = client
        self._stage = client.stage
        self._random = client.stage.random
        self._peers = peers

    def endowment(self, *, adopt: bool) -> tuple[Scope | None, Budget | None]:
        """Draw the scope and the budget to ask for; who adopts mostly takes what there is."""
        if self._random.random() < (0.9 if adopt else 0.1):
            return None, None
        unlimited = self._random.random() < 0.4
        scope = Scope(unlimited=True) if unlimited else Scope(tools=_TOOLS[:2], namespaces=("data",))
        return scope, self._draw_budget(_MOST, 0.7)

    def _draw_budget(self, most: dict[str, int], chance: float) -> Budget:
        limits = {part: self._random.randint(1, most[part]) for part in PARTS}
        return Budget(**{part: limit for part, limit in limits.items() if self._random.random() < chance})

    def uses(self, lease_id: str) -> bool:
        """Spend from a held lease or derive from it, or leave it to others and say so."""
        if self._account(lease_id) is None and self._random.random() < 0.9:
            return False
        match self._random.choices(("spend", "derive", "late", "else"), (30, 30, 8, 32))[0]:
            case "spend":
                self._spend(lease_id, self._client.holder)
            case "derive":
                self._derive(lease_id, self._client.holder)
            case "late":
                self._use_late()
            case _:
                return False
        return True

    def _account(self, lease_id: str) -> Account | None:
        return self._client.witness.truth.accounts.all.get(lease_id)

    def _spend(self, lease_id: str, holder: str) -> None:
        command = Spend(
            tenant=self._client.tenant,
            request_id=self._stage.new_name("spend"),
            lease_id=lease_id,
            holder=holder,
            amounts=self._draw_amounts(lease_id),
        )
        self._client.ask(command, _ignore)

    def _draw_amounts(self, lease_id: str) -> Amounts:
        """Draw a little of some parts; and now and then just the rest of one, or one more than that."""
        account, random = self._account(lease_id), self._random
        parts = random.sample(PARTS, k=random.choice((1, 1, 2, 3)))
        amounts = {part: random.randint(1, 1 + _MOST[part] // 6) for part in parts}
        if account is not None and random.random() < 0.25:
            rest = self._client.witness.truth.accounts.rest(account)[parts[0]]
            amounts[parts[0]] = (rest or 1) + random.choice((0, 0, 1))
        return Amounts(**amounts)

    def _derive(self, parent_id: str, holder: str) -> None:
        client, random, ttl_ns = self._client, self._random, self._stage.plan.ttl_ns
        peers = [peer for peer in self._peers if peer.tenant == client.tenant]
        peer = random.choice([client, *peers])
        command = Derive(
            tenant=client.tenant,
            request_id=self._stage.new_name("derive"),
            parent_id=parent_id,
            holder=holder,
            lease_id=self._stage.new_name("lease"),
            resource=random.choice(self._stage.plan.resources if random.random() < 0.2 else _FOR_CHILDREN),
            child_holder=peer.holder,
            ttl_ns=random.choice((None, None, None, ttl_ns // 4, ttl_ns // 2, 3 * ttl_ns)),
            scope=self._draw_part_of_scope(parent_id),
            budget=self._draw_part_of_budget(parent_id),
            mode=random.choice((Mode.SHARED, Mode.EXCLUSIVE, Mode.EXCLUSIVE)),
            max_renewals=random.choice((-1, -1, 2)),
            bound_to_boot=peer.local and random.random() < 0.8,
        )
        client.ask(command, lambda outcome, sent_ns: self._hand_on(command, peer, outcome, sent_ns))

    def _draw_part_of_scope(self, parent_id: str) -> Scope:
        account, random = self._account(parent_id), self._random
        if random.random() < 0.06:
            return Scope(tools=("write",), namespaces=(random.choice(_NAMESPACES),))
        if account is None or random.random() < 0.4:
            return Scope()
        if account.scope.unlimited:
            return Scope(unlimited=True) if random.random() < 0.5 else Scope(tools=_TOOLS)
        namespaces = ("data/raw",) if account.scope.namespaces else ()
        return Scope(tools=account.scope.tools[:1], namespaces=namespaces)

    def _draw_part_of_budget(self, parent_id: str) -> Budget:
        """Draw what fits, mostly: a limit for everything that the parent has limited."""
        account, random = self._account(parent_id), self._random
        if account is None or random.random() < 0.08:
            return self._draw_budget(_MOST, 0.8)
        rest = self._client.witness.truth.accounts.rest(account)
        limited = {part: left for part, left in rest.items() if left is not None}
        return Budget(**{part: random.randint(1, max(1, left // 2)) for part, left in limited.items()})

    def _hand_on(self, command: Derive, peer: SimulatedClient, outcome: Outcome, sent_ns: int) -> None:
        client = self._client
        if isinstance(outcome, Granted):
            if outcome.ended:
                return
            if peer is client:
                client.take(outcome, sent_ns, renewing=self._random.random() < 0.6)
            else:
                lease_id, delay_ns = outcome.lease.lease_id, self._stage.up_to(self._stage.plan.ttl_ns // 4)
                peer.later(delay_ns, lambda: peer.take_over(lease_id))
        elif isinstance(outcome, Exception) and peer is client and self._random.random() < 0.5:
            client.release((command.lease_id,), ReleaseReason.ABORTED)

    def _use_late(self) -> None:
        """Go on with a child of late, whoever has it and whatever became of the leases above it."""
        accounts = self._client.witness.truth.accounts
        children = [account for account in list(accounts.all.values())[-12:] if account.ancestors]
        if not children:
            return
        lease = self._client.witness.truth.leases[self._random.choice(children).lease_id]
        match self._random.randrange(3):
            case 0:
                self._spend(lease.lease_id, lease.holder)
            case 1:
                self._derive(lease.lease_id, lease.holder)
            case _:
                self._client.ask(self._client.renewal(lease.lease_id, lease.holder), _ignore)


def _ignore(outcome: Outcome, sent_ns: int) -> None:
    del outcome, sent_ns

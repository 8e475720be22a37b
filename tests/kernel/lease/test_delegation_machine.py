"""Parents and children at random, against a model that knows nothing of accounts.

The model keeps every spending for ever and adds them up: what a lease has left is what it was granted, less
what was spent under it, less what its living children still have. The kernel keeps running totals, returns
and cascades; both must always give the same answer, and every invariant must hold after every command.
"""

from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, RuleBasedStateMachine, invariant, multiple, rule

from leasehold.kernel.lease.answers import Granted, Renewal, Spent
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.refusals import Refusal
from tests.kernel.registrar import SECOND, Registrar

HOLDERS = st.sampled_from(["ann", "bob"])
SCOPES = st.sampled_from(
    [Scope(), Scope(tools=("read",)), Scope(tools=("read", "write")), Scope(unlimited=True)]
)
PARTS = ("tokens", "tool_calls")
BUDGETS = st.builds(Budget, tokens=st.none() | st.integers(1, 12), tool_calls=st.none() | st.integers(1, 12))
SECONDS = st.integers(1, 6)


@dataclass
class Account:
    """One grant, and everything that was spent from it directly."""

    parent: "Account | None"
    granted: Budget
    scope: Scope
    holder: str
    expires: int
    ttl: int
    over: bool = False
    spent: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    children: list["Account"] = field(default_factory=list)

    def lives(self, now: int) -> bool:
        above = self.parent is None or self.parent.lives(now)
        return above and not self.over and self.expires > now

    def used(self, part: str) -> int:
        return self.spent[part] + sum(child.used(part) for child in self.children)

    def left(self, part: str, now: int) -> int | None:
        """What remains, or None without a limit."""
        granted = getattr(self.granted, part)
        if granted is None:
            return None
        gone: int = self.spent[part]
        for child in self.children:
            limit = getattr(child.granted, part)
            gone += limit if child.lives(now) else child.used(part)
        return int(granted) - gone

    def has(self, wanted: dict[str, int | None], now: int) -> bool:
        lefts = {part: self.left(part, now) for part in PARTS}
        if 0 in lefts.values():
            return False
        for part, left in lefts.items():
            asked = wanted[part]
            if left is not None and (asked is None or asked > left):
                return False
        return True


class Delegations(RuleBasedStateMachine):
    leases = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.registrar = Registrar()
        self.now = 0
        self.accounts: dict[str, Account] = {}
        self.granted: dict[str, Lease] = {}

    def opened(self, lease: Lease, account: Account) -> Lease:
        self.accounts[lease.lease_id] = account
        self.granted[lease.lease_id] = lease
        return lease

    @rule(target=leases, holder=HOLDERS, scope=SCOPES, budget=BUDGETS, ttl=SECONDS)
    def acquire(self, holder: str, scope: Scope, budget: Budget, ttl: int) -> Lease:
        resource = f"root-{len(self.accounts)}"
        lease = self.registrar.grant(holder, resource, scope=scope, budget=budget, ttl_ns=ttl * SECOND)
        return self.opened(lease, Account(None, budget, scope, holder, self.now + ttl, ttl))

    @rule(
        target=leases,
        parent=leases,
        holder=HOLDERS,
        scope=SCOPES,
        budget=BUDGETS,
        ttl=st.none() | SECONDS,
    )
    def derive(
        self, parent: Lease, holder: str, scope: Scope, budget: Budget, ttl: int | None
    ) -> Lease | MultipleResults[Lease]:
        above = self.accounts[parent.lease_id]
        wanted = {part: getattr(budget, part) for part in PARTS}
        may = (
            above.lives(self.now)
            and scope.exceeds(above.scope) is None
            and above.has(wanted, self.now)
            and (ttl is None or self.now + ttl <= above.expires)
        )
        claim = self.registrar.child_claim(
            parent, holder, scope=scope, budget=budget, ttl_ns=None if ttl is None else ttl * SECOND
        )
        answer = self.registrar.ask(claim)
        assert isinstance(answer, Granted if may else Refusal), answer
        if not isinstance(answer, Granted):
            return multiple()
        lasts = above.expires - self.now if ttl is None else ttl
        account = Account(above, budget, scope, holder, self.now + lasts, lasts)
        above.children.append(account)
        return self.opened(answer.lease, account)

    @rule(lease=leases, tokens=st.integers(0, 5), tool_calls=st.integers(0, 5), twice=st.booleans())
    def spend(self, lease: Lease, tokens: int, tool_calls: int, twice: bool) -> None:
        if tokens == tool_calls == 0:
            return
        account = self.accounts[lease.lease_id]
        may = account.lives(self.now) and account.has({"tokens": tokens, "tool_calls": tool_calls}, self.now)
        command = self.registrar.spending(lease, tokens=tokens, tool_calls=tool_calls)
        answer = self.registrar.ask(command)
        assert isinstance(answer, Spent if may else Refusal), answer
        if may:
            account.spent["tokens"] += tokens
            account.spent["tool_calls"] += tool_calls
            if twice:
                answer = self.registrar.ask(command)
                assert isinstance(answer, Spent)
                assert answer.repeated

    @rule(lease=leases)
    def renew(self, lease: Lease) -> None:
        account = self.accounts[lease.lease_id]
        (outcome,) = self.registrar.renew(lease)
        assert isinstance(outcome, Renewal) == account.lives(self.now), outcome
        if isinstance(outcome, Renewal):
            latest = [self.now + account.ttl]
            above = account.parent
            while above is not None:
                latest.append(above.expires)
                above = above.parent
            account.expires = min(latest)
            assert outcome.expires_in_ns == (account.expires - self.now) * SECOND

    @rule(lease=leases, revoked=st.booleans())
    def end(self, lease: Lease, revoked: bool) -> None:
        if revoked:
            self.registrar.revoke(lease)
        else:
            self.registrar.release(lease)
        self.accounts[lease.lease_id].over = True

    @rule(lease=leases)
    def sweep(self, lease: Lease) -> None:
        self.registrar.sweep(lease)

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: int) -> None:
        self.registrar.advance(seconds)
        self.now += seconds

    @invariant()
    def nobody_has_more_than_was_granted(self) -> None:
        for account in self.accounts.values():
            for part in PARTS:
                granted, left = getattr(account.granted, part), account.left(part, self.now)
                assert left is None or 0 <= left <= granted
                assert granted is None or account.used(part) <= granted

    @invariant()
    def a_lease_is_recorded_as_ended_only_if_it_is_over(self) -> None:
        for lease_id, account in self.accounts.items():
            assert not (self.registrar.lease(lease_id).is_terminal and account.lives(self.now))


TestDelegations = Delegations.TestCase
TestDelegations.settings = settings(
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow],
)

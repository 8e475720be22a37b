"""Whether answers about budgets, and about lines of leases, were right.

What was spent is in the ledger, once; what is said to remain is no more than there is; and whoever is refused
because of a budget, a scope or a parent is refused for a reason that was there.
"""

from leasehold.kernel.lease.answers import Spent
from leasehold.kernel.lease.commands import Acquire, Derive, Renew, Spend
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Tick
from simulator.accounts import Account, Accounts, Limits, is_within, limits_of, short_of
from simulator.stage import Stage
from simulator.true_lease import TrueLease
from simulator.witness import Witness


class LineJudge:
    """Checks what is answered about what leases carry."""

    def __init__(self, stage: Stage, witness: Witness) -> None:
        self._stage = stage
        self._witness = witness
        self._position = self._tick = 0
        self._alone = False

    def look(self, position: int, tick: int, *, alone: bool) -> None:
        """Note when the next answers were decided, and whether each was by itself."""
        self._position, self._tick, self._alone = position, tick, alone

    @property
    def _accounts(self) -> Accounts:
        return self._witness.truth.accounts

    def check_spent(self, command: Command, spent: Spent) -> None:
        """See that it is in the ledger, and that no more is promised than there is."""
        position = self._accounts.spends.get(command.request_id)
        account = self._accounts.all.get(spent.lease.lease_id)
        if position is None or account is None:
            self._stage.violate("{} was spent, and is not in the ledger", command)
        assert position is not None
        assert account is not None
        if spent.repeated:
            self._stage.tally.note("spending repeated")
        elif position <= self._position:
            self._stage.violate("{} was answered as new, and had been spent before", command)
        remaining = limits_of(spent.remaining)
        most = account.granted
        if self._alone and account.lease_id in self._accounts.standing:
            most = self._accounts.rest(account, self._tick)
        if short_of(most, remaining) is not None:
            self._stage.violate("{} was told {} of {}", command, remaining, most)

    def check_refusal(self, command: Command, refusal: Refusal) -> None:
        """See that what was spent is not refused afterwards, and count who came too late.

        The memory of a spending can outlast the lease, which may have been pruned.
        """
        spent_at = self._accounts.spends.get(command.request_id)
        truth = self._witness.truth
        now = Tick(value=self._tick, era=truth.ticks[-1].era) if truth.ticks else Tick(value=0)
        pruned = refusal.code is RefusalCode.LEASE_NOT_FOUND and refusal.lease_id in truth.let_go
        known = spent_at is not None and spent_at <= self._position and truth.is_known(spent_at, now)
        if known and not pruned:
            self._stage.violate("{} was spent before, and refused: {}", command, refusal)
        lease = truth.leases.get(refusal.lease_id or "")
        fell = refusal.code in (RefusalCode.LEASE_TERMINAL, RefusalCode.LEASE_EXPIRED)
        if fell and lease is not None and self._accounts.above(lease.lease_id):
            kind = type(command).__name__.lower()
            if kind in ("renew", "spend", "derive"):
                self._stage.tally.note(f"child was over: {kind}")

    def is_justified(self, command: Command, refusal: Refusal, lease: TrueLease | None) -> bool | None:
        """Say whether the reason was there; None: it is not about what leases carry."""
        account = self._accounts.all.get(refusal.lease_id or "")
        match refusal.code:
            case RefusalCode.NOTHING_GRANTED:
                return lease is not None and account is None
            case RefusalCode.SCOPE_EXCEEDED:
                return (
                    isinstance(command, Derive)
                    and account is not None
                    and not is_within(command.scope, account.scope)
                )
            case RefusalCode.BUDGET_EXCEEDED | RefusalCode.BUDGET_EXHAUSTED:
                return account is not None and self._is_too_much(command, refusal, account)
            case RefusalCode.OUTLIVES_PARENT:
                return self._outlives(command, lease)
            case RefusalCode.INVALID_INPUT if isinstance(command, Acquire) and command.adopt:
                return refusal.field == "scope" or None
            case RefusalCode.ALREADY_HELD if isinstance(command, Derive):
                own = (command.tenant, command.resource), command.child_holder
                return lease is not None and (lease.key, lease.holder) == own
        return None

    def _is_too_much(self, command: Command, refusal: Refusal, account: Account) -> bool:
        if not isinstance(command, Derive | Spend):
            return False
        if not self._alone:
            return True  # Others in the same batch may have used it up, or have ended since.
        rest = self._accounts.rest(account, self._tick)
        if refusal.code is RefusalCode.BUDGET_EXHAUSTED:
            return 0 in rest.values()
        return short_of(rest, _wanted(command)) is not None

    def _outlives(self, command: Command, lease: TrueLease | None) -> bool:
        if lease is None or not isinstance(command, Derive | Renew) or command.ttl_ns is None:
            return False
        if not self._alone:
            return True
        line = list(self._accounts.line_of(lease))
        above = line if isinstance(command, Derive) else line[1:]
        return any(self._tick + command.ttl_ns > one.end_tick for one in above)


def _wanted(command: Derive | Spend) -> Limits:
    return limits_of(command.budget if isinstance(command, Derive) else command.amounts)

"""What each lease may spend, and whose child it is, told a second time.

From the ledger alone follows what was granted to whom, who has spent how much, and who stands below whom. It
is told here without the kernel's arithmetic: what is set aside in a budget is added up anew from the children
that stand, and what the ledger says that it handed on or got back is not listened to at all. The records are
held against it after every commit.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.commands import Derive, Spend
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.events import (
    LeaseExpired,
    LeaseIssued,
    LeaseReleased,
    LeaseRenewed,
    LeaseRevoked,
    LeaseSpent,
)
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.events import Event

if TYPE_CHECKING:
    from simulator.true_lease import TrueLease
    from simulator.truth import Truth

PARTS = ("episodes", "tool_calls", "tokens", "duration_ms")

Limits = dict[str, int | None]
"""So much of each part; None: no limit."""


def limits_of(budget: Budget | Amounts) -> Limits:
    """Return a budget, or amounts, part by part."""
    return {part: getattr(budget, part) for part in PARTS}


class Account:
    """One lease that has a budget, a scope and a place in a line."""

    __slots__ = ("ancestors", "granted", "has_derived", "lease_id", "rest", "scope", "successor", "used")

    def __init__(self, lease_id: str, delegation: Delegation) -> None:
        self.lease_id = lease_id
        self.granted = limits_of(delegation.budget)
        self.scope = delegation.scope
        self.ancestors = delegation.ancestors
        self.used = dict.fromkeys(PARTS, 0)
        """What its holder has spent, and those below it that have ended."""
        self.rest: Limits = {}
        """What it had left when it ended."""
        self.has_derived = False
        self.successor = ""
        """The lease that took over its budget when it ended."""


class Accounts:
    """All budgets of a ledger, as they are in truth."""

    def __init__(self, truth: "Truth") -> None:
        self._truth = truth
        self.all: dict[str, Account] = {}
        self.standing: dict[str, Account] = {}
        """Those whose end the ledger does not know."""
        self.spends: dict[str, int] = {}
        """The position at which each request was spent for."""
        self._unclaimed: dict[str, list[Account]] = {}
        """Those that ended before the successor of the first of their line was granted, by successor."""

    def take_in(self, event: Event, position: int) -> str | None:
        """Take in an event that is a part of the truth already; return what is wrong with it."""
        match event:
            case LeaseIssued(delegation=None):
                self.all.pop(event.lease_id, None)  # A pruned lease of this id may have had a budget.
                return None
            case LeaseIssued(delegation=Delegation() as delegation):
                return self._issue(event, delegation)
            case LeaseSpent():
                return self._spend(event, position)
            case LeaseRenewed():
                return self._renew(event)
            case LeaseReleased():
                self._end(event.lease_id, event.successor)
                return None
            case LeaseRevoked() | LeaseExpired():
                self._end(event.lease_id)
                return None
            case _:
                return None

    def _issue(self, event: LeaseIssued, delegation: Delegation) -> str | None:
        account = Account(event.lease_id, delegation)
        old = self.all.get(event.adopted_from or "")
        problem = None if old is None else _filled_up(account, old)
        for below in self._unclaimed.pop(account.lease_id, []):
            _count(below, account)
        if account.ancestors:
            problem = problem or self._check_child(account, event, adopts=old is not None)
        self.all[account.lease_id] = self.standing[account.lease_id] = account
        return problem

    def _check_child(self, child: Account, event: LeaseIssued, *, adopts: bool) -> str | None:
        parent = self.all.get(child.ancestors[-1])
        if parent is None or child.ancestors != (*parent.ancestors, parent.lease_id):
            return f"{child.lease_id} is not in the line of its parent"
        if not self.lives(parent.lease_id, event.tick.value):
            return f"{child.lease_id} was derived from {parent.lease_id}, which was over"
        parent.has_derived = True
        rest = self.rest(parent)
        if 0 in rest.values() and not adopts:
            return f"{child.lease_id} was derived from {parent.lease_id}, which was exhausted"
        short = short_of(rest, child.granted)
        if short is not None:
            return f"{child.lease_id} was granted more {short} than {parent.lease_id} had left"
        if not is_within(child.scope, parent.scope):
            return f"{child.lease_id} was allowed more than {parent.lease_id}"
        return None

    def _spend(self, event: LeaseSpent, position: int) -> str | None:
        request_id, lease_id = (event.request or "").partition(":")[0], event.lease_id
        account = self.standing.get(lease_id)
        if request_id in self.spends and self._truth.is_known(self.spends[request_id], event.tick):
            return f"request {request_id} was spent for twice"
        if account is None or not self.lives(lease_id, event.tick.value):
            return f"{lease_id} was spent from, and was over"
        rest, amounts = self.rest(account), limits_of(event.amounts)
        if 0 in rest.values():
            return f"{lease_id} was spent from, and was exhausted"
        short = short_of(rest, amounts)
        if short is not None:
            return f"more {short} was spent from {lease_id} than it had left"
        self.spends[request_id] = position
        for part in PARTS:
            account.used[part] += amounts[part] or 0
        return None

    def _renew(self, event: LeaseRenewed) -> str | None:
        for lease_id in event.renewals:
            for ancestor_id in self.above(lease_id):
                if not self._stands(ancestor_id, event.tick.value):
                    return f"{lease_id} was renewed, and {ancestor_id} above it was over"
        return None

    def _end(self, lease_id: str, successor: str = "") -> None:
        account = self.standing.get(lease_id)
        if account is None:
            return
        account.rest = self.rest(account)
        account.successor = successor
        del self.standing[lease_id]
        heir_id = self._heir_above(account)
        if heir_id in self.standing:
            _count(account, self.standing[heir_id])
        elif heir_id is not None:
            self._unclaimed.setdefault(heir_id, []).append(account)

    def above(self, lease_id: str) -> tuple[str, ...]:
        """Return the leases above one; none for a plain lease."""
        account = self.all.get(lease_id)
        return () if account is None else account.ancestors

    def line_of(self, lease: "TrueLease") -> Iterator["TrueLease"]:
        """Yield a lease, and every lease above it."""
        yield lease
        for ancestor_id in self.above(lease.lease_id):
            yield self._truth.leases[ancestor_id]

    def lives(self, lease_id: str, tick: int) -> bool:
        """Say whether a lease and everything above it stands at a tick of the present era."""
        return all(self._stands(one, tick) for one in (lease_id, *self.above(lease_id)))

    def _stands(self, lease_id: str, tick: int) -> bool:
        lease = self._truth.standing.get(lease_id)
        return lease is not None and lease.end_tick > tick

    def _heir_above(self, account: Account) -> str | None:
        """Return the nearest lease above that stands, or took over from one that stood, or is about to."""
        for ancestor_id in reversed(account.ancestors):
            heir_id = ancestor_id
            while heir_id in self.all and heir_id not in self.standing:
                heir_id = self.all[heir_id].successor
            if heir_id:
                return heir_id
        return None

    def _right_below(self, account: Account) -> list[Account]:
        return [below for below in self.standing.values() if self._heir_above(below) == account.lease_id]

    def rest(self, account: Account, tick: int | None = None) -> Limits:
        """Return what can be spent or handed on; at a tick, also what children have left that are over."""
        gone = self._gone(account, tick)
        return {
            part: None if limit is None else limit - gone[part] for part, limit in account.granted.items()
        }

    def _gone(self, account: Account, tick: int | None) -> dict[str, int]:
        gone = dict(account.used)
        for below in self._right_below(account):
            over = tick is not None and not self.lives(below.lease_id, tick)
            taken: Mapping[str, int | None] = self._gone(below, tick) if over else below.granted
            for part in PARTS:
                gone[part] += taken[part] or 0
        return gone

    def problems(self, leases: Mapping[str, Lease]) -> Iterator[str]:
        """Yield what is wrong with the lines that stand, or with their records, after a commit."""
        for account in self.standing.values():
            lease = self._truth.standing[account.lease_id]
            for ancestor_id in account.ancestors:
                above = self._truth.standing.get(ancestor_id)
                if above is None:
                    yield f"{account.lease_id} stands, and {ancestor_id} above it has ended"
                elif lease.end_tick > above.end_tick and not above.rebooted:
                    yield f"{account.lease_id} outlives {ancestor_id} above it"
            yield from self._check_record(account, leases[account.lease_id].delegation)

    def _check_record(self, account: Account, record: Delegation | None) -> Iterator[str]:
        if record is None or limits_of(record.budget) != account.granted:
            yield f"{account.lease_id} was granted {account.granted}, and has {record}"
            return
        rest = self.rest(account)
        for part, granted in account.granted.items():
            spent, remaining = getattr(record.spent, part), getattr(record.remaining, part)
            if spent != account.used[part]:
                yield f"{account.lease_id} has spent {account.used[part]} {part}, not {spent}"
            if remaining != rest[part]:
                yield f"{account.lease_id} has {rest[part]} {part} left, not {remaining}"
            if granted is None:
                continue
            whole = spent + remaining + getattr(record.delegated, part)
            if whole != granted or not 0 <= remaining <= granted:
                yield f"the {part} of {account.lease_id} do not add up: {record}"


def _filled_up(account: Account, old: Account) -> str | None:
    """Adopting neither loses a budget nor fills it up; a first lease may be given another one."""
    if account.ancestors != old.ancestors:
        return f"{account.lease_id} adopted {old.lease_id}, and left its line"
    if not account.ancestors:
        left = {
            part: None if limit is None else limit - old.used[part] for part, limit in old.granted.items()
        }
        if old.successor == account.lease_id and account.granted != left:
            return f"{account.lease_id} took over {left} and has {account.granted}"
        return None
    lost = not old.has_derived and account.granted != old.rest
    if lost or short_of(old.rest, account.granted) is not None:
        return f"{account.lease_id} adopted {old.rest} and has {account.granted}"
    return None


def _count(ended: Account, heir: Account) -> None:
    for part in PARTS:
        heir.used[part] += ended.used[part]


def short_of(rest: Limits, wanted: Limits) -> str | None:
    """Return a part of which more is wanted than there is."""
    for part, left in rest.items():
        more = wanted[part]
        if left is not None and (more is None or more > left):
            return part
    return None


def is_within(scope: Scope, other: Scope) -> bool:
    """Say whether a scope allows nothing that another does not; simulated namespaces are plain paths."""
    if scope.unlimited or other.unlimited:
        return other.unlimited
    covered = all(
        any(f"{path}/".startswith(f"{above}/") for above in other.namespaces) for path in scope.namespaces
    )
    return covered and {*scope.tools} <= {*other.tools} and {*scope.work_ids} <= {*other.work_ids}


def was_asked_for(event: LeaseIssued | LeaseSpent, sender: Command | None) -> bool:
    """Say whether a spending, or a child, is what the request for it said."""
    match sender:
        case Spend():
            asked = (sender.tenant, sender.lease_id, sender.holder, sender.amounts)
            return isinstance(event, LeaseSpent) and asked == (
                event.tenant, event.lease_id, event.holder, event.amounts
            )  # fmt: skip
        case Derive():
            if not isinstance(event, LeaseIssued) or event.delegation is None:
                return False
            given = event.delegation
            return (sender.tenant, sender.parent_id, sender.child_holder, sender.resource, sender.budget) == (
                event.tenant, given.parent, event.holder, event.resource, given.budget
            )  # fmt: skip
        case _:
            return isinstance(event, LeaseIssued)

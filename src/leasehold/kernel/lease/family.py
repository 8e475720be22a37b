"""Leases as a family of records.

The rules decide on a view that they do not change, and return what follows as a whole (`decision.Decision`).
Here that is put into the draft: first what an end means above and below, which belongs to the end itself; and
as a stage of its own, once everything else has happened, who is granted what has become free.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from leasehold.kernel.lease.check import check_command
from leasehold.kernel.lease.commands import (
    Acquire,
    ChangeMode,
    Derive,
    Release,
    Renew,
    Revoke,
    Spend,
    Transfer,
)
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.descendants import as_settled, settle
from leasehold.kernel.lease.events import LEASE_EVENTS, LeaseExpired, LeaseRevoked
from leasehold.kernel.lease.evolve import evolve
from leasehold.kernel.lease.forgotten import forgotten
from leasehold.kernel.lease.invariants import invariants
from leasehold.kernel.lease.lock_delay import delay_after, delay_id, may_leave_delay
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.needs import needs
from leasehold.kernel.lease.plan import CLOSING, FREEING, Freeing
from leasehold.kernel.lease.queue import promote_after
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.lease.rules.acquire import acquire
from leasehold.kernel.lease.rules.change_mode import change_mode
from leasehold.kernel.lease.rules.derive import derive
from leasehold.kernel.lease.rules.release import release
from leasehold.kernel.lease.rules.renew import renew
from leasehold.kernel.lease.rules.revoke import revoke
from leasehold.kernel.lease.rules.spend import spend
from leasehold.kernel.lease.rules.sweep import sweep
from leasehold.kernel.lease.rules.transfer import transfer
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.events import StoreCheckpointed
from leasehold.kernel.ledger.family import Families, Family, Reaction, Rule, Stage
from leasehold.kernel.ledger.records import Missing
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Now, Tick
from leasehold.kernel.ledger.view import View

_LeaseRule = Callable[[Any, LeaseView, Now], Decision | Refusal]

_CLOSING = frozenset(CLOSING)
_LEAVING_IT_TO_OTHERS = (Release, Revoke)
"""Commands whose rules leave it to others to say what their ends mean for those who wait."""


def lease_family(quotas: Quotas | None = None) -> Family:
    """Return the family of leases, with quotas for holders and tenants."""
    return Family(
        name=LEASE,
        record=Lease,
        events=LEASE_EVENTS,
        rules=_RULES,
        check=check_command,
        needs=needs,
        evolve=evolve,
        reacts=dict.fromkeys(FREEING, Reaction(Stage.FREE, _promote)),
        due=_due,
        depends=_depends,
        age=_age,
        invariants=invariants,
        forgotten=_forgotten,
        part=partial(LeaseView, quotas=quotas),
    )


def _rule(rule: _LeaseRule, kind: type[Command]) -> Rule:
    """Put a rule that decides as a whole into the draft."""
    promotes_itself = kind not in _LEAVING_IT_TO_OTHERS

    def decide(command: Command, draft: Draft) -> Any:
        view: LeaseView = draft.view.parts[LEASE]
        decided = rule(command, view, draft.now)
        if isinstance(decided, Refusal):
            doubtful = view.doubtful(command)
            if doubtful is not None:
                raise Missing(doubtful)
            return decided
        answer = decided.answer
        if not decided.events:
            return answer
        _append(decided, view, draft, promoted=promotes_itself and not view.delegating)
        if view.delegating:
            return lambda: as_settled(answer, view)
        return answer

    return decide


def _append(decided: Decision, view: LeaseView, draft: Draft, *, promoted: bool) -> None:
    """Let happen what was decided, with what its ends bring about above and below."""
    if view.delegating:
        decided = settle(decided, view, draft.now)
    view.fold(decided.events, decided.leases)
    draft.took(decided.events, decided.wakes, promoted=promoted)
    if not _CLOSING.isdisjoint(map(type, decided.events)):
        for event in decided.events:
            if isinstance(event, CLOSING):
                _keep_closed(event, view, draft)


def _keep_closed(event: LeaseExpired | LeaseRevoked, view: LeaseView, draft: Draft) -> None:
    """Keep closed what a lease leaves that should be, before anybody reacts to its end."""
    ended = view.lease(event.lease_id)
    if ended is None or not may_leave_delay(ended, view.authority) or view.stands(delay_id(ended)):
        return
    delay = delay_after(ended, draft.now, view.authority.next_token(), view.authority)
    if delay is not None:
        view.fold([delay], [evolve(None, delay)])
        draft.took([delay])


def _promote(event: Freeing, draft: Draft) -> None:
    """Grant what has become free to those who are entitled to it."""
    view: LeaseView = draft.view.parts[LEASE]
    plan = promote_after(event, view, draft.now)
    if plan is not None:
        _append(plan.decision(), view, draft, promoted=not view.delegating)


def _due(lease: Lease) -> Tick | None:
    return None if lease.is_terminal else lease.expires_tick


def _depends(lease: Lease) -> bool:
    """Say whether a lease ends with another one."""
    return lease.delegation is not None and bool(lease.delegation.ancestors)


def _age(lease_id: str, lease: Lease, draft: Draft) -> None:
    del lease_id
    view: LeaseView = draft.view.parts[LEASE]
    decided = sweep(lease, view, draft.now)
    if decided is not None:
        _append(decided, view, draft, promoted=False)


def _forgotten(state: State, checkpoint: StoreCheckpointed) -> Iterable[str]:
    return forgotten(state.of(LEASE), checkpoint)


_RULES: dict[type[Command], Rule] = {
    Acquire: _rule(acquire, Acquire),
    Derive: _rule(derive, Derive),
    Spend: _rule(spend, Spend),
    Renew: _rule(renew, Renew),
    Release: _rule(release, Release),
    Revoke: _rule(revoke, Revoke),
    ChangeMode: _rule(change_mode, ChangeMode),
    Transfer: _rule(transfer, Transfer),
}

LEASES = Families((lease_family(),))
"""A ledger with leases only, and no quotas."""


def lease_part(view: View) -> LeaseView:
    """Return what a view knows of leases."""
    part: LeaseView = view.parts[LEASE]
    return part

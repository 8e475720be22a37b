"""The law: one command, the records it concerns, and the time; out come events and an answer, or a no.

`decide` changes nothing itself and may be called again at any time. A refusal never carries events: who
is refused has changed nothing. The rules themselves are in `rules`; what an end means for the leases
above and below it is in `descendants`, and for those who wait in `queue`.
"""

from collections.abc import Callable
from typing import Any

from leasehold.kernel.lease.check import check_command
from leasehold.kernel.lease.commands import (
    Acquire,
    ChangeMode,
    Command,
    Derive,
    Release,
    Renew,
    Revoke,
    Spend,
    Sweep,
    Transfer,
)
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.descendants import settle
from leasehold.kernel.lease.queue import grant_what_is_free
from leasehold.kernel.lease.rules.acquire import acquire
from leasehold.kernel.lease.rules.change_mode import change_mode
from leasehold.kernel.lease.rules.derive import derive
from leasehold.kernel.lease.rules.release import release
from leasehold.kernel.lease.rules.renew import renew
from leasehold.kernel.lease.rules.revoke import revoke
from leasehold.kernel.lease.rules.spend import spend
from leasehold.kernel.lease.rules.sweep import sweep
from leasehold.kernel.lease.rules.transfer import transfer
from leasehold.kernel.lease.view import View
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.tick import Now


def decide(command: Command, view: View, now: Now) -> Decision | Refusal:
    """Apply the law to one command. Raises `Missing` when the view lacks a record it needs."""
    return check_command(command) or decide_wellformed(command, view, now)


def decide_wellformed(command: Command, view: View, now: Now) -> Decision | Refusal:
    """Apply the law to a command that `check_command` has found nothing wrong with."""
    decided = _RULES[type(command)](command, view, now)
    if isinstance(decided, Decision) and decided.events:
        if view.delegating:
            return _settled(decided, view, now)
        if type(command) in _ENDING:
            return grant_what_is_free(decided, view, now)
    return decided


def _settled(decided: Decision, view: View, now: Now) -> Decision:
    """Add what ends mean for those above and below, and for those who wait, until nothing more follows.

    An end below makes something free, and whoever looks who is entitled to it may find another end.
    """
    settled = 0
    while True:
        decided = settle(decided, view, now, settled)
        settled = len(decided.events)
        decided = grant_what_is_free(decided, view, now)
        if len(decided.events) == settled:
            return decided


_RULES: dict[type[Command], Callable[[Any, View, Now], Decision | Refusal]] = {
    Acquire: acquire,
    Derive: derive,
    Spend: spend,
    Renew: renew,
    Release: release,
    Revoke: revoke,
    Sweep: sweep,
    ChangeMode: change_mode,
    Transfer: transfer,
}
_ENDING = (Release, Revoke, Sweep)
"""Commands whose rules leave it to others to say what their ends mean for those who wait."""

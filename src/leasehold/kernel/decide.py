"""The law: one command, the records it concerns, and the time; out come events and an answer, or a no.

`decide` changes nothing itself and may be called again at any time. A refusal never carries events: who
is refused has changed nothing. The rules themselves are in `granting`, `deriving`, `spending`, `renewing`
and `ending`; what an end means for the leases above and below it is in `settling`.
"""

from collections.abc import Callable
from typing import Any

from leasehold.kernel.commands import Acquire, Command, Derive, Release, Renew, Revoke, Spend, Sweep
from leasehold.kernel.decision import Decision
from leasehold.kernel.deriving import derive
from leasehold.kernel.ending import release, revoke, sweep
from leasehold.kernel.granting import acquire
from leasehold.kernel.refusals import Refusal
from leasehold.kernel.renewing import renew
from leasehold.kernel.settling import settle
from leasehold.kernel.spending import spend
from leasehold.kernel.tick import Now
from leasehold.kernel.view import View
from leasehold.kernel.wellformed import check_command


def decide(command: Command, view: View, now: Now) -> Decision | Refusal:
    """Apply the law to one command. Raises `Missing` when the view lacks a record it needs."""
    return check_command(command) or decide_wellformed(command, view, now)


def decide_wellformed(command: Command, view: View, now: Now) -> Decision | Refusal:
    """Apply the law to a command that `check_command` has found nothing wrong with."""
    decided = _RULES[type(command)](command, view, now)
    if view.delegating and isinstance(decided, Decision):
        return settle(decided, view, now)
    return decided


_RULES: dict[type[Command], Callable[[Any, View, Now], Decision | Refusal]] = {
    Acquire: acquire,
    Derive: derive,
    Spend: spend,
    Renew: renew,
    Release: release,
    Revoke: revoke,
    Sweep: sweep,
}

"""What who is refused is told: who has it, why, until when, and which call to make next."""

import time
from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, UnsetType, to_builtins

from leasehold.errors import (
    AlreadyHeld,
    AlreadyWaiting,
    Deadlock,
    Held,
    LeaseholdError,
    LeaseLost,
    NotAcquired,
)
from leasehold.files.names import is_file_name
from leasehold.mcp.answers import Claimed, Kept, moment, shortened
from leasehold.mcp.arguments import Arguments, Check, Claim, Release, Renew, Transfer, Wait
from leasehold.mcp.paths import told


def refused(error: NotAcquired | LeaseLost, asked: Claim) -> Claimed:
    """Return what who was not granted a claim is told."""
    match error:
        case Deadlock() if error.cycle is not None:
            return _deadlocked(error.cycle, asked)
        case AlreadyWaiting():
            return Claimed(
                granted=False,
                message="another call of yours waits for this already; let it end, or cancel it",
                path=_path_of(error),
                next=call(Check, asked),
            )
        case Held():
            return _held(error, asked)
        case _:
            return Claimed(granted=False, message=str(error), path=_path_of(error), next=call(Check, asked))


def _held(error: Held, asked: Claim) -> Claimed:
    path, reason = _path_of(error), shortened(error.facts.get("reason"))
    until: str | UnsetType = UNSET
    left = "for an unknown time"
    if error.expires_in is not None:
        until = moment(time.time() + error.expires_in)
        left = f"until {until} unless renewed"
    why = f" ({reason})" if reason else ""
    waited = f"; you waited {error.waited:.1f} s" if error.waited else ""
    step = "wait again, or work on something else meanwhile" if error.waited else "wait for it"
    return Claimed(
        granted=False,
        message=f"{path or 'it'} is held by {error.holder}{why} {left}{waited}; {step}",
        path=path,
        held_by=error.holder or UNSET,
        reason=reason,
        until=until,
        expires_in=UNSET if error.expires_in is None else round(error.expires_in, 1),
        position=UNSET if error.position is None else error.position,
        next=call(Wait, asked),
    )


def _deadlocked(cycle: tuple[str, ...], asked: Claim) -> Claimed:
    """Tell of a circle: who asks, what it wants, who has that and wants the next, and so on back."""
    round_about = " → ".join(told(one) if is_file_name(one) else one for one in cycle)
    return Claimed(
        granted=False,
        message=f"waiting would never end: {round_about}; release what you hold of it first",
        next=call(Release, asked, paths=[told(cycle[-2])]),
    )


def not_held(paths: Sequence[str], asked: Renew | Transfer) -> Kept:
    """Return what who does not have what it wants to renew or hand over is told."""
    return Kept(
        granted=False,
        message=f"you do not hold {', '.join(paths)}, or not any more; claim it",
        next=call(Claim, asked, paths=list(paths)),
    )


def not_renewed(error: LeaseholdError, asked: Renew, path: str) -> Kept:
    """Return what is told of a lease that cannot be renewed."""
    if isinstance(error, LeaseLost):
        return not_held([path], asked)
    return Kept(granted=False, message=f"{path}: {error}", next=call(Release, asked, paths=[path]))


def not_handed_over(error: NotAcquired, asked: Transfer, path: str) -> Kept:
    """Return why a lease cannot be given to another agent."""
    match error:
        case AlreadyHeld():
            why = f"{asked.to} holds it already"
        case AlreadyWaiting():
            why = f"{asked.to} waits for it already: release it, and it is theirs when their turn comes"
        case _:
            why = f"{error.holder} holds something that is in the way"
    return Kept(
        granted=False,
        message=f"{path} was not handed over: {why}",
        next=call(Release, asked, paths=[path]),
    )


def _path_of(error: LeaseholdError) -> str | UnsetType:
    return UNSET if error.resource is None else told(error.resource)


def call(kind: type[Arguments], asked: Arguments, **others: Any) -> dict[str, Any]:
    """Return a call of another tool, with what it takes of the arguments of this one, and with others."""
    same = {name: value for name, value in to_builtins(asked).items() if name in kind.__struct_fields__}
    return {"tool": kind.__name__.lower(), "arguments": same | others}

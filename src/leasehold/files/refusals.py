"""What who is refused a file is told: who has it, why, since when, until when, and what to type next."""

import math
import shlex
import time
from collections.abc import Sequence
from typing import NamedTuple

from leasehold.engine.questions import LeaseStatus
from leasehold.errors import (
    Deadlock,
    Held,
    LeaseholdError,
    LeaseNotFound,
    LeaseTerminal,
    NotHolder,
    RenewalsExhausted,
    WaitTimeout,
)
from leasehold.files.names import shown, written
from leasehold.kernel.lease.model import Mode

NOT_FOUND = "Lease not found"
NOT_OWNER = "Agent doesn't own lease"
RENEWALS_EXCEEDED = "Maximum renewals exceeded"
LOCKED = "File already locked"
TIMEOUT = "Acquisition timeout"
OVER = "Lease is over"
DEADLOCK = "Deadlock"

_TEXTS: tuple[tuple[type[LeaseholdError], str], ...] = (
    (WaitTimeout, TIMEOUT),
    (Held, LOCKED),
    (Deadlock, DEADLOCK),
    (RenewalsExhausted, RENEWALS_EXCEEDED),
    (NotHolder, NOT_OWNER),
    (LeaseNotFound, NOT_FOUND),
    (LeaseTerminal, OVER),
)
_WAIT_SECONDS = 30


def text_of(error: LeaseholdError) -> str:
    """Return what a response says of an error: in a few known words, then in full."""
    title = next((text for kind, text in _TEXTS if isinstance(error, kind)), None)
    return str(error) if title is None else f"{title}: {error}"


class Asked(NamedTuple):
    """What was asked for, by whom."""

    resources: Sequence[str]
    agent: str
    mode: Mode
    folder: str | None = None
    """Where who asks stands, and types what comes next; None: where this process does."""


def explained(error: Held, blocker: LeaseStatus | None, waiting: int, asked: Asked) -> Held:
    """Return a refusal that says all that its reader needs for the next step.

    `blocker` is what is in the way, if it still is; `waiting` how many wait there already.
    """
    if blocker is None:
        return error
    lease = blocker.lease
    if lease.delayed_for:  # By the registrar, which says for how long, and whom nobody can ask.
        return type(error)(str(error).replace(lease.resource, shown(lease.resource)), **error.facts)
    since, until = (_clock_time(ns) for ns in (lease.issued_at_ns, lease.expires_at_ns))
    position = waiting + 1 if error.position is None else error.position
    place = "you were" if isinstance(error, WaitTimeout) else "you would be"
    command = next_command(asked, error)
    why = f" ({lease.reason})" if lease.reason else ""
    name = shown(lease.resource) if asked.folder is None else written(lease.resource, start=asked.folder)
    message = (
        f"{name} is held by {lease.holder}{why} since {since}, until {until} "
        f"unless renewed; {place} number {position} in the queue. Next: {command}"
    )
    return type(error)(
        message,
        **error.facts
        | {
            "lease_id": lease.lease_id,
            "resource": lease.resource,
            "holder": lease.holder,
            "mode": lease.mode,
            "since": lease.issued_at_ns / 1e9,
            "expires_in": blocker.expires_in,
            "retry_after": blocker.expires_in,
            "reason": lease.reason or None,
            "position": position,
            "next_command": command,
        },
    )


def next_command(asked: Asked, error: Held) -> str:
    """Return what to type to wait for what is held; longer than it was waited for already."""
    waited = 0.0 if error.waited is None else error.waited
    seconds = max(_WAIT_SECONDS, 2 * math.ceil(waited))
    names = [written(resource, start=asked.folder) for resource in asked.resources]
    shared = ["--shared"] if asked.mode is Mode.SHARED else []
    return shlex.join(["leasehold", "acquire", *names, "--as", asked.agent, *shared, "--wait", f"{seconds}s"])


def _clock_time(wall_ns: int) -> str:
    """Spell a moment; with its day only if it is another."""
    moment, now = time.localtime(wall_ns / 1e9), time.localtime()
    return time.strftime("%H:%M:%S" if moment[:3] == now[:3] else "%Y-%m-%d %H:%M:%S", moment)

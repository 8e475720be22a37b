"""One command on its way to the registrar, and how its caller hears of the outcome.

Threads that wait for outcomes of the same batch wake one another, each the next. If all were woken at once,
they would only fight for the interpreter, of which there is one, and keep whoever leads from going on.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from leasehold.engine.batch import Outcome, Request

_logger = logging.getLogger(__name__)


class Call:
    """One command on its way. The gate opens when there is an outcome, or when it is our turn to lead."""

    __slots__ = ("deliver", "follower", "gate", "interrupted", "outcome", "request", "told")

    def __init__(self, request: Request, deliver: Callable[[Outcome], None] | None) -> None:
        self.request = request
        self.deliver = deliver
        self.outcome: Outcome | None = None
        self.told = False
        self.interrupted = False
        """Whether somebody was interrupted in running it, perhaps after the commit."""
        self.follower: Call | None = None
        """Whose caller is to be woken by ours."""
        self.gate: Any = None
        if deliver is None:
            self.gate = threading.Lock()
            self.gate.acquire()

    def resolve(self, outcome: Outcome) -> None:
        self.outcome = outcome
        if self.deliver is None:
            self.open_gate()
        else:
            try:
                self.deliver(outcome)
            except Exception:
                _logger.exception("what was to receive an outcome failed; the others get theirs")
        self.told = True

    def wake_follower(self) -> None:
        """Wake the next caller, once; to be done as soon as one has been woken oneself."""
        follower = self.follower  # Read once: an interrupted leader may take it away, and wakes it itself.
        if follower is not None:
            follower.wake()
            self.follower = None

    def wake(self) -> None:
        """Wake the caller, who has an outcome."""
        self.open_gate()
        self.told = True

    def open_gate(self) -> None:
        try:
            self.gate.release()
        except RuntimeError:
            return  # It is open: its caller was woken to lead, and somebody else has come before it.


def tell(calls: Sequence[Call], outcomes: Sequence[Outcome], own: Call | None) -> None:
    """Give calls their outcomes. Who is interrupted in this has to resolve those that were not told."""
    answers = list(zip(calls, outcomes, strict=True))
    blocked = [(call, outcome) for call, outcome in answers if call.gate is not None and call is not own]
    # Before the first outcome: who has one may notice it without being woken, and then wakes its follower.
    for (call, _), (following, _) in pairwise(blocked):
        call.follower = following
    for call, outcome in blocked:
        call.outcome = outcome
    if blocked:
        blocked[0][0].wake()
    for call, outcome in answers:
        if call.outcome is None:
            call.resolve(outcome)

"""One command on its way to the registrar, and how its caller hears of the outcome."""

import logging
import threading
from collections.abc import Callable
from typing import Any

from leasehold.engine.batch import Outcome
from leasehold.kernel.commands import Command

_logger = logging.getLogger(__name__)


class Call:
    """One command on its way. The gate opens when there is an outcome, or when it is our turn to lead."""

    __slots__ = ("command", "deliver", "gate", "outcome", "told")

    def __init__(self, command: Command, deliver: Callable[[Outcome], None] | None) -> None:
        self.command = command
        self.deliver = deliver
        self.outcome: Outcome | None = None
        self.told = False
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

    def open_gate(self) -> None:
        try:
            self.gate.release()
        except RuntimeError:
            return  # It is open: its caller was woken to lead, and somebody else has come before it.

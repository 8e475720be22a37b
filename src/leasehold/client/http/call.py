"""One item on its way to the server, and how its caller hears of the outcome.

An item has *left* once it was written into a connection. Before that nothing can have come of it, and it can
be withdrawn; after that only the server knows.
"""

import logging
import threading
from collections.abc import Callable

from leasehold.engine.desk import Failure, Outcome
from leasehold.engine.wire import Item
from leasehold.errors import LeaseholdError, ReplyLost
from leasehold.kernel.ledger.commands import Command
from leasehold.registry import FAMILIES

_LEASE = "lease"

_logger = logging.getLogger(__name__)


class Call:
    """One item on its way; its outcome is delivered once."""

    __slots__ = (
        "_hear",
        "_lock",
        "deadline",
        "has_left",
        "is_answered",
        "item",
        "keys",
        "may_have_run",
        "spelled",
    )

    def __init__(
        self,
        item: Item,
        spelled: bytes,
        deadline: float,
        deliver: Callable[[Outcome], None],
        lock: threading.Lock,
    ) -> None:
        self.item = item
        self.spelled = spelled
        self.keys = _keys_of(item)
        self.deadline = deadline
        """When its caller stops waiting, by `time.monotonic()`."""
        self._hear = deliver
        self._lock = lock
        self.has_left = False
        """Whether it is on its way at this moment."""
        self.may_have_run = False
        """Whether it has been, and nobody knows what came of it."""
        self.is_answered = False

    @property
    def gives_back(self) -> bool:
        """Say whether it is still sent for a client that is being closed."""
        return not isinstance(self.item, Command) or self.item.gives_back

    def leave(self) -> bool:
        """Note that the item is about to be written into a connection; False if nobody wants it any more."""
        with self._lock:
            self.has_left = not self.is_answered
            return self.has_left

    def come_back(self, *, may_have_run: bool) -> None:
        """Note that the item is not on its way any more."""
        with self._lock:
            self.has_left = False
            self.may_have_run = self.may_have_run or may_have_run

    def withdraw(self) -> bool:
        """Take the item back, and let nobody hear of it; False if it has left, or has its outcome."""
        with self._lock:
            if self.has_left or self.may_have_run or self.is_answered:
                return False
            self.is_answered = True
            return True

    def resolve(self, outcome: Outcome) -> None:
        """Deliver the outcome, unless there was one."""
        with self._lock:
            if self.is_answered:
                return
            self.is_answered = True
        self.deliver(outcome)

    def deliver(self, outcome: Outcome) -> None:
        """Let the caller hear an outcome; for who has made sure that it hears no other."""
        try:
            self._hear(outcome)
        except Exception:
            _logger.exception("what was to receive an outcome failed; the others get theirs")

    def fail(self, error: LeaseholdError) -> None:
        """Deliver why there is no answer. What may have been run before is unknown, whatever came after."""
        if self.may_have_run and not isinstance(error, ReplyLost):
            error = ReplyLost(f"the reply was lost, and then: {error}", **error.facts)
        self.resolve(Failure.of(error))


def _keys_of(item: Item) -> tuple[str, ...]:
    """Return what keeps items in order: those that have one of these in common are never overtaken.

    Commands on one lease stay in order, and those of each other family among themselves.
    """
    if not isinstance(item, Command):
        return ()
    keys: tuple[str, ...] = getattr(item, "lease_ids", ())
    if not keys and hasattr(item, "lease_id"):
        keys = (item.lease_id,)
    if hasattr(item, "parent_id"):
        keys = (*keys, item.parent_id)
    family = FAMILIES.of_command.get(type(item))
    return keys if family is None or family.name == _LEASE else (*keys, f"\x01{family.name}")

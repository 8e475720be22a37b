"""Items of one kind that wait to leave, and which of them may leave together.

Promised: items that have a key in common leave in the order in which they were handed in, and none before the
one ahead has its outcome, except together with it.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Iterable

from leasehold.client.http.call import Call
from leasehold.engine.wire import ITEMS_MAXIMUM

_BYTES_TOGETHER = 512 << 10


class Lane:
    """Items of one kind that wait, and the requests that carry others."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.waiting: deque[Call] = deque()
        self.busy: Counter[str] = Counter()
        """What the items under way are about."""
        self.under_way: set[asyncio.Task[None]] = set()

    def board(self) -> list[Call]:
        """Take what can leave together now, in order."""
        taken: list[Call] = []
        left: deque[Call] = deque()
        held: set[str] = set()
        size = 0
        while self.waiting:
            call = self.waiting.popleft()
            if call.is_answered:
                continue
            is_full = len(taken) == ITEMS_MAXIMUM or (taken and size + len(call.spelled) > _BYTES_TOGETHER)
            if is_full:
                left.append(call)
                break
            if any(key in held or key in self.busy for key in call.keys):
                held.update(call.keys)
                left.append(call)
                continue
            taken.append(call)
            size += len(call.spelled)
        self.waiting.extendleft(reversed(left))
        self.busy.update(key for call in taken for key in call.keys)
        return taken

    def arrive(self, calls: Iterable[Call]) -> None:
        """Note that items are not under way any more."""
        for call in calls:
            for key in call.keys:
                if self.busy[key] == 1:
                    del self.busy[key]
                else:
                    self.busy[key] -= 1

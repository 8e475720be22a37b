"""A place in the queue.

A claim that cannot be granted at once, and may wait, becomes a lease in the state `pending` with a ticket. A
claim on several resources is several such leases with one ticket. The queue of a resource is nothing else
than its pending leases, in the order of their places.

The order is priority, aged, then ticket. A waiter gains one level of priority for every `AGEING_NS` it has
waited, without end, so nobody starves. As everybody gains at the same pace, who comes first of two waiters
never changes while they wait: a place is worked out once, and can be kept in an index.
"""

from functools import lru_cache

import msgspec

from leasehold.kernel.ledger.tick import Tick

PRIORITY_LEAST = 1
PRIORITY_USUAL = 5
PRIORITY_MOST = 10
AGEING_NS = 10 * 1_000_000_000
"""A waiter that came so much later needs one level of priority more to come first."""

CLAIM_WINDOW_NS = 2 * 1_000_000_000
"""How long a lease that was granted to a waiter lasts until the waiter has confirmed it."""
KEPT_NS = 30 * 1_000_000_000
"""How long a waiter for one resource that has stopped asking keeps its place."""
NEXT_IN_LINE = "?"
"""Put behind the address of a waiter that has won nothing, but comes next, or was overtaken: it need not ask
before the claim window of whoever won is over."""
ASK_AGAIN_NS = 10 * 1_000_000_000
"""After how long the first in line should ask again, if nobody wakes it and nothing it waits for ends before.
Whoever is behind others asks once in every claim window."""

LAST_PLACE = "~"
"""Behind every place in a queue."""
_ERA_DIGITS = 8
_RANK_DIGITS = 16
_NUMBER_DIGITS = 14
_RANK_OFFSET = 1 << 63


def kept_ns(resources: int) -> int:
    """Return how long a claim on so many resources keeps its places once it has stopped asking.

    One on several keeps closed what nobody holds: if its waiter has died, that must end soon.
    """
    return KEPT_NS if resources == 1 else CLAIM_WINDOW_NS


class Ticket(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Since when, and how urgently, a claim waits. Kept by a lease until its holder has confirmed it."""

    number: int
    """Store-wide, and only ever rises: whoever has the higher one came later."""
    since: Tick
    since_ns: int
    """Wall time since when the claim waits."""
    priority: int = PRIORITY_USUAL
    group: tuple[str, ...] = ()
    """All leases of a claim on several resources, this one among them; empty for a claim on one."""
    request: str = ""
    """The key of the request that queued it; the grant is remembered under it, too."""
    wake: str = ""
    """Where the waiter wants to be woken: a hint that the law does not read."""
    upgrade: bool = False
    """The lease is held, shared, and its holder waits to have it exclusively."""
    doubted: bool = False
    """A wait has closed a circle that this one belongs to, and its waiter, who may have died, has not asked
    since."""
    kept_until: int = 0
    """For an upgrade: the tick value, on the clock of `since`, at which it lapses unless asked for again."""

    @property
    def place(self) -> str:
        """Return where in the queue this is: smaller text comes first.

        Whoever waits since an earlier era of the clock has waited longest, whatever the ticks say. An upgrade
        is not in the queue but before it; it is kept apart, behind, where nobody counts it.
        """
        if self.upgrade:
            return LAST_PLACE
        since = self.since
        return _spelled(since.era, since.value, self.priority, self.number)


@lru_cache(maxsize=1_024)
def _spelled(era: int, value: int, priority: int, number: int) -> str:
    """Spell a place. Remembered for a while: each is asked for many times in every decision about a queue."""
    rank = value - priority * AGEING_NS + _RANK_OFFSET
    return f"{era:0{_ERA_DIGITS}x}{rank:0{_RANK_DIGITS}x}{number:0{_NUMBER_DIGITS}x}"

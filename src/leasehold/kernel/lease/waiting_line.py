"""Those who wait for one resource, as far as they are known, in the order in which they are served.

Finding the first of them costs the same however many there are. A place never changes while somebody waits.
"""

from bisect import bisect_left, bisect_right, insort
from operator import itemgetter

import msgspec

from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.ticket import LAST_PLACE

_PLACE = itemgetter(0)


class WaitingLine(msgspec.Struct, gc=False):
    """Pending leases, sorted by their places."""

    places: list[tuple[str, str]] = msgspec.field(default_factory=list)
    """The place and the id of each, in order."""
    leases: dict[str, Lease] = msgspec.field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.leases)

    def put(self, lease: Lease) -> None:
        """Take in a lease that waits, or what has become of it while it waits."""
        if lease.lease_id not in self.leases:
            insort(self.places, (lease.place, lease.lease_id))
        self.leases[lease.lease_id] = lease

    def drop(self, lease_id: str) -> None:
        """Leave out a lease that does not wait any more, if it is here."""
        lease = self.leases.pop(lease_id, None)
        if lease is not None:
            del self.places[bisect_left(self.places, (lease.place, lease_id))]

    def up_to(self, place: str) -> list[Lease]:
        """Return those whose place is not behind this one, first in line first."""
        end = bisect_right(self.places, place, key=_PLACE)
        return [self.leases[lease_id] for _, lease_id in self.places[:end]]

    def count_ahead(self, place: str) -> int:
        """Return how many have a place before this one."""
        return bisect_left(self.places, place, key=_PLACE)

    def end_of(self, count: int) -> str:
        """Return the place up to which so many have theirs; behind all places, if there are no more."""
        return self.places[count - 1][0] if len(self.places) > count else LAST_PLACE

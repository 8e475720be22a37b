"""How much of large answers is in memory, in all and for each access key.

An answer is held from when it is made until its client has taken it. Whoever holds too much gets no
further pages until some of it was taken; commands are answered all the same, because they were run, and their
number is bounded. In all, there is room for a few such callers; beyond that, only who holds nothing gets a
page.

Not promised: an exact bound. What is being looked up at this moment, by a bounded number of threads, is
counted when it is there.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from leasehold.errors import RateLimited

_CALLERS = 4
"""How many callers may hold as much as one may."""
_RETRY_SECONDS = 1.0


class Answers:
    """Counts bytes; in the event loop only, except for the question whether there is room."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        """How many bytes one caller may hold before it gets no more."""
        self._held: Counter[str] = Counter()
        self._total = 0

    @contextmanager
    def of(self, access: str) -> Iterator[Callable[[int], None]]:
        """Yield what is told the size of each answer of one request, which is held until the block ends."""
        held = 0

        def hold(size: int) -> None:
            nonlocal held
            held += size
            self._held[access] += size
            self._total += size

        try:
            yield hold
        finally:
            self._total -= held
            self._held[access] -= held
            if not self._held[access]:
                del self._held[access]

    def refuse_more(self, access: str) -> None:
        """Raise RateLimited if a caller has to take first what was made for it."""
        held = self._held[access]
        if held > self._maximum or (held and self._total > _CALLERS * self._maximum):
            raise RateLimited(
                f"{held:,} bytes of answers for this access key are not taken yet; read them first, or ask "
                "for less at once",
                retry_after=_RETRY_SECONDS,
                limit=self._maximum,
            )

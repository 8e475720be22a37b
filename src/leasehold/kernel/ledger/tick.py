"""Authority time.

A tick is a reading of the store's own clock. Two ticks can be compared only when they come from the
same clock: same rate, and same *era* (an era ends when the clock restarts, as it does on a reboot).
Anything else is unknown time, and unknown time fails closed: no holder may rely on it, and nobody is
granted a resource by guessing.
"""

import msgspec

NANOSECONDS_PER_SECOND = 1_000_000_000


class Tick(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One reading of an authority clock: `value` units of 1/`rate` second, in one `era` of that clock."""

    value: int
    era: int = 1
    rate: int = NANOSECONDS_PER_SECOND

    def comparable(self, other: "Tick") -> bool:
        """Say whether both readings come from the same clock."""
        return self.era == other.era and self.rate == other.rate

    def until(self, other: "Tick") -> int | None:
        """Return how far `other` lies ahead (negative: behind), or None if the clocks differ."""
        if not self.comparable(other):
            return None
        return other.value - self.value

    def at(self, value: int) -> "Tick":
        """Return another tick of the same clock."""
        return Tick(value=value, era=self.era, rate=self.rate)

    def after(self, duration: int) -> "Tick":
        """Return the tick that lies `duration` units later on the same clock."""
        return Tick(value=self.value + duration, era=self.era, rate=self.rate)


class Now(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The moment a decision is taken: the authority's tick, and wall time for people and audit only."""

    tick: Tick
    wall_ns: int

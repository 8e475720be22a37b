"""A clock for what has happened long ago."""

from leasehold.engine.clock import SystemClock

FORTY_DAYS_NS = 40 * 24 * 3600 * 10**9


class LongAgo(SystemClock):
    """This machine's clock as it would have been forty days ago, had it been up for so long."""

    def tick_ns(self) -> int:
        return super().tick_ns() - FORTY_DAYS_NS

    def wall_ns(self) -> int:
        return super().wall_ns() - FORTY_DAYS_NS

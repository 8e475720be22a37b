"""A clock that stands still until it is told otherwise.

Give it to a store and to a `Client`, and time passes only when the test says so. It can do what a machine's
clock does once in a while and a test cannot wait for: sleep, jump, go back, start again after a reboot.
"""

from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND

_SOME_WALL_NS = 1_700_000_000 * NANOSECONDS_PER_SECOND


class FakeClock:
    """An authority clock and a wall clock, both turned by hand."""

    def __init__(
        self,
        *,
        tick_ns: int = 1_000 * NANOSECONDS_PER_SECOND,
        wall_ns: int = _SOME_WALL_NS,
        boot_id: str = "boot-1",
    ) -> None:
        self._tick_ns = tick_ns
        self._wall_ns = wall_ns
        self.boot_id = boot_id
        """The name of this boot."""
        self._reboots = 0

    def tick_ns(self) -> int:
        """Return nanoseconds since this boot."""
        return self._tick_ns

    def wall_ns(self) -> int:
        """Return nanoseconds since 1970."""
        return self._wall_ns

    def advance(self, seconds: float = 0, *, ns: int = 0) -> None:
        """Let time pass, on both clocks. Time that has passed does not come back: see `set_back`."""
        passed_ns = round(seconds * NANOSECONDS_PER_SECOND) + ns
        if passed_ns < 0:
            raise ValueError("time passes forwards; use set_back or jump_wall")
        self._tick_ns += passed_ns
        self._wall_ns += passed_ns

    def jump_wall(self, seconds: float) -> None:
        """Set the wall clock forward, or with a negative number back, as a person or a time server would."""
        self._wall_ns += round(seconds * NANOSECONDS_PER_SECOND)

    def set_back(self, seconds: float) -> None:
        """Make the authority clock read less than it did, without a reboot."""
        if seconds < 0:
            raise ValueError("how far back is a positive number")
        self._tick_ns -= round(seconds * NANOSECONDS_PER_SECOND)

    def reboot(self, *, tick_ns: int = 0, down_seconds: float = 0) -> None:
        """Start the authority clock anew under a new boot id; wall time goes on while the machine is down."""
        self._reboots += 1
        self.boot_id = f"{self.boot_id.partition('+')[0]}+{self._reboots}"
        self._tick_ns = tick_ns
        self._wall_ns += round(down_seconds * NANOSECONDS_PER_SECOND)

"""The clocks of a simulated world, all driven by its one true time.

The authority's clock runs true, and restarts or goes back when told to. Each holder has a clock of its
own that runs a little fast or slow, and never goes back: holders count suspend, and nobody sets them.
"""

from leasehold.engine.trust import PARTS_PER_MILLION
from simulator.plan import SECOND
from simulator.stage import Stage


class AuthorityClock:
    """The clock of the machine that the store is on."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._offset_ns = stage.random.randrange(1_000 * SECOND)
        self._wall_offset_ns = 1_800_000_000 * SECOND
        self.boots = 1

    def tick_ns(self) -> int:
        """Return nanoseconds since this boot."""
        return self._stage.now_ns + self._offset_ns

    def wall_ns(self) -> int:
        """Return what the machine takes for the time of day."""
        return self._stage.now_ns + self._wall_offset_ns

    @property
    def boot_id(self) -> str:
        """Return the name of this boot."""
        return f"boot-{self.boots}"

    def reboot(self) -> None:
        """Start again from a low tick, or, on another machine, from any."""
        self.boots += 1
        first_tick = self._stage.random.choice((0, 5 * SECOND, 10**6 * SECOND))
        self._offset_ns = first_tick - self._stage.now_ns

    def go_back(self, duration_ns: int) -> None:
        """Read less than before."""
        self._offset_ns -= duration_ns

    def jump_wall(self, duration_ns: int) -> None:
        """Change the time of day, and nothing else."""
        self._wall_offset_ns += duration_ns


class HolderClock:
    """The clock of one holder, which drifts by a constant rate."""

    def __init__(self, stage: Stage, drift_ppm: int) -> None:
        self._stage = stage
        self._drift_ppm = drift_ppm
        self._start_ns = stage.random.randrange(1_000 * SECOND)

    def tick_ns(self) -> int:
        """Return nanoseconds since this holder's machine booted, as it counts them."""
        now_ns = self._stage.now_ns
        return self._start_ns + now_ns + now_ns * self._drift_ppm // PARTS_PER_MILLION

    def wall_ns(self) -> int:
        """Return what this holder takes for the time of day."""
        return self.tick_ns()

    @property
    def boot_id(self) -> str:
        """Return a name; nobody asks a holder for it."""
        return "holder"

    def delay_until(self, tick_ns: int) -> int:
        """Return how long it takes, in true time, until this clock reads at least `tick_ns`."""
        ahead_ns = tick_ns - self.tick_ns()
        if ahead_ns <= 0:
            return 0
        return -(-ahead_ns * PARTS_PER_MILLION // (PARTS_PER_MILLION + self._drift_ppm)) + 1

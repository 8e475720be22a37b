"""One of many processes that claim several paths of one tree at once; sometimes more while they hold some.

Whoever asks for more while it holds something can be refused, because it would wait for ever. Nobody may ever
wait in vain otherwise: patience is long enough for any number of others to be killed or stopped meanwhile.
"""

import leasehold
from leasehold.kernel.lease.paths import related
from tests.chaos.contender import Contender, play

TREE = ("/", "/a", "/a/b", "/a/b/c", "/a/b/d", "/a/e", "/f", "/f/g", "/f/g/h", "/f/g/i", "/f/j")
PATIENCE_SECONDS = 40.0
_WEIGHTS = (1, 2, 4, 8, 8, 8, 2, 4, 8, 8, 8)
"""The higher up, the more is in the way."""


class Climber(Contender):
    """Claims, perhaps claims more, acts and releases all."""

    def run(self) -> None:
        """Go on until the end is written on the board."""
        while not self.is_over():
            self._claim()
            if self.held and self.random.random() < 0.3:
                self._claim()
            for _ in range(self.random.randint(1, 4)):
                self.act_on_all()
                self.rest(0.008)
            for lease in list(self.held.values()):
                self.release(lease)
            self.rest(0.01)
        self.leases.close()

    def _claim(self) -> None:
        wanted = self._some_paths()
        began = self.clock.tick_ns()
        try:
            for lease in self.leases.acquire_all(wanted, ttl=self.ttl, wait=PATIENCE_SECONDS):
                self.take(lease)
        except leasehold.Deadlock as error:
            self.note(f"deadlock {len(error.cycle or ())}")
        except leasehold.WaitTimeout as error:
            self.note(f"timeout {began} {self.clock.tick_ns()} {error}")
        except leasehold.LeaseLost:
            self.note("lost")
        self.count()

    def _some_paths(self) -> dict[str, str]:
        """Choose up to three paths, none of which holds another, or is held already, and their modes."""
        wanted: dict[str, str] = {}
        for path in self.random.choices(TREE, weights=_WEIGHTS, k=self.random.randint(1, 3)):
            if path not in self.held and not any(related(path, other) for other in wanted):
                wanted[path] = self.random.choice(("exclusive", "shared"))
        return wanted or {f"/a/{self.random.random()}": "exclusive"}


if __name__ == "__main__":
    play(Climber)

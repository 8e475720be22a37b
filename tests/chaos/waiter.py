"""One of many processes that stand in line for one lease, again and again.

Most wait for as long as it takes. Some lose patience soon, and have to leave nothing behind. But in every
other ten seconds all are patient: whoever comes and goes would find for others what nobody has told them.
"""

import leasehold
from tests.chaos.contender import Contender, play

_PERIOD_NS = 10_000_000_000


class Waiter(Contender):
    """Waits for its turn, acts, and releases."""

    def run(self) -> None:
        """Go on until the end is written on the board; whoever stands in line then still gets its turn."""
        while not self.is_over():
            self._wait_for_it()
            while self.held:
                self.act_on_all()
                self.rest(0.004)
                if self.random.random() < 0.5:
                    for lease in list(self.held.values()):
                        self.release(lease)
            self.rest(0.02)
        self.leases.close()

    def _wait_for_it(self) -> None:
        restless = self.clock.tick_ns() // _PERIOD_NS % 2 == 0
        impatient = restless and self.random.random() < 0.1
        try:
            lease = self.leases.acquire(
                "prize",
                ttl=self.ttl,
                wait=self.random.uniform(0.01, 0.5) if impatient else True,
                priority=self.random.randint(1, 10),
            )
        except leasehold.WaitTimeout:
            if not impatient:
                raise
            self.note("impatient")
        except leasehold.LeaseLost:
            self.note("lost")  # It was stopped between the answer and its return.
        else:
            self.take(lease)
        self.count()


if __name__ == "__main__":
    play(Waiter)

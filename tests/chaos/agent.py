"""One of many agents that claim folders, files and patterns of one tree at once, several of them together."""

import leasehold
from leasehold.files import FileName
from leasehold.kernel.lease.paths import includes
from tests.chaos.climber import PATIENCE_SECONDS, Climber
from tests.chaos.contender import play

TREE = {
    "/": 1,
    "/d": 2,
    "/d/**": 2,
    "/**/1": 2,
    "/d/*": 4,
    "/*/f.c": 4,
    "/d/{x,y}/1": 12,
    "/d/x*": 12,
    "/d/x/1": 24,
    "/d/f.c": 24,
    "/x/[!1]": 24,
    "/x/f.c": 24,
    "/y/*.c": 24,
    "/y/1": 24,
    "/1/{d,x}*": 24,
    "/1/x1": 24,
}
"""What is claimed, and how often: the more it covers, the more is in the way."""


class Agent(Climber):
    """Claims as agents do."""

    def _claim(self) -> None:
        wanted = set(
            self.random.choices(list(TREE), weights=list(TREE.values()), k=self.random.randint(1, 3))
        )
        free = [path for path in sorted(wanted) if not any(includes(one, path) for one in self.held)]
        if not free:
            return
        began = self.clock.tick_ns()
        try:
            held = self.leases.files.lease(
                *(FileName(path, path) for path in free),
                agent=self.leases.holder,
                mode=self.random.choice(("exclusive", "shared")),
                ttl=self.ttl,
                wait=PATIENCE_SECONDS,
                reason="racing",
            )
            for lease in held.parts():
                self.take(lease)
        except leasehold.Deadlock as error:
            self.note(f"deadlock {len(error.cycle or ())}")
        except leasehold.WaitTimeout as error:
            self.note(f"timeout {began} {self.clock.tick_ns()} {error}")
        except leasehold.LeaseLost:
            self.note("lost")
        self.count()


if __name__ == "__main__":
    play(Agent)

"""What everything in a simulated world shares: its time, its dice, its record of what happened.

One random generator, made from the seed, decides everything. Nothing here reads a real clock, starts a
thread or iterates over a set, so a seed means the same world every time.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Callable
from random import Random

from simulator.plan import Plan
from simulator.tally import Tally

_REMEMBERED_LINES = 60

Action = Callable[[], None]


class Violation(AssertionError):
    """A promise was broken."""


class Stage:
    """Virtual time, chance, and what has been said so far."""

    def __init__(self, plan: Plan, random: Random, trace: Callable[[str], None] | None = None) -> None:
        self.plan = plan
        self.random = random
        self.tally = Tally()
        self.now_ns = 0
        self.calm = False
        """No more faults: what is still open comes to its end."""
        self.violation: Violation | None = None
        self._until_ns = 0
        self._queue: list[tuple[int, int, Action]] = []
        self._order = itertools.count()
        self._trace = trace
        self._said: deque[tuple[int, str, tuple[object, ...]]] = deque(maxlen=_REMEMBERED_LINES)
        self._names = itertools.count(1)

    def after(self, delay_ns: int, action: Action) -> None:
        """Have something happen later."""
        heapq.heappush(self._queue, (self.now_ns + delay_ns, next(self._order), action))

    def run(self, until_ns: int) -> None:
        """Let everything happen that is due until then, in order."""
        self._until_ns = until_ns
        while self._queue and self._queue[0][0] <= self._until_ns:
            when_ns, _, action = heapq.heappop(self._queue)
            self.now_ns = max(self.now_ns, when_ns)
            action()
            self.check()
        self.now_ns = max(self.now_ns, self._until_ns)

    def sleep(self, duration_ns: int) -> None:
        """Let all machines be suspended: time goes on, and what anybody had planned happens later."""
        self.now_ns += duration_ns
        self._until_ns += duration_ns
        self._queue = [(when_ns + duration_ns, order, action) for when_ns, order, action in self._queue]

    def check(self) -> None:
        """Raise the violation that was found, also if whoever was told of it has swallowed it."""
        if self.violation is not None:
            raise self.violation

    def pass_time(self, duration_ns: int) -> None:
        """Let time pass in the middle of something; what was due meanwhile happens late."""
        self.now_ns += duration_ns

    def strikes(self, fault: str) -> bool:
        """Say whether a fault strikes here and now."""
        rate = self.plan.rates.get(fault, 0.0)
        if self.calm or rate == 0.0 or self.random.random() >= rate:
            return False
        self.tally.note(fault)
        self.say("fault: {}", fault)
        return True

    def up_to(self, limit_ns: int) -> int:
        """Draw a duration, short ones more often than long ones."""
        return int(limit_ns * self.random.random() ** 2)

    def new_name(self, kind: str) -> str:
        """Return a name that nothing else in this world has."""
        return f"{kind}-{next(self._names)}"

    def say(self, template: str, *facts: object) -> None:
        """Keep a line for whoever has to understand what happened; it is put into words only if needed."""
        if self._trace is not None:
            self._trace(_line(self.now_ns, template, facts))
        self._said.append((self.now_ns, template, facts))

    def last_lines(self) -> list[str]:
        """Return what was said last."""
        return [_line(when_ns, template, facts) for when_ns, template, facts in self._said]

    def violate(self, template: str, *facts: object) -> None:
        """Report a broken promise."""
        self.violation = self.violation or Violation(template.format(*facts))
        raise self.violation


def _line(when_ns: int, template: str, facts: tuple[object, ...]) -> str:
    return f"{when_ns / 1_000_000_000:14.9f}  {template.format(*facts)}"


class Process:
    """Something that runs, and can be paused or killed."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.life = 1
        """Counts incarnations: what was planned in an earlier life does not happen."""
        self.resumes_ns = 0

    def later(self, delay_ns: int, action: Action) -> None:
        """Do something later: after the pause if it comes in one, and not at all in another life."""
        self.stage.after(delay_ns, lambda life=self.life: self._run(life, action))  # type: ignore[misc]

    def _run(self, life: int, action: Action) -> None:
        if life != self.life:
            return
        if self.stage.now_ns < self.resumes_ns:
            self.stage.after(self.resumes_ns - self.stage.now_ns, lambda: self._run(life, action))
            return
        action()

    def pause(self, duration_ns: int) -> None:
        """Stop for a while, as by SIGSTOP or a suspended laptop."""
        self.resumes_ns = max(self.resumes_ns, self.stage.now_ns + duration_ns)

    def die(self) -> None:
        """Stop for good. Whoever comes back is another."""
        self.life += 1
        self.resumes_ns = 0

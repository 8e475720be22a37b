"""Does it cost more to join a queue, or to serve its head, when the queue is long?

In every turn somebody joins the queue, the holder releases, which hands the lease to the head of the queue,
and that one confirms it, so a queue keeps its length. Each command is run as another process would run it,
which knows nothing of the one before; and then as one of many tasks of a single process would. The same for a
plain name, and for a path, whose queue is that of its whole tree.
"""

import statistics
import time
from collections import defaultdict
from pathlib import Path

from bench.filling import claim
from bench.measuring import Report
from leasehold.engine.batch import Recall, Rules, run_batch
from leasehold.engine.clock import Ids
from leasehold.engine.recording import open_epoch
from leasehold.kernel.lease.answers import Granted, Released, Waiting
from leasehold.kernel.lease.commands import (
    Acquire,
    Release,
)
from leasehold.kernel.ledger.commands import Command
from leasehold.stores.sqlite import SqliteStore

FEW, MANY = 10, 1_000
TURNS = 300
KINDS = (
    ("processes", "door", False),
    ("tasks", "door", True),
    ("processes, a path", "/house/door", False),
    ("tasks, a path", "/house/door", True),
)
STEPS = ("join the queue", "release to the head", "confirm")


def run(report: Report, folder: Path) -> None:
    """Measure each step of a hand-over, with few and with many who wait, in turns."""
    for kind, resource, recall in KINDS:
        lines = {
            count: _Line(folder / f"{kind}-{count}", resource, count, recall=recall) for count in (FEW, MANY)
        }
        seconds: dict[tuple[int, str], list[float]] = defaultdict(list)
        for _ in range(TURNS):
            for count, line in lines.items():
                for step, taken in zip(STEPS, line.turn(), strict=True):
                    seconds[(count, step)].append(taken)
        for line in lines.values():
            line.close()
        for step in STEPS:
            few, many = (statistics.median(seconds[(count, step)]) for count in (FEW, MANY))
            report.show(f"{step}, {kind}: {FEW} waiters {few * 1e6:,.0f} µs, {MANY:,} {many * 1e6:,.0f} µs")
            report.ratio(f"{step}, {kind}, {MANY:,} waiters / {FEW}", many / few, at_most=1.5)


class _Line:
    """A queue of always the same length."""

    def __init__(self, path: Path, resource: str, count: int, *, recall: bool) -> None:
        self._store = SqliteStore(path, durability="fast")
        self._recall = Recall() if recall else None
        self._resource = resource
        self._ids = Ids()
        open_epoch(self._store)
        claims = [self._claim() for _ in range(count + 1)]
        run_batch(self._store, claims, Rules(), recall=self._recall)
        self._claims = claims
        self._served = 0

    def _claim(self) -> Acquire:
        return claim(self._resource, f"holder-{self._ids.new()}", wait=True)

    def turn(self) -> tuple[float, float, float]:
        """Let one join, one release and one confirm; return how many seconds each took."""
        joining = self._claim()
        self._claims.append(joining)
        holding, following = self._claims[self._served : self._served + 2]
        self._served += 1
        release = Release(lease_ids=holding.lease_ids, holder=holding.holder, request_id=self._ids.new())
        return (
            self._timed(joining, Waiting),
            self._timed(release, Released),
            self._timed(following, Granted),
        )

    def _timed(self, command: Command, answer: type) -> float:
        start = time.perf_counter()
        (outcome,) = run_batch(self._store, [command], Rules(), recall=self._recall)
        seconds = time.perf_counter() - start
        assert isinstance(outcome, answer), outcome
        return seconds

    def close(self) -> None:
        self._store.close()

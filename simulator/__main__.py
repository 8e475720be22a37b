"""The simulator's command line: many seeds, or one of them again.

    python -m simulator --seeds 1000 [--start 0 | --fresh] [--jobs 2]
    python -m simulator --seed 42 [--trace]

Exit code 0 if every promise was kept, 1 if one was broken, 2 for wrong arguments, 130 if interrupted.
"""

import argparse
import multiprocessing
import secrets
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from simulator import SimulationFailed, Tally, Troupe, simulate
from simulator.access_troupe import AccessTroupe
from simulator.guard_troupe import GuardTroupe
from simulator.settings_troupe import SettingsTroupe
from simulator.work_troupe import WorkTroupe
from simulator.workflow_troupe import WorkflowTroupe

_SEEDS_PER_CHUNK = 20
_FAILURES_SHOWN = 5
_ALL_SEEDS = 1 << 40
"""Few enough for a seed to be typed, and so many that a fresh one is new."""


class Chunk(msgspec.Struct, kw_only=True):
    """What came of some seeds."""

    seeds: int = 0
    entries: int = 0
    counts: dict[str, int] = {}
    failures: list[tuple[int, str]] = []


def troupes_of(seed: int) -> list[Troupe[Any]]:
    """Return who plays in a world beside those who hold leases: each family in turn, sometimes none."""
    turns = (WorkTroupe, WorkflowTroupe, SettingsTroupe, AccessTroupe, GuardTroupe, None)
    troupe = turns[seed % len(turns)]
    return [] if troupe is None else [troupe()]


def run_chunk(seeds: range) -> Chunk:
    """Run some seeds one after another, up to the first that fails."""
    chunk = Chunk()
    counts: Counter[str] = Counter()
    for seed in seeds:
        chunk.seeds += 1
        try:
            report = simulate(seed, troupes=troupes_of(seed))
        except SimulationFailed as failure:
            chunk.failures = [(failure.seed, failure.problem)]
            break
        chunk.entries += report.entries
        counts.update(report.tally.counts)
    chunk.counts = dict(counts)
    return chunk


def main(arguments: list[str] | None = None) -> int:
    """Run the simulator, and return the exit code."""
    options = _parse(arguments)
    try:
        if options.seed is not None:
            return _run_one(options.seed, trace=options.trace)
        start = secrets.randbelow(_ALL_SEEDS) if options.fresh else options.start
        return _run_many(range(start, start + options.seeds), options.jobs)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m simulator",
        description="Run the real law and engine in worlds where everything goes wrong.",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--seeds", type=_positive, default=1_000, help="how many worlds to run (1000)")
    which.add_argument("--seed", type=int, help="run one world again")
    first = parser.add_mutually_exclusive_group()
    first.add_argument("--start", type=int, default=0, help="the first seed (0)")
    first.add_argument("--fresh", action="store_true", help="begin with a seed that nobody has tried before")
    parser.add_argument("--jobs", type=_positive, default=1, help="how many processes to use (1)")
    parser.add_argument("--trace", action="store_true", help="with --seed: tell everything that happens")
    options = parser.parse_args(arguments)
    if options.trace and options.seed is None:
        parser.error("--trace needs --seed: name the world to be told")
    return options


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _run_one(seed: int, *, trace: bool) -> int:
    try:
        report = simulate(seed, trace=print if trace else None, troupes=troupes_of(seed))
    except SimulationFailed as failure:
        if not trace:
            print("What happened last:")
            print("\n".join(failure.lines))
        print(f"seed {seed} FAILED: {failure.problem}")
        return 1
    print(f"seed {seed}: every promise was kept over {report.entries:,} ledger entries")
    return 0


def _run_many(seeds: range, jobs: int) -> int:
    began = time.monotonic()
    print(f"seeds {seeds[0]} to {seeds[-1]}")
    total = Chunk()
    tally = Tally()
    progress = _Progress(len(seeds))
    for chunk in _chunks(seeds, jobs):
        total.seeds += chunk.seeds
        total.entries += chunk.entries
        total.failures = [*total.failures, *chunk.failures]
        tally.counts.update(chunk.counts)
        progress.show(total.seeds)
        for seed, problem in chunk.failures:
            progress.clear()
            print(f"seed {seed} FAILED: {problem}")
            print(f"  python -m simulator --seed {seed} --trace")
        if len(total.failures) >= _FAILURES_SHOWN:
            break
    progress.clear()
    if total.failures:
        print(f"{len(total.failures)} of {total.seeds:,} seeds failed; stopped looking at the others")
        return 1
    print("\n".join(tally.lines()))
    seconds = time.monotonic() - began
    print(f"{total.seeds:,} seeds, {total.entries:,} ledger entries, {seconds:.0f} s: every promise was kept")
    return 0


def _chunks(seeds: range, jobs: int) -> Iterator[Chunk]:
    """Yield the results as they come, from this process or from several."""
    parts = [seeds[start : start + _SEEDS_PER_CHUNK] for start in range(0, len(seeds), _SEEDS_PER_CHUNK)]
    if jobs == 1:
        yield from map(run_chunk, parts)
        return
    # Leaving the block ends the workers where they are: they hold nothing that would have to be let go.
    with multiprocessing.Pool(jobs, initializer=_ignore_interrupts) as pool:
        yield from pool.imap_unordered(run_chunk, parts)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent, which ends the others in order."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class _Progress:
    """A line that says how far we are: over and over on a terminal, every tenth in a log."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._terminal = sys.stderr.isatty()
        self._next = 0

    def show(self, done: int) -> None:
        if self._terminal:
            print(f"\r  {done:,} of {self._total:,} seeds", end="", file=sys.stderr, flush=True)
        elif done >= self._next and done < self._total:
            print(f"  {done:,} of {self._total:,} seeds", file=sys.stderr, flush=True)
            self._next = done + self._total // 10

    def clear(self) -> None:
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

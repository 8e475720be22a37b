"""Does a claim on a path cost more when many other paths are leased?

Every claim on a path has to look above and below it. The claims that are measured first are on a file and on
a directory of which nothing else is leased, in the midst of a tree of which everything else is. Then those
that have to wait: for a directory in which everything is leased, with few files in it and with many. At last,
what the release of a directory costs for each of those who wait for a file in it.
"""

import statistics
import time
from collections import defaultdict
from pathlib import Path

import leasehold
from bench.filling import claim, fill
from bench.measuring import Report, rates
from leasehold.engine.batch import Rules, run_batch
from leasehold.engine.recording import open_epoch
from leasehold.kernel.lease.answers import Granted, Released, Waiting
from leasehold.kernel.lease.commands import (
    Acquire,
    Release,
)
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.stores.sqlite import SqliteStore

FEW, MANY = 1_000, 100_000
FEW_BELOW, MANY_BELOW, MANY_WAITING = 10, 10_000, 1_000
TURNS = 100
_FILES = 10
"""Leased files in each directory."""


def run(report: Report, folder: Path) -> None:
    """Measure acquire and release of paths beside a thousand and beside a hundred thousand leased ones."""
    few = _filled(folder / "few", FEW)
    many = _filled(folder / "many", MANY)
    for what, name in (("file", "/srv/tree/{0}/{1}/free-{2}"), ("directory", "/srv/tree/{0}/free-{2}")):
        found = rates({"few": _Pairs(few, name), "many": _Pairs(many, name)}, slices=25, repeats=40)
        report.show(
            f"pairs/s on a {what} beside {FEW:,} leased paths {found['few']:,.0f}, "
            f"beside {MANY:,} {found['many']:,.0f}"
        )
        report.ratio(
            f"cost of a pair on a {what}, 100,000 leased paths / 1,000",
            found["few"] / found["many"],
            at_most=1.25,
        )
    for leases in (few, many):
        leases.close()
    _wait(report, folder)
    _hand_out(report, folder)


def _wait(report: Report, folder: Path) -> None:
    """Measure each step of waiting for a directory, with few and with many leased files in it, in turns."""
    crowds = {count: _Crowd(folder / f"crowd-{count}", count) for count in (FEW_BELOW, MANY_BELOW)}
    seconds: dict[tuple[int, str], list[float]] = defaultdict(list)
    for _ in range(TURNS):
        for count, crowd in crowds.items():
            for step, taken in crowd.turn().items():
                seconds[(count, step)].append(taken)
    for crowd in crowds.values():
        crowd.close()
    for step in dict.fromkeys(step for _, step in seconds):
        few, many = (statistics.median(seconds[(count, step)]) for count in crowds)
        report.show(f"{step}: {FEW_BELOW} {few * 1e6:,.0f} µs, {MANY_BELOW:,} {many * 1e6:,.0f} µs")
        report.ratio(f"{step}, {MANY_BELOW:,} below / {FEW_BELOW}", many / few, at_most=1.5)


def _hand_out(report: Report, folder: Path) -> None:
    """Measure the release of a directory for which few and many wait, each for a file of its own."""
    each = {}
    for count in (FEW_BELOW, MANY_WAITING):
        store = SqliteStore(folder / f"waiting-{count}", durability="fast")
        open_epoch(store)
        whole = claim("/srv", "holder")
        files = [claim(f"/srv/file-{number}", f"holder-{number}", wait=True) for number in range(count)]
        run_batch(store, [whole, *files], Rules())
        each[count] = _timed(store, _release(whole), Released) / count
        store.close()
    few, many = each.values()
    report.show(
        f"release of a directory, for each who waits below: of {FEW_BELOW} {few * 1e6:,.0f} µs, "
        f"of {MANY_WAITING:,} {many * 1e6:,.0f} µs"
    )
    report.ratio(f"the same, of {MANY_WAITING:,} / of {FEW_BELOW}", many / few, at_most=1.5)


class _Crowd:
    """A directory in which everything is leased, asked for as other processes would ask."""

    def __init__(self, path: Path, count: int) -> None:
        self._files = [claim(f"/srv/tree/file-{number:05}", f"holder-{number}") for number in range(count)]
        self._turns = 0
        fill(path, self._files)
        self._store = SqliteStore(path, durability="fast")

    def turn(self) -> dict[str, float]:
        """Return how many seconds each step took, after which everything is as it was before."""
        waiting = claim("/srv/tree", f"waiter-{self._turns}", wait=True)
        leased = self._files[self._turns % len(self._files)]
        again = claim(leased.resource, leased.holder)
        self._files[self._turns % len(self._files)] = again
        self._turns += 1
        seconds = {
            "be refused a directory": self._timed(claim("/srv/tree", "somebody"), Refusal),
            "wait for a directory": self._timed(waiting, Waiting),
            "ask again for a directory": self._timed(waiting, Waiting),
            "release below a directory that is waited for": self._timed(_release(leased), Released),
            "stop waiting for a directory": self._timed(_release(waiting), Released),
        }
        self._timed(again, Granted)
        return seconds

    def _timed(self, command: Command, answer: type) -> float:
        return _timed(self._store, command, answer)

    def close(self) -> None:
        self._store.close()


def _timed(store: SqliteStore, command: Command, answer: type) -> float:
    start = time.perf_counter()
    (outcome,) = run_batch(store, [command], Rules())
    seconds = time.perf_counter() - start
    assert isinstance(outcome, answer), outcome
    return seconds


def _release(held: Acquire) -> Release:
    return Release(lease_ids=held.lease_ids, holder=held.holder, request_id=f"{held.lease_id}-back")


def _filled(path: Path, count: int) -> leasehold.Client:
    fill(path, (claim(_file(number * 7919 % count), f"holder-{number % 1000}") for number in range(count)))
    return leasehold.connect(str(path), durability="fast")


def _file(number: int) -> str:
    directory = number // _FILES
    return f"/srv/tree/{directory % 10}/{directory // 10}/file-{number % _FILES}"


class _Pairs:
    """Acquire and release a path that nobody else wants, each time another one."""

    def __init__(self, leases: leasehold.Client, name: str) -> None:
        self._leases = leases
        self._name = name
        self._number = 0

    def __call__(self) -> None:
        self._number += 1
        directory = self._number * 7919 % (FEW // _FILES)
        self._leases.acquire(self._name.format(directory % 10, directory // 10, self._number)).release()

"""Contenders under fire: started, killed and stopped at random, replaced, and ended whatever happens."""

import contextlib
import os
import random
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import leasehold
from leasehold.engine.clock import SystemClock
from tests.chaos.contender import END_TICK, Board

SECOND = 1_000_000_000
START_SECONDS = 120.0
END_SECONDS = 120.0
LONGEST = 3
"""A run in which chance or a busy machine did too little goes on, for up to so many times its length."""
LONGER_NS = 2 * SECOND


@dataclass(kw_only=True)
class Report:
    """What was done to the contenders, and what they got done all the same."""

    seed: int
    seconds: float
    operations: int = 0
    end_tick: int = 0
    kills: int = 0
    kills_of_writers: int = 0
    stops: int = 0
    stops_beyond_ttl: int = 0
    stops_of_writers: int = 0
    stalls: list[tuple[int, int]] = field(default_factory=list)

    @property
    def stalled_seconds(self) -> float:
        """How long at least one stopped process kept all others from writing; overlaps count once."""
        total, end = 0, 0
        for start, stop in sorted(self.stalls):
            total += max(0, stop - max(start, end))
            end = max(end, stop)
        return total / SECOND

    @property
    def rate(self) -> float:
        """Operations per second of the time in which operations were possible."""
        return self.operations / (self.seconds - self.stalled_seconds)

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {self.operations} operations in {self.seconds:.1f} s, of which "
            f"{self.stalled_seconds:.1f} s stalled: {self.rate:.0f}/s; {self.kills} killed "
            f"({self.kills_of_writers} while writing), {self.stops} stopped ({self.stops_beyond_ttl} beyond "
            f"the TTL, {self.stops_of_writers} while writing)"
        )


@dataclass
class _Contender:
    place: int
    process: "subprocess.Popen[bytes]"
    pidfd: int
    stopped_at: int = 0
    resume_at: int = 0
    stalls_others: bool = False


class Supervisor:
    """Keeps a number of contenders at work on one store, and makes their lives hard."""

    def __init__(
        self,
        folder: Path,
        *,
        seed: int,
        places: int,
        resources: int = 1,
        ttl: float,
        program: str = "contender",
    ) -> None:
        self._folder = folder
        self._program = program
        self._places = places
        self._resources = resources
        self._ttl = ttl
        self._random = random.Random(seed)
        self._clock = SystemClock()
        self._board = Board(str(folder / "board"), places)
        self._contenders: dict[int, _Contender] = {}
        self.leases = leasehold.connect(folder / "leases", holder="supervisor", timeout=300)
        self.report = Report(seed=seed, seconds=0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for contender in list(self._contenders.values()):
            contender.process.kill()
            contender.process.wait()
            os.close(contender.pidfd)
        self.leases.close()
        self._board.close()

    def run(
        self, seconds: float, *, kill_every: float, stop_every: float, at_least: Mapping[str, int]
    ) -> Report:
        """Let contenders compete under fire for so long, and on until everything was seen often enough."""
        for place in range(1, self._places + 1):
            self._start(place)
        self._wait_until_all_compete()
        start = self._clock.tick_ns()
        end = start + int(seconds * SECOND)
        latest_end = start + int(LONGEST * seconds * SECOND)
        operations = self._operations()
        next_kill, next_stop = self._after(kill_every), self._after(stop_every)
        while (now := self._clock.tick_ns()) < end:
            for contender in [one for one in self._stopped() if one.resume_at <= now]:
                self._resume(contender)
            if now >= next_kill:
                self._kill_one()
                next_kill = self._after(kill_every)
            if now >= next_stop:
                self._stop_one()
                next_stop = self._after(stop_every)
            until = min([end, next_kill, next_stop, *(one.resume_at for one in self._stopped())])
            self._watch(until)
            if self._clock.tick_ns() >= end and self.seen_too_rarely(at_least):
                end = min(end + LONGER_NS, latest_end)
        self.report.end_tick = end
        self.report.operations = self._operations() - operations
        self.report.seconds = (self._clock.tick_ns() - start) / SECOND
        self._end()
        return self.report

    def seen(self) -> Counter[str]:
        """How often what happened to contenders, and what they wrote down of themselves."""
        report = self.report
        seen = Counter({"killed": report.kills, "stopped beyond the TTL": report.stops_beyond_ttl})
        for name in ("log", "notes"):
            with (self._folder / name).open() as lines:
                seen.update(line.split()[0] for line in lines)
        return seen

    def seen_too_rarely(self, at_least: Mapping[str, int]) -> dict[str, int]:
        """What was not seen as often as it must be for a run to count."""
        seen = self.seen()
        return {what: seen[what] for what, least in at_least.items() if seen[what] < least}

    def _after(self, mean_seconds: float) -> int:
        return self._clock.tick_ns() + int(self._random.uniform(0.2, 1.8) * mean_seconds * SECOND)

    def _operations(self) -> int:
        return sum(self._board.read(place) for place in range(1, self._places + 1))

    def _start(self, place: int) -> None:
        arguments = [str(self._folder), str(place), str(self._places), str(self._resources), str(self._ttl)]
        with (self._folder / f"errors-{place}").open("ab") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", f"tests.chaos.{self._program}", *arguments],
                cwd=Path(__file__).parents[2],
                stdin=subprocess.DEVNULL,
                stderr=errors,
            )
        self._contenders[place] = _Contender(place, process, os.pidfd_open(process.pid))

    def _wait_until_all_compete(self) -> None:
        deadline = self._clock.tick_ns() + int(START_SECONDS * SECOND)
        while any(self._board.read(place) == 0 for place in self._contenders):
            assert self._clock.tick_ns() < deadline, "the contenders did not start"
            self._watch(self._clock.tick_ns() + SECOND // 20)

    def _watch(self, until: int) -> None:
        """Wait for a moment, or for a contender that ends without having been told to."""
        poll = select.poll()
        for contender in self._contenders.values():
            poll.register(contender.pidfd, select.POLLIN)
        left_ms = max(0, until - self._clock.tick_ns()) // 1_000_000
        assert not poll.poll(left_ms + 1), f"a contender ended by itself: {self.complaints()}"

    def complaints(self) -> str:
        """What contenders that failed have said."""
        return "\n".join(path.read_text() for path in sorted(self._folder.glob("errors-*"))).strip()

    def _stopped(self) -> list[_Contender]:
        return [one for one in self._contenders.values() if one.resume_at]

    def _kill_one(self) -> None:
        """Kill somebody, rather often the one that is writing, and start another in its place."""
        writers = self._with_the_turn()
        aimed = [one for one in self._contenders.values() if one.process.pid in writers]
        if not aimed or self._random.random() < 0.5:
            aimed = list(self._contenders.values())
        victim = self._random.choice(aimed)
        # Stopped first, so that it is known what it was doing when it died.
        self._halt(victim)
        self.report.kills += 1
        self.report.kills_of_writers += victim.process.pid in self._with_the_turn()
        victim.process.kill()
        victim.process.wait()
        self._note_stall(victim)
        os.close(victim.pidfd)
        self._start(victim.place)

    def _stop_one(self) -> None:
        """Stop somebody, rather often a holder, for a moment or for longer than leases last."""
        going = [one for one in self._contenders.values() if not one.resume_at]
        holders = {status.lease.holder for status in self.leases.list().statuses if status.is_live}
        aimed = [one for one in going if f"{one.place}.{one.process.pid}" in holders]
        victim = self._random.choice(aimed if aimed and self._random.random() < 0.6 else going)
        beyond = self._random.random() < 0.6
        ttls = self._random.uniform(1.2, 2.2) if beyond else self._random.uniform(0.05, 0.9)
        self._halt(victim)
        victim.stalls_others = victim.process.pid in self._with_the_turn()
        victim.resume_at = victim.stopped_at + int(ttls * self._ttl * SECOND)
        self.report.stops += 1
        self.report.stops_beyond_ttl += beyond
        self.report.stops_of_writers += victim.stalls_others

    def _halt(self, contender: _Contender) -> None:
        if not contender.resume_at:
            contender.stopped_at = self._clock.tick_ns()
            contender.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, contender.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def _resume(self, contender: _Contender) -> None:
        contender.process.send_signal(signal.SIGCONT)
        self._note_stall(contender)
        contender.resume_at = 0

    def _note_stall(self, contender: _Contender) -> None:
        if contender.stalls_others:
            self.report.stalls.append((contender.stopped_at, self._clock.tick_ns()))
            contender.stalls_others = False

    def _with_the_turn(self) -> set[int]:
        """The processes that have the writer's lock or the turnstile: if they stand still, so do all."""
        files = set()
        for name in ("writer", "turnstile"):
            with contextlib.suppress(FileNotFoundError):
                status = os.stat(self._folder / "leases" / name)
                files.add(f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}")
        locks = (line.split() for line in Path("/proc/locks").read_text().splitlines())
        return {int(words[4]) for words in locks if words[1] == "FLOCK" and words[5] in files}

    def _end(self) -> None:
        """Let everybody finish, and insist that they do so in good order."""
        self._board.write(END_TICK, 1)
        for contender in self._stopped():
            self._resume(contender)
        for contender in self._contenders.values():
            code = contender.process.wait(END_SECONDS)
            assert code == 0, f"contender {contender.place} ended with {code}: {self.complaints()}"

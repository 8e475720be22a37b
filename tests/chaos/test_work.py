"""Work under siege: 50 domains, 100 workers in four processes, 20,000 messages, kills and retries.
`make test` sends a tenth of the messages.

A first-in-first-out oracle looks at the ledger, and at what the handlers have written down.
"""

import os
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import leasehold
from leasehold.engine.port import EntryQuery
from leasehold.registry import all_families
from leasehold.stores.sqlite import SqliteStore
from leasehold.work.law.events import WorkAcquired, WorkFailed, WorkSucceeded
from tests.chaos.consumer import MAX_RETRIES, PROCESSES, fails
from tests.lanes import by_length

pytestmark = pytest.mark.chaos

DOMAINS, MESSAGES = 50, by_length(400, 40)
KILLS = 4
_ROOT = Path(__file__).resolve().parents[2]


class Siege:
    """The processes, and what they leave behind."""

    def __init__(self, folder: Path) -> None:
        self.store = f"sqlite:///{folder / 'leases.db'}"
        self.log = folder / "handled"
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, number: int) -> None:
        arguments = [self.store, str(self.log), str(DOMAINS), str(MESSAGES), str(number)]
        self.processes[number] = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.consumer", *arguments],
            cwd=_ROOT,
        )

    def kill(self, number: int) -> None:
        process = self.processes[number]
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait(30)


@pytest.mark.deep
def test_every_offset_ends_once_and_in_order_whoever_dies(tmp_path: Path) -> None:
    with leasehold.connect(f"sqlite:///{tmp_path / 'leases.db'}", durability="fast"):
        pass  # So that nobody has to create it.
    siege = Siege(tmp_path)
    try:
        for number in range(PROCESSES):
            siege.start(number)
        _kill_some(siege)
        for process in siege.processes.values():
            assert process.wait(240) == 0
    finally:
        siege.close()
    _judge_ledger(tmp_path)
    _judge_handlers(siege.log)


def _kill_some(siege: Siege) -> None:
    """Kill a process each time that some more has ended, and start it again."""
    enough = [(turn + 1) * DOMAINS * MESSAGES // (KILLS + 2) for turn in range(KILLS)]
    ended = 0
    with leasehold.connect(siege.store) as client:
        for entry in client.watch(after=0):
            ended += isinstance(entry.event, WorkSucceeded | WorkFailed)
            if ended >= enough[0]:
                turn = KILLS - len(enough)
                siege.kill(turn % PROCESSES)
                siege.start(turn % PROCESSES)
                del enough[0]
            if not enough:
                return


def _judge_ledger(folder: Path) -> None:
    """Each offset is terminal exactly once, in order; no token is given out, or taken, twice."""
    store = SqliteStore(folder / "leases.db", create=False, families=all_families())
    ended: dict[str, list[int]] = defaultdict(list)
    failed: set[tuple[str, int]] = set()
    accepted: Counter[int] = Counter()
    fences: list[int] = []
    position = 0
    with store.snapshot() as snapshot:
        while entries := snapshot.entries(EntryQuery(after=position, limit=5_000)):
            for entry in entries:
                event = entry.event
                if isinstance(event, WorkAcquired):
                    fences.append(event.fence)
                elif isinstance(event, WorkSucceeded | WorkFailed):
                    ended[event.domain].append(event.offset)
                    accepted[event.fence] += 1
                    if isinstance(event, WorkFailed):
                        failed.add((event.domain, event.offset))
            position = entries[-1].position
    store.close()
    assert fences == sorted(set(fences))
    assert set(accepted) <= set(fences)
    assert set(accepted.values()) == {1}
    assert {f"d{number}" for number in range(DOMAINS)} == set(ended)
    for domain, offsets in ended.items():
        assert offsets == list(range(MESSAGES)), f"{domain} was not processed once and in order"
    hopeless = {
        (domain, offset) for domain in ended for offset in range(MESSAGES) if fails(domain, offset, 9)
    }
    # A kill counts as an attempt, so that few more may have been given up; none that works at once.
    assert hopeless <= failed
    assert len(failed - hopeless) <= KILLS * 25
    with leasehold.connect(f"sqlite:///{folder / 'leases.db'}") as client:
        states = client.work.domains(limit=DOMAINS)
        assert all((one.watermark, one.backlog, one.state) == (MESSAGES, 0, "IDLE") for one in states)
        assert client.verify().problems == []


def _judge_handlers(log: Path) -> None:
    """Handlers of a domain began in order, and under one token each attempt began once."""
    began: dict[str, list[tuple[int, int]]] = defaultdict(list)
    attempts: Counter[tuple[str, str]] = Counter()
    for line in log.read_text().splitlines():
        domain, offset, token, attempt, _ = line.split()
        began[domain].append((int(token), int(offset)))
        attempts[(token, attempt)] += 1
        assert int(attempt) <= MAX_RETRIES + 1
    assert set(attempts.values()) == {1}
    for pairs in began.values():
        by_token = [offset for _, offset in sorted(pairs)]
        assert by_token == sorted(by_token), "a higher token never belongs to an earlier offset"
    assert sum(len({offset for _, offset in pairs}) for pairs in began.values()) == DOMAINS * MESSAGES

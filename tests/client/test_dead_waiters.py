"""Waiters that were killed in line: each costs those behind it the claim window, and no more."""

import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

import leasehold
from tests.client.processes import Python
from tests.client.worlds import SIGNAL_SECONDS

CLAIM_WINDOW = 2.0
BUSY = 0.5
"""How much longer than promised a busy machine may take for each of them."""

WAITER = """
import sys, leasehold
leases = leasehold.connect(sys.argv[1], holder=sys.argv[2])
leases.acquire("door", wait=True)
"""


def wait_for_a_line_of(leases: leasehold.Client, length: int) -> None:
    deadline = time.monotonic() + SIGNAL_SECONDS
    while len(leases.list(states=["pending"]).statuses) < length:
        assert time.monotonic() < deadline, "nobody came to wait"


@pytest.mark.slow
def test_three_waiters_that_were_killed_cost_the_next_one_three_claim_windows(tmp_path: Path) -> None:
    path = tmp_path / "leases.db"
    with leasehold.connect(path, holder="ann") as leases, ExitStack() as processes:
        door = leases.acquire("door")
        for number in range(3):
            process = processes.enter_context(Python(WAITER, str(path), f"dead-{number}"))
            wait_for_a_line_of(leases, number + 1)
            process.process.kill()
            process.process.wait()
        won: list[float] = []

        def wait() -> None:
            with leases.acquire("door", wait=SIGNAL_SECONDS, holder="bob"):
                won.append(time.monotonic())

        living = threading.Thread(target=wait)
        living.start()
        wait_for_a_line_of(leases, 4)
        door.release()
        released = time.monotonic()
        living.join(SIGNAL_SECONDS)

        assert won[0] - released <= 3 * (CLAIM_WINDOW + BUSY)

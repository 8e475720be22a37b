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


def test_three_waiters_that_were_killed_cost_the_next_one_three_claim_windows(tmp_path: Path) -> None:
    path = tmp_path / "leases"
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


IN_A_CIRCLE = """
import sys, leasehold
leases = leasehold.connect(sys.argv[1], holder="bob")
leases.acquire("window", ttl=float(sys.argv[2]))
leases.acquire("door", wait=True)
"""


def test_a_circle_with_somebody_who_was_killed_ends_when_its_lease_does(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    with leasehold.connect(path, holder="ann") as leases, leases.acquire("door"):
        with Python(IN_A_CIRCLE, str(path), "3") as process:
            wait_for_a_line_of(leases, 1)
            process.process.kill()
            process.process.wait()

        with leases.acquire("window", wait=SIGNAL_SECONDS) as window:
            window.ensure()


def test_a_circle_in_which_all_live_is_refused_soon(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    with (
        leasehold.connect(path, holder="ann") as leases,
        leases.acquire("door"),
        Python(IN_A_CIRCLE, str(path), "600"),
    ):
        wait_for_a_line_of(leases, 1)
        began = time.monotonic()
        with pytest.raises(leasehold.Deadlock) as refused:
            leases.acquire("window", wait=SIGNAL_SECONDS)
        assert time.monotonic() - began < 2.0
        assert refused.value.cycle == ("ann", "window", "bob", "door", "ann")
        leases.acquire("other").release()  # Behind what leaves the queue.
        assert [one.lease.holder for one in leases.list(states=["pending"]).statuses] == ["bob"]

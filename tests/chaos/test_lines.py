"""Real processes that wait, killed and stopped at random: order holds, and nobody waits long for the dead."""

import os
from pathlib import Path

import pytest

import leasehold
from tests.chaos import order, testimony
from tests.chaos.siege import SECOND, Supervisor
from tests.chaos.test_siege import tell

pytestmark = pytest.mark.chaos

LONG = pytest.mark.proof("a minute or more of chaos each")

FREE_MOST_NS = 2 * SECOND
"""How long what somebody is entitled to may lie idle, because whoever had it died. Waiters ask when it should
have ended, one after the other; this leaves room for a busy machine."""

FIRE = {"killed": 11, "stopped beyond the TTL": 6}


def bells(folder: Path) -> list[Path]:
    return list((folder / "leases" / "bells").iterdir())


def nothing_is_left(supervisor: Supervisor, folder: Path, *resources: str) -> None:
    """Let those who died in line have their claim windows, and see that then nothing is left of anybody."""
    with supervisor.leases.acquire_all(resources, wait=120, priority=1):
        pass
    supervisor.leases.sweep()
    assert supervisor.leases.list().statuses == []
    assert supervisor.leases.list(states=["pending"]).statuses == []
    for socket in bells(folder):
        os.utime(socket, (0, 0))
    with leasehold.connect(folder / "leases") as another:
        another.acquire("prize", holder="first")
        with pytest.raises(leasehold.WaitTimeout):
            another.acquire("prize", wait=0.01)
        assert len(bells(folder)) <= 2, "sockets of processes that are gone are still there"


@LONG
@pytest.mark.timeout(600)
def test_thirty_two_processes_stand_in_line_under_fire(
    tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    at_least = FIRE | {"granted": 200, "released": 200, "impatient": 10}
    with Supervisor(tmp_path, seed=seed, places=32, ttl=0.8, program="waiter") as supervisor:
        report = supervisor.run(60, kill_every=3, stop_every=3, at_least=at_least)
        nothing_is_left(supervisor, tmp_path, "prize")
    entries, _ = testimony.read_ledger(tmp_path / "leases")
    idleness = order.Idleness(FREE_MOST_NS, report.end_tick, report.stalls)
    kept_waiting = list(idleness.problems(entries))
    seen = supervisor.seen()
    seen["ms idle at most"] = idleness.longest_ns // 1_000_000
    tell(capsys, report, seen)

    assert testimony.problems(tmp_path) == []
    assert list(order.wrong_grants(entries)) == []
    assert kept_waiting == []
    assert supervisor.seen_too_rarely(at_least) == {}


@LONG
@pytest.mark.timeout(600)
def test_eight_processes_claim_parts_of_a_tree_under_fire(
    tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    # A deadlock: somebody asked for more in a way that could not have ended.
    at_least = FIRE | {"granted": 300, "released": 300, "deadlock": 1}
    with Supervisor(tmp_path, seed=seed, places=8, ttl=1.0, program="climber") as supervisor:
        report = supervisor.run(60, kill_every=3, stop_every=3, at_least=at_least)
        nothing_is_left(supervisor, tmp_path, "/")
    entries, _ = testimony.read_ledger(tmp_path / "leases")
    idleness = order.Idleness(FREE_MOST_NS, report.end_tick, report.stalls)
    kept_waiting = list(idleness.problems(entries))
    seen = supervisor.seen()
    seen["ms idle at most"] = idleness.longest_ns // 1_000_000
    tell(capsys, report, seen)

    assert testimony.problems(tmp_path) == []
    assert list(order.wrong_grants(entries)) == []
    assert list(order.circles(entries)) == []
    assert kept_waiting == []
    assert seen["timeout"] == 0
    assert supervisor.seen_too_rarely(at_least) == {}


@LONG
@pytest.mark.timeout(600)
def test_sixteen_agents_claim_folders_files_and_patterns_under_fire(
    tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    # A deadlock: somebody asked for more in a way that could not have ended.
    at_least = FIRE | {"granted": 300, "released": 300, "deadlock": 1}
    with Supervisor(tmp_path, seed=seed, places=16, ttl=1.0, program="agent") as supervisor:
        report = supervisor.run(60, kill_every=3, stop_every=3, at_least=at_least)
        nothing_is_left(supervisor, tmp_path, "/")
    entries, _ = testimony.read_ledger(tmp_path / "leases")
    seen = supervisor.seen()
    tell(capsys, report, seen)

    assert testimony.problems(tmp_path) == []
    assert list(order.wrong_grants(entries)) == []
    assert list(order.circles(entries)) == []
    assert supervisor.seen_too_rarely(at_least) == {}

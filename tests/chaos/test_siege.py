"""Real processes on one file, killed and stopped at random: the law holds, and nothing told is forgotten.

A run in which too little happened proves nothing: it goes on, and in the end fails. Each prints its seed; a
seed repeats what the supervisor does, though not what the machine makes of it. Set LEASEHOLD_CHAOS_SEED to
choose one.
"""

from collections import Counter
from pathlib import Path

import pytest

from tests.chaos import testimony
from tests.chaos.siege import Report, Supervisor
from tests.lanes import by_length

RATE_MINIMUM = 100
"""Operations per second, without the time in which a process stopped in mid-transaction kept all waiting."""

pytestmark = pytest.mark.chaos


def tell(capsys: pytest.CaptureFixture[str], report: Report, seen: Counter[str]) -> None:
    with capsys.disabled():
        counts = ", ".join(f"{count} {what}" for what, count in sorted(seen.items()))
        print(f"\n{report}; written down: {counts}")


@pytest.mark.proof("a minute or more of chaos each")
@pytest.mark.timeout(600)
def test_sixteen_processes_race_for_one_resource_under_fire(
    tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    at_least = {
        "killed": 30,
        "stopped beyond the TTL": 15,
        "granted": 200,
        "act": 200,
        "released": 200,
        "lost": 1,
    }
    with Supervisor(tmp_path, seed=seed, places=16, resources=1, ttl=0.6) as supervisor:
        report = supervisor.run(60, kill_every=0.9, stop_every=0.7, at_least=at_least)
    tell(capsys, report, supervisor.seen())

    assert testimony.problems(tmp_path) == []
    assert report.rate >= RATE_MINIMUM, "too little was done for this run to count"
    assert supervisor.seen_too_rarely(at_least) == {}


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_eight_processes_share_many_resources_under_fire(
    tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    at_least = {
        "killed": by_length(6, 4),
        "stopped beyond the TTL": by_length(3, 2),
        "granted": 100,
        "act": 100,
        "released": 100,
        "renewed": 100,
    }
    with Supervisor(tmp_path, seed=seed, places=8, resources=12, ttl=0.8) as supervisor:
        report = supervisor.run(by_length(15, 8), kill_every=1.0, stop_every=0.8, at_least=at_least)
    tell(capsys, report, supervisor.seen())

    assert testimony.problems(tmp_path) == []
    assert report.rate >= RATE_MINIMUM, "too little was done for this run to count"
    assert supervisor.seen_too_rarely(at_least) == {}

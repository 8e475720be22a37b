"""Real processes on one file, killed and stopped at random: the law holds, and nothing told is forgotten.

A run that got too little done proves nothing and fails. Each prints its seed; a seed repeats what the
supervisor does, though not what the machine makes of it. Set LEASEHOLD_CHAOS_SEED to choose one.
"""

from collections import Counter
from pathlib import Path

import pytest

from tests.chaos import testimony
from tests.chaos.siege import Report, Supervisor

RATE_MINIMUM = 100
"""Operations per second, without the time in which a process stopped in mid-transaction kept all waiting."""

pytestmark = [pytest.mark.chaos, pytest.mark.slow]


def tell(capsys: pytest.CaptureFixture[str], report: Report, seen: Counter[str]) -> None:
    with capsys.disabled():
        counts = ", ".join(f"{count} {what}" for what, count in sorted(seen.items()))
        print(f"\n{report}; written down: {counts}")


@pytest.mark.timeout(600)
def test_sixteen_processes_race_for_one_resource_under_fire(
    tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with Supervisor(tmp_path, seed=seed, places=16, resources=1, ttl=0.6) as supervisor:
        report = supervisor.run(60, kill_every=0.9, stop_every=0.7)
    seen = Counter(line.what for line in testimony.read_log(tmp_path / "log"))
    tell(capsys, report, seen)

    assert testimony.problems(tmp_path) == []
    assert report.rate >= RATE_MINIMUM, "too little was done for this run to count"
    assert report.kills > 30
    assert report.stops_beyond_ttl > 15
    assert min(seen["granted"], seen["act"], seen["released"]) > 200
    assert seen["lost"] > 0, "nobody was ever stopped while it held the lease"


@pytest.mark.timeout(300)
def test_eight_processes_share_many_resources_under_fire(
    tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with Supervisor(tmp_path, seed=seed, places=8, resources=12, ttl=0.8) as supervisor:
        report = supervisor.run(15, kill_every=1.0, stop_every=0.8)
    seen = Counter(line.what for line in testimony.read_log(tmp_path / "log"))
    tell(capsys, report, seen)

    assert testimony.problems(tmp_path) == []
    assert report.rate >= RATE_MINIMUM, "too little was done for this run to count"
    assert report.kills > 5
    assert report.stops_beyond_ttl > 2
    assert min(seen["granted"], seen["act"], seen["released"], seen["renewed"]) > 100

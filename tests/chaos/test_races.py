"""Real processes race for leases while they are killed and stopped at random.

A run that was too slow, or too gentle, proves nothing and fails.
"""

import os
from pathlib import Path

import pytest

from tests.chaos import evidence as check
from tests.chaos.supervisor import Race

pytestmark = pytest.mark.chaos

_OPERATIONS = ("try", "granted", "renewed", "released")


def _seed() -> int:
    return int(os.environ.get("LEASEHOLD_TEST_SEED", "") or int.from_bytes(os.urandom(4)))


def _run(tmp_path: Path, capsys: pytest.CaptureFixture[str], seconds: float, **plan: float) -> check.Evidence:
    seed = _seed()
    race = Race(
        tmp_path, racers=int(plan["racers"]), resources=int(plan["resources"]), ttl=plan["ttl"], seed=seed
    )
    raced = race.run(seconds)
    found = check.gather(race.store, race.log)
    operations = sum(found.count(word) for word in _OPERATIONS)
    rate = operations / (raced - race.stalled_seconds)
    with capsys.disabled():
        print(
            f"\nchaos, LEASEHOLD_TEST_SEED={seed}: {operations} operations, {rate:.0f}/s; "
            f"{found.count('granted')} grants, {race.kills} kills, {race.stops} stops, "
            f"{race.stalled_seconds:.1f} s stalled by a stopped writer"
        )
    assert rate >= 100, "too slow to prove anything"
    assert race.kills >= seconds / 4, "too gentle to prove anything"
    assert race.stops >= seconds / 4, "too gentle to prove anything"
    return found


def _judge(found: check.Evidence) -> None:
    assert found.problems == []
    check.tokens_rise(found)
    check.authority_never_overlaps(found)
    check.trust_never_overlaps(found)
    check.nothing_acknowledged_is_missing(found)


@pytest.mark.timeout(240)
def test_sixteen_processes_race_for_one_resource(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _run(tmp_path, capsys, 60, racers=16, resources=1, ttl=1.0)
    assert found.count("granted") >= 200
    expired = [event for event in found.events if event.type == "lease.expired"]
    assert len(expired) >= 5, "no killed or stopped holder was ever succeeded"
    _judge(found)


@pytest.mark.timeout(120)
def test_eight_processes_share_and_exclude_on_many_resources(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = _run(tmp_path, capsys, 15, racers=8, resources=6, ttl=1.0)
    modes = {note[4] for note in found.notes if note[0] == "granted"}
    assert modes == {"exclusive", "shared"}
    _judge(found)

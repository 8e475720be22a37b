"""Whose lease is in whose way, and for how long one's own suffices."""

import pytest

from leasehold.engine.questions import LeaseStatus
from leasehold.files.names import FileName
from leasehold.guards.asking import Target, target_of
from leasehold.guards.rivals import has_long, in_the_way, speaks_for
from leasehold.guards.verdict import Outcome, Verdict
from leasehold.kernel.lease.model import Mode
from tests.kernel.records import a_lease


def status(resource: str, holder: str, expires_in: float = 100.0, mode: Mode = Mode.EXCLUSIVE) -> LeaseStatus:
    lease = a_lease(resource=resource, holder=holder, mode=mode, ttl_ns=100 * 10**9)
    return LeaseStatus(lease=lease, expires_in=expires_in)


@pytest.mark.parametrize(
    ("left", "mode", "resource", "enough"),
    [
        (51.0, Mode.EXCLUSIVE, "/a/b", True),
        (50.0, Mode.EXCLUSIVE, "/a/b", False),
        (99.0, Mode.SHARED, "/a/b", False),
        (99.0, Mode.EXCLUSIVE, "/a", True),
        (99.0, Mode.EXCLUSIVE, "/a/*", True),
        (99.0, Mode.EXCLUSIVE, "/a/b/c", False),
        (99.0, Mode.EXCLUSIVE, "/a/bc", False),
    ],
)
def test_a_lease_of_one_s_own_suffices_while_more_than_half_of_its_time_is_left(
    left: float, mode: Mode, resource: str, enough: bool
) -> None:
    own = status(resource, "a", left, mode)
    assert has_long([own], "a", "/a/b", 0.5) is enough
    assert not has_long([own], "b", "/a/b", 0.5)


def test_whoever_has_it_longest_is_named() -> None:
    around = [
        status("/a", "b", 1),
        status("/a/b", "c", 2),
        status("/a/b", "a", 3),
        status("/a/b", "a/sub", 4),
    ]
    found = in_the_way(around, "a")
    assert found is not None
    assert found.lease.holder == "c"
    assert in_the_way(around[2:], "a") is None


@pytest.mark.parametrize(
    ("agent", "holder", "same"),
    [("a", "a", True), ("a", "a/b", True), ("a", "ab", False), ("a/b", "a", False)],
)
def test_an_agent_speaks_for_its_subagents(agent: str, holder: str, same: bool) -> None:
    assert speaks_for(agent, holder) is same


@pytest.mark.parametrize(
    ("held", "blocks"), [("/a", True), ("/a/**", True), ("/a/*.py", True), ("/a/b", False), ("/", True)]
)
def test_a_path_without_a_name_is_blocked_by_what_covers_its_folder(held: str, blocks: bool) -> None:
    assert Target(FileName("/a", "/a"), is_exact=False).is_blocked_by(status(held, "b")) is blocks
    assert Target(FileName("/a", "/a")).is_blocked_by(status(held, "b"))


def test_a_path_without_a_name_is_looked_for_in_the_nearest_folder_that_has_one() -> None:
    assert target_of("/nowhere/a\n/b\n/c") == Target(FileName("/nowhere", "/nowhere"), is_exact=False)
    assert target_of("/nowhere/a").is_exact


def test_only_so_many_reasons_are_told_and_warning_stops_nobody() -> None:
    verdict = Verdict(Outcome.REFUSED, [str(number) for number in range(25)])
    assert verdict.lines()[-2:] == ["19", "and 5 more"]
    assert (verdict.exit_code("block"), verdict.exit_code("warn")) == (2, 0)
    assert Verdict(Outcome.UNKNOWN).exit_code("block") == 3

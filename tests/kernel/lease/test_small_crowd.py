"""Everything that can happen to two or three holders who wait, share and hand over, tried out.

What is checked after each step is told in `small_crowd`; here, for every situation: the history replays to
the state, and once time has been taken note of nobody waits for what is free. Sequences that lead to the same
situation go on as one. Names of holders are only ever compared for being the same, so situations in which
holders have changed places are the same, too.
"""

from functools import reduce

import pytest

from leasehold.kernel.lease import plan
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.ledger.state import replay
from leasehold.stores.memory import queues
from tests.kernel.small_crowd import Crowd, Step, beginning, check_nobody_is_idle, situation, taken
from tests.lanes import by_length

pytestmark = pytest.mark.deep

TIME = [Step("time", seconds=2), Step("time", seconds=30), Step("sweep")]


def steps(holders: tuple[str, ...], resources: tuple[str, ...], *kinds: str) -> list[Step]:
    """Everything that can be tried: `kinds` of claims on each resource, and all that can follow them."""
    tried = list(TIME)
    for who in holders:
        others = [name for name in holders if name != who]
        for resource in resources:
            tried += [Step("acquire", who, resource, kind) for kind in kinds if kind != resource]
            tried += [
                Step(what, who, resource) for what in ("ask again", "give back", "upgrade", "downgrade")
            ]
            tried += [Step("transfer", who, resource, other) for other in others]
            tried += [Step("revoke", who, resource)] if "delayed" in kinds else []
    return tried


def explored(
    holders: tuple[str, ...], tried: list[Step], *, opening: tuple[Step, ...] = (), depth: int
) -> tuple[int, int]:
    """Go through the world breadth first, after an opening; return how many situations and steps it has.

    In `make test` one step less deep than asked for.
    """
    frontier = [reduce(taken, opening, beginning())]
    known = {situation(frontier[0], holders)}
    count = 0
    for _ in range(by_length(depth, depth - 1)):
        after: list[Crowd] = []
        for crowd in frontier:
            for step in tried:
                count += 1
                following = taken(crowd, step)
                where = situation(following, holders)
                if where in known:
                    continue
                known.add(where)
                after.append(following)
                assert replay(following.ledger, LEASES) == following.state, following.trail
                check_nobody_is_idle(following)
        frontier = after
    return len(known), count


TWO, THREE = ("ann", "bob"), ("ann", "bob", "cem")


def test_three_holders_of_one_resource_keep_the_law_in_every_sequence_of_five_steps() -> None:
    """With sharing, upgrades, downgrades and transfers."""
    tried = steps(THREE, ("door",), "", "shared")
    assert explored(THREE, tried, depth=5) == by_length((1_644, 11_448), (424, 2_322))


def test_two_holders_of_one_resource_keep_the_law_in_every_sequence_of_four_steps_of_any_kind() -> None:
    """With urgency, lock-delays, revocations, and claims that do not wait, too."""
    tried = steps(TWO, ("door",), "", "shared", "urgent", "at once", "delayed")
    assert explored(TWO, tried, depth=4) == by_length((1_332, 7_925), (317, 1_375))


def test_three_holders_of_two_resources_keep_the_law_in_every_three_steps_after_two_are_held() -> None:
    """With claims on both, which can close circles with whoever holds one."""
    tried = steps(THREE, ("a", "b"), "", "b")
    opening = (Step("acquire", "ann", "a"), Step("acquire", "bob", "b"))
    assert explored(THREE, tried, opening=opening, depth=3) == by_length((1_441, 8_064), (168, 768))


def test_two_holders_of_two_resources_keep_the_law_in_every_four_steps_that_can_close_a_circle() -> None:
    """With waits for a while, which are let into a circle, and for as long as it takes, which are not."""
    tried = steps(TWO, ("a", "b"), "", "for a while")
    opening = (Step("acquire", "ann", "a"), Step("acquire", "bob", "b"))
    assert explored(TWO, tried, opening=opening, depth=4) == by_length((1_804, 12_090), (390, 2_232))


def test_two_holders_of_a_path_and_its_directory_keep_the_law_in_every_sequence_of_four_steps() -> None:
    tried = steps(TWO, ("/d", "/d/x"), "", "shared", "/d")
    assert explored(TWO, tried, depth=4) == by_length((2_439, 12_507), (379, 1_617))


def test_three_holders_of_a_path_and_its_directory_keep_the_law_in_every_three_steps_after_two() -> None:
    """One shares what lies in the directory, and another waits for the whole of it."""
    tried = steps(THREE, ("/d", "/d/x"), "", "shared")
    opening = (Step("acquire", "ann", "/d/x", "shared"), Step("acquire", "bob", "/d"))
    assert explored(THREE, tried, opening=opening, depth=3) == by_length((1_405, 7_701), (151, 714))


def test_two_holders_of_patterns_that_overlap_keep_the_law_in_every_sequence_of_four_steps() -> None:
    tried = steps(TWO, ("/d/x*", "/d/*y"), "", "shared")
    assert explored(TWO, tried, depth=4) == by_length((2_439, 11_749), (379, 1_519))


def test_three_holders_of_a_path_and_of_patterns_keep_the_law_in_every_three_steps_after_two() -> None:
    """One shares a pattern, another waits for a path in it; a third pattern overlaps with either."""
    tried = steps(THREE, ("/d/**", "/d/x"), "", "shared")
    opening = (Step("acquire", "ann", "/d/?", "shared"), Step("acquire", "bob", "/d/x"))
    assert explored(THREE, tried, opening=opening, depth=3) == by_length((705, 4_284), (84, 510))


def test_holders_in_a_directory_keep_the_law_where_records_are_read_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of what is held and waited for around a path, one of each kind is read at first, and then two."""
    for module in (plan, queues):
        monkeypatch.setattr(module, "FIRST_IN_LINE", 1)
    monkeypatch.setattr(plan, "FIRST_AROUND", 1)
    monkeypatch.setattr(plan, "_NEXT_PAGE", 2)
    tried = steps(TWO, ("/d", "/d/x"), "", "shared", "/d")
    assert explored(TWO, tried, depth=4) == by_length((2_439, 12_507), (379, 1_617))
    tried = steps(THREE, ("/d", "/d/x", "/d/y"), "", "shared")
    opening = (Step("acquire", "ann", "/d/x"), Step("acquire", "bob", "/d/y", "shared"))
    assert explored(THREE, tried, opening=opening, depth=2) == by_length((474, 1_875), (25, 75))
    tried = steps(THREE, ("/d/*", "/d/y", "/*/x"), "", "shared")
    opening = (Step("acquire", "ann", "/d/x"), Step("acquire", "bob", "/d/y", "shared"))
    assert explored(THREE, tried, opening=opening, depth=2) == by_length((414, 1_725), (23, 75))


def test_sequences_that_go_on_as_one_would_have_led_to_the_same_situations() -> None:
    """Depth 3 on one resource, every sequence on its own, each holder under its own name; else depth 2."""
    tried = steps(TWO, ("door",), "", "shared")
    crowds = [beginning()]
    together = {situation(crowds[0], TWO)}
    for _ in range(by_length(3, 2)):
        crowds = [taken(crowd, step) for crowd in crowds for step in tried]
        together |= {situation(crowd, TWO) for crowd in crowds}
    assert len(crowds) == len(tried) ** by_length(3, 2)
    assert len(together) == explored(TWO, tried, depth=3)[0]

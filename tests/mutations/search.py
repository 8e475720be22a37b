"""Finds the world in which a mistake, made on purpose, is noticed.

`found` first tries the seeds that are pinned for the test. `make test` tries no others. At full length, if
they are missing or no longer show the mistake, it searches the whole range that the test gives. A search also
goes on until each patch of the test has been used: see `tests/mutations/watch`.

Fails if nothing is noticed, or if what is noticed first is not what the test says.
"""

import os
from collections.abc import Callable, Iterable, Sequence, Set
from functools import partial
from typing import Any

import pytest

from leasehold.kernel.ledger.family import Family
from simulator import SimulationFailed, simulate
from tests import lanes
from tests.mutations import pins
from tests.mutations.watch import Use, Watch

SEARCH_ANEW = "LEASEHOLD_PINS_ANEW"
"""Set to 1, pins are not looked at."""


class Running:
    """The test that runs: what it has patched, and the seeds that it has found."""

    def __init__(self, test: str, watch: Watch) -> None:
        self.test = test
        self.watch = watch
        self.found: pins.Pins = []


class _Current:
    running: Running | None = None


def set_running(running: Running | None) -> None:
    """Say which test runs in this process."""
    _Current.running = running


def change_family(family: Family, **others: Any) -> Family:
    """Return a family with something else in its place, of which the use is counted."""
    return _running().watch.change_family(family, **others)


def found(
    *says: str,
    seeds: Iterable[int],
    play: Callable[[int], object] = simulate,
    besides: Sequence[str] = (),
) -> str:
    """Return the first promise that is seen to be broken.

    `says`: parts of what that may be. Without them it may be any.

    `besides`: what else the same mistake breaks; worlds in which that is seen first are passed over.
    """
    running = _running()
    new_search = partial(
        _Search,
        running.watch,
        used_before=running.watch.uses() - set(running.watch.unused()),
        play=play,
        says=says,
        besides=besides,
    )
    search, pinned = new_search(), _pinned(running)
    for seed in pinned:
        search.attempt(seed)
    if search.is_done or not lanes.is_full_length():
        if search.problem is None:
            seen = f"the pinned seeds {pinned} do not show it any more" if pinned else "no seed is pinned"
            pytest.fail(f"{running.test}: {seen}: run `make pins`", pytrace=False)
        running.found.append(pinned)
        return search.problem
    search = new_search()
    for seed in seeds:
        search.attempt(seed, must_fit=True)
        if search.is_done:
            break
    if search.problem is None:
        raise AssertionError(f"nothing was noticed in {search.tried} seeds")
    running.found.append(search.chosen())
    return search.problem


class _Search:
    """The worlds that are tried for one mistake."""

    def __init__(
        self,
        watch: Watch,
        *,
        used_before: Set[Use],
        play: Callable[[int], object],
        says: Sequence[str],
        besides: Sequence[str],
    ) -> None:
        self._watch = watch
        self._used_before = used_before
        self._play = play
        self._says = says
        self._besides = besides
        self._used: dict[int, set[Use]] = {}
        """What was used in the world of each seed."""
        self._shown: int | None = None
        self.problem: str | None = None
        # What other worlds have used is not used by the ones that are chosen here.
        for use in self._watch.uses() - used_before:
            use.count = 0

    @property
    def is_done(self) -> bool:
        """Was the mistake noticed, and everything used that was patched?"""
        return self.problem is not None and not self._watch.unused()

    @property
    def tried(self) -> int:
        """How many worlds were run."""
        return len(self._used)

    def attempt(self, seed: int, *, must_fit: bool = False) -> None:
        """Run one world. `must_fit`: until the mistake is noticed, nothing else may be."""
        counts = {use: use.count for use in self._watch.uses()}
        problem = self._problem_in(seed)
        used = {use for use in self._watch.uses() if use.count > counts.get(use, 0)}
        self._used[seed] = used - self._used_before
        if problem is None or self.problem is not None or any(one in problem for one in self._besides):
            return
        if not self._says or any(one in problem for one in self._says):
            self._shown, self.problem = seed, problem
        elif must_fit:
            raise AssertionError(
                f"seed {seed} says {problem!r}, and not {' or '.join(map(repr, self._says))}"
            )

    def _problem_in(self, seed: int) -> str | None:
        try:
            self._play(seed)
        except SimulationFailed as failure:
            return failure.problem
        return None

    def chosen(self) -> list[int]:
        """Return the seed that shows the mistake, and as many more as it takes for everything to be used."""
        assert self._shown is not None
        chosen = [self._shown]
        missing = set[Use]().union(*self._used.values()) - self._used[self._shown]
        while missing:
            seed = max(self._used, key=lambda one: len(self._used[one] & missing))
            chosen.append(seed)
            missing -= self._used[seed]
        return chosen


def _pinned(running: Running) -> list[int]:
    if os.environ.get(SEARCH_ANEW) == "1":
        return []
    call = len(running.found)
    table = pins.read_table().get(running.test, [])
    return table[call] if call < len(table) else []


def _running() -> Running:
    assert _Current.running is not None, "only tests can search: see tests/mutations/plugin"
    return _Current.running

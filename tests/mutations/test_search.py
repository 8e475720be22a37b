"""Pinned seeds are tried first, and in `make test` alone."""

from collections.abc import Iterator

import pytest

from simulator import SimulationFailed
from tests import lanes
from tests.mutations import pins, search
from tests.mutations.watch import Watch

TEST = "test_house.py::test_a_door"


class House:
    """Worlds that notice something with some seeds, and use some patches."""

    def __init__(self, problems: dict[int, str], calls: dict[int, str] | None = None) -> None:
        self.watch = Watch()
        self.running = search.Running(TEST, self.watch)
        self._problems = problems
        calls = calls or {}
        self._calls = {seed: [self._patch(name) for name in names] for seed, names in calls.items()}
        self.played: list[int] = []
        search.set_running(self.running)

    def _patch(self, name: str) -> object:
        if not hasattr(self, f"_{name}"):
            setattr(self, f"_{name}", self.watch.watch_call(name, lambda name=name: name))
        return getattr(self, f"_{name}")

    def play(self, seed: int) -> None:
        self.played.append(seed)
        for call in self._calls.get(seed, []):
            assert callable(call)
            call()
        if seed in self._problems:
            raise SimulationFailed(seed, self._problems[seed], [])

    def found(self, *says: str, besides: tuple[str, ...] = ()) -> str:
        return search.found(*says, seeds=range(10), play=self.play, besides=besides)


@pytest.fixture(autouse=True)
def nobody_else_runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(search.SEARCH_ANEW, raising=False)
    yield
    search.set_running(None)


def pin(monkeypatch: pytest.MonkeyPatch, *seeds: list[int], full_length: bool = False) -> None:
    monkeypatch.setattr(pins, "read_table", lambda: {TEST: list(seeds)})
    monkeypatch.setattr(lanes, "is_full_length", lambda: full_length)


@pytest.mark.parametrize("full_length", [False, True])
def test_a_pin_that_shows_the_mistake_is_enough(full_length: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pin(monkeypatch, [7], full_length=full_length)
    house = House({3: "is open", 7: "is open"})
    assert house.found("open") == "is open"
    assert house.played == [7]
    assert house.running.found == [[7]]


@pytest.mark.parametrize(
    ("seeds", "says"), [([], "no seed is pinned"), ([5], r"the pinned seeds \[5\] do not show it any more")]
)
def test_in_make_test_nothing_but_the_pin_is_tried(
    seeds: list[int], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin(monkeypatch, seeds)
    house = House({3: "is open"})
    with pytest.raises(pytest.fail.Exception, match=f"^{TEST}: {says}: run `make pins`$"):
        house.found("open")
    assert house.played == seeds


def test_a_pin_that_shows_something_else_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    pin(monkeypatch, [3])
    with pytest.raises(pytest.fail.Exception, match="do not show it any more"):
        House({3: "is ajar"}).found("open")


def test_at_full_length_a_pin_that_misses_is_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pin(monkeypatch, [5], full_length=True)
    house = House({3: "is open"})
    assert house.found("open") == "is open"
    assert house.played == [5, 0, 1, 2, 3]
    assert house.running.found == [[3]]


def test_pins_are_not_looked_at_when_all_are_searched_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pin(monkeypatch, [7], full_length=True)
    monkeypatch.setenv(search.SEARCH_ANEW, "1")
    house = House({3: "is open", 7: "is open"})
    house.found("open")
    assert house.running.found == [[3]]


def test_each_call_has_pins_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    pin(monkeypatch, [3], [4])
    house = House({3: "is open", 4: "is ajar"})
    assert (house.found("open"), house.found("ajar")) == ("is open", "is ajar")
    assert house.played == [3, 4]


def test_a_search_that_notices_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    pin(monkeypatch, full_length=True)
    with pytest.raises(AssertionError, match="nothing was noticed in 10 seeds"):
        House({}).found("open")


def test_a_search_that_notices_something_else_first_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    pin(monkeypatch, full_length=True)
    worlds = {2: "is ajar", 3: "is open"}
    with pytest.raises(AssertionError, match="seed 2 says 'is ajar', and not 'open' or 'gone'"):
        House(worlds).found("open", "gone")
    assert House(worlds).found("open", besides=("ajar",)) == "is open"
    assert House(worlds).found() == "is ajar"


def test_a_search_goes_on_until_every_patch_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    pin(monkeypatch, full_length=True)
    house = House({2: "is open", 4: "is ajar"}, calls={0: "a", 1: "ab", 2: "b", 4: "c", 5: "c"})
    assert house.found("open") == "is open"
    assert house.played == [0, 1, 2, 3, 4]
    assert house.running.found == [[2, 0, 4]]
    assert not house.watch.unused()


def test_a_pin_with_which_a_patch_is_not_used_is_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pin(monkeypatch, [2], full_length=True)
    house = House({2: "is open", 6: "is open"}, calls={1: "a"})
    assert house.found("open") == "is open"
    assert house.running.found == [[2, 1]]


def test_the_seeds_that_are_chosen_use_what_a_pin_that_missed_has_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pin(monkeypatch, [8], full_length=True)
    house = House({2: "is open"}, calls={8: "a", 6: "a"})
    house.found("open")
    assert house.running.found == [[2, 6]]

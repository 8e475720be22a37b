"""A patch that nobody uses fails the test that made it, whatever was patched."""

import functools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.family import Reaction, Stage
from tests.families import toy
from tests.families.toy import Bump, Close, counter_family
from tests.mutations.watch import Watch, WatchingMonkeyPatch

pytest_plugins = ["pytester"]


class Door:
    """Something to patch."""

    height = 2

    def __init__(self) -> None:
        self.width = 1

    def opens(self, by: int) -> tuple[str, int]:
        return ("opens", by)

    @classmethod
    def make(cls) -> "Door":
        return cls()

    @staticmethod
    def sound() -> str:
        return "creak"

    @property
    def area(self) -> int:
        return self.height * self.width

    def steps(self) -> Iterator[int]:
        yield 1


@pytest.fixture
def patch() -> Iterator[WatchingMonkeyPatch]:
    patch = WatchingMonkeyPatch()
    yield patch
    patch.undo()


def unused(patch: WatchingMonkeyPatch) -> list[str]:
    return [use.target.removeprefix(f"{__name__}.") for use in patch.watch.unused()]


def module_of(source: str) -> ModuleType:
    module = ModuleType("house")
    exec(source, module.__dict__)
    return module


def test_a_patch_that_is_never_called_fails_the_test_with_its_name(patch: WatchingMonkeyPatch) -> None:
    patch.setattr(Door, "opens", lambda self, by: ("stays shut", by))
    with pytest.raises(
        pytest.fail.Exception, match=r"Door\.opens was patched and never called: patch what is"
    ):
        patch.watch.check()
    assert Door().opens(3) == ("stays shut", 3)
    patch.watch.check()


def test_a_test_that_patches_dead_code_fails_and_one_that_fails_anyway_says_why(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CI", "BUILD_NUMBER", "PYTEST_ADDOPTS"):  # They change what pytest prints.
        monkeypatch.delenv(name, raising=False)
    pytester.makeconftest("from tests.mutations.plugin import monkeypatch, pytest_runtest_call")
    pytester.makepyfile(
        """
        import string

        def test_dead(monkeypatch):
            monkeypatch.setattr("string.capwords", lambda text: text)

        def test_alive(monkeypatch):
            monkeypatch.setattr("string.capwords", lambda text: text)
            assert string.capwords("a") == "a"

        def test_wrong(monkeypatch):
            monkeypatch.setattr("string.capwords", lambda text: text)
            assert not "wrong"
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:xdist", "-p", "no:schemathesis")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["string.capwords was patched and never called: *"])
    assert str(result.stdout).count("never called") == 1, "of a test that fails anyway, that matters more"


@pytest.mark.parametrize(
    ("name", "other", "use", "result"),
    [
        ("opens", lambda self, by: (type(self), by), lambda: Door().opens(1), (Door, 1)),
        ("opens", functools.partial(max, 5), lambda: Door().opens(1), 5),
        ("opens", Door().opens, lambda: Door().opens(1), ("opens", 1)),
        ("make", classmethod(lambda cls: cls.__name__), lambda: Door().make(), "Door"),
        ("sound", staticmethod(lambda: "bang"), lambda: Door().sound(), "bang"),
        ("area", property(lambda self: self.width + 6), lambda: Door().area, 7),
        ("height", 3, lambda: Door().area, 3),
        ("height", False, lambda: Door().height, False),
    ],
)
def test_what_is_in_a_class_is_counted_and_is_bound_as_it_would_be(
    name: str, other: Any, use: Callable[[], Any], result: object, patch: WatchingMonkeyPatch
) -> None:
    patch.setattr(Door, name, other)
    assert unused(patch) == [f"Door.{name}"]
    assert use() == result
    assert unused(patch) == []


def test_a_generator_is_counted_when_it_is_called(patch: WatchingMonkeyPatch) -> None:
    def steps(self: Door) -> Iterator[int]:
        yield from (1, 2)

    patch.setattr(Door, "steps", steps)
    generator = Door().steps()
    assert unused(patch) == []
    assert list(generator) == [1, 2]


def test_an_attribute_of_an_instance_is_counted(patch: WatchingMonkeyPatch) -> None:
    door = Door()
    patch.setattr(door, "opens", lambda by: by)
    assert unused(patch) == ["Door.opens"]
    assert door.opens(4) == 4  # type: ignore[comparison-overlap]
    assert unused(patch) == []


@pytest.mark.parametrize(
    "source", ["{} < 5", "5 > {}", "{} + 1", "1 + {}", "[7][{} - 3]", "{} // 2", "{} == 3", "-{}", "not {}"]
)
def test_a_number_of_a_module_is_counted_when_it_is_calculated_with(
    source: str, patch: WatchingMonkeyPatch
) -> None:
    house = module_of("LIMIT = 1\ndef look(): return " + source.format("LIMIT"))
    patch.setattr(house, "LIMIT", 3)
    assert hash(house.LIMIT) == hash(3)
    assert unused(patch) == ["house.LIMIT"]
    assert house.look() == eval(source.format("3"))
    assert unused(patch) == []


@pytest.mark.parametrize("other", [None, "text", True, 1.5, Door])
def test_what_cannot_be_watched_is_refused_at_once(other: object, patch: WatchingMonkeyPatch) -> None:
    house = module_of("LIMIT = 1")
    with pytest.raises(TypeError, match=r"house\.LIMIT cannot be watched as"):
        patch.setattr(house, "LIMIT", other)
    assert house.LIMIT == 1


def test_what_cannot_be_counted_is_not_patched_but_for_the_environment(patch: WatchingMonkeyPatch) -> None:
    with pytest.raises(TypeError, match="cannot be watched"):
        patch.setitem({}, "a", 1)
    with pytest.raises(TypeError, match="cannot be watched"):
        patch.delitem({"a": 1}, "a")
    with pytest.raises(TypeError, match="cannot be watched"):
        patch.delattr(Door, "opens")
    patch.setenv("LEASEHOLD_TEST_OF_PATCHES", "1")
    patch.delenv("LEASEHOLD_TEST_OF_PATCHES")


def test_an_attribute_that_is_patched_twice_was_not_used_by_that(patch: WatchingMonkeyPatch) -> None:
    patch.setattr(Door, "height", 3)
    patch.setattr(Door, "height", 4)
    assert unused(patch) == ["Door.height", "Door.height"]


def test_each_place_that_is_patched_has_to_be_used(patch: WatchingMonkeyPatch) -> None:
    for name in ("opens", "sound"):
        patch.setattr(Door, name, lambda *_: None)
    Door().opens(1)
    assert unused(patch) == ["Door.sound"]


def test_what_is_patched_again_and_again_has_to_be_used_once(patch: WatchingMonkeyPatch) -> None:
    for use in (False, True, False):
        with patch.context() as here:
            here.setattr(Door, "sound", lambda self: "bang")
            if use:
                assert Door().sound() == "bang"
    assert Door().sound() == "creak"
    assert unused(patch) == []


def test_another_patch_of_the_same_place_has_to_be_used_too(patch: WatchingMonkeyPatch) -> None:
    patch.setattr(Door, "sound", lambda self: "bang")
    assert Door().sound() == "bang"
    patch.setattr(Door, "sound", lambda self: "squeak")
    assert unused(patch) == ["Door.sound"]


def test_what_a_family_is_given_is_counted_and_what_it_had_is_not() -> None:
    def never(*_: Any) -> None:
        raise AssertionError("is not called")

    watch, family = Watch(), counter_family()
    event, before = next(iter(family.reacts.items()))
    changed = watch.change_family(
        family,
        rules={**family.rules, Close: lambda command, draft: "closed"},
        reacts={**family.reacts, event: Reaction(Stage.THEN, lambda event, draft: None)},
        age=never,
    )
    assert changed.rules[Bump] is family.rules[Bump] is toy.bump
    assert [use.target for use in watch.unused()] == [
        "counter.rules[Close]",
        f"counter.reacts[{event.__name__}]",
        "counter.age",
    ]
    draft: Draft = None  # type: ignore[assignment]
    assert changed.rules[Close](None, draft) == "closed"
    changed.reacts[event].react(None, draft)
    assert changed.reacts[event] != before
    assert [use.target for use in watch.unused()] == ["counter.age"]

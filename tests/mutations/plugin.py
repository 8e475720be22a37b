"""What a conftest imports to have the patches of its tests watched, and their searches pinned."""

from collections.abc import Generator, Iterator

import pytest

from tests.mutations import pins, search
from tests.mutations.watch import Watch, WatchingMonkeyPatch

FOUND = "seeds in which the mistake is noticed"
"""The property of a test's report that tells `tools/pins.py` the pins."""

_WATCH = pytest.StashKey[Watch]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests that search run in both lanes: at full length, a pin that misses is searched for."""
    searching = pins.mutation_tests()
    for item in items:
        if pins.without_parameters(item.nodeid.removeprefix(pins.PREFIX)) in searching:
            item.add_marker("deep")


@pytest.fixture
def monkeypatch(request: pytest.FixtureRequest) -> Iterator[pytest.MonkeyPatch]:
    """A `monkeypatch` that fails the test if something was patched and never used."""
    patch = WatchingMonkeyPatch(request.node.stash.setdefault(_WATCH, Watch()))
    yield patch
    patch.undo()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Run a test; if it passes, see that all its patches were used."""
    watch = item.stash.setdefault(_WATCH, Watch())
    running = search.Running(item.nodeid.removeprefix(pins.PREFIX), watch)
    search.set_running(running)
    try:
        yield
    finally:
        search.set_running(None)
    watch.check()
    if running.found:
        item.user_properties.append((FOUND, running.found))

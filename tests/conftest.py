"""What all tests share."""

import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import settings

from leasehold.engine.port import Store
from leasehold.stores.locate import ENVIRONMENT
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock
from tests import lanes

EXAMPLES_FOR_TEST = 30
EXAMPLES_FOR_PROOF = 500

# A shell that runs tests in the background has SIGINT ignored, and what is ignored is inherited: the
# processes that tests start would never hear the Ctrl-C that they are tested with.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: on a busy machine a single example may take long without anything being wrong. In CI the
# examples are the same each time, as the simulator's seeds are: no change is refused for a mistake that was
# there before it. Whoever runs the tests by hand tries new ones each time.
USUAL = settings(deadline=None, print_blob=True, derandomize=os.environ.get("CI") == "true")
settings.register_profile("test", USUAL, max_examples=EXAMPLES_FOR_TEST)
settings.register_profile("proof", USUAL, max_examples=EXAMPLES_FOR_PROOF)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--lane", choices=lanes.LANES, default="all", help="which tests to run: see tests/lanes.py"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Choose the lane before any test is imported."""
    if os.environ.get(lanes.REPORT) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(lanes.Witness(Path(os.environ[lanes.REPORT])))
    lanes.choose(config.getoption("--lane"))
    settings.load_profile("proof" if lanes.is_full_length() else "test")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what belongs to the other lane, and write down what that is."""
    lane = config.getoption("--lane")
    if lane == "all":
        return
    chosen = [item for item in items if lane in lanes.lanes_of(item)]
    left_out = [item for item in items if lane not in lanes.lanes_of(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = chosen
    report = os.environ.get(lanes.REPORT)
    if report:
        # Each process that runs tests writes the same: whole, because another may read it already.
        partial = Path(f"{report} {os.getpid()}")
        partial.write_bytes(msgspec.json.encode(lanes.Report.of(chosen, left_out)))
        partial.rename(report)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let a test ask how far to go."""
    lanes.set_running(item)
    try:
        return (yield)
    finally:
        lanes.set_running(None)


@pytest.fixture(autouse=True)
def nobody_says_which_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test find the store of whoever runs it."""
    monkeypatch.delenv(ENVIRONMENT, raising=False)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    """One store of each kind, on a clock that stands still."""
    made: Store
    if request.param == "memory":
        made = MemoryStore(clock)
    else:
        made = SqliteStore(tmp_path / "leases", clock=clock, durability="fast")
    yield made
    made.close()

"""What all tests share."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from leasehold.engine.port import Store
from leasehold.stores.locate import ENVIRONMENT
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock

# A shell that runs tests in the background has SIGINT ignored, and what is ignored is inherited: the
# processes that tests start would never hear the Ctrl-C that they are tested with.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: on a busy machine a single example may take long without anything being wrong.
settings.register_profile("leasehold", deadline=None, print_blob=True)
settings.load_profile("leasehold")


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

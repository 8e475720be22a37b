"""Places for stores."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stores.sqlite.theatre.stage import Stage, stage_of, theatre


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let nobody but root try what nobody but root can do."""
    if item.get_closest_marker("root") is not None and os.geteuid() != 0:
        pytest.skip("needs root")


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that every user of the machine can reach."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="session")
def theatre_door() -> Iterator[Path]:
    """Where stages are to be had."""
    with tempfile.TemporaryDirectory() as name, theatre(Path(name) / "door") as door:
        yield door


@pytest.fixture
def stage(theatre_door: Path) -> Iterator[Stage]:
    """Real processes in a mount namespace of their own."""
    with stage_of(theatre_door) as made:
        yield made

"""A shell for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell


@pytest.fixture(scope="session")
def bytecode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bytecode")


@pytest.fixture
def shell(tmp_path: Path, bytecode: Path) -> Iterator[Shell]:
    folder = tmp_path / "work"
    folder.mkdir(mode=0o700)
    shell = Shell(folder, bytecode)
    yield shell
    shell.close()

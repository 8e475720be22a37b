"""A repository in which agents work, each with a server of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import signals_as_at_a_terminal
from tests.cli.shell import Shell
from tests.client.conftest import pytest_pyfunc_call
from tests.files.conftest import nobodys_settings, repository

__all__ = ["nobodys_settings", "pytest_pyfunc_call", "repository", "signals_as_at_a_terminal"]


@pytest.fixture
def shell(repository: Path) -> Iterator[Shell]:
    """A user in a repository, whose store is found by being there."""
    shell = Shell(repository)
    del shell.environment["LEASEHOLD_URL"]
    shell.store = repository / ".leasehold"
    shell.url = f"sqlite:///{shell.store}"
    yield shell
    shell.close()

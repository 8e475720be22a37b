"""A shell for each test."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell


@pytest.fixture(scope="session", autouse=True)
def signals_as_at_a_terminal() -> Iterator[None]:
    """Let commands hear Ctrl-C and the like, also if the tests themselves run where these are ignored."""
    ignored = [
        number
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
        if signal.getsignal(number) is signal.SIG_IGN
    ]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    folder = tmp_path / "work"
    folder.mkdir(mode=0o700)
    shell = Shell(folder)
    yield shell
    shell.close()

"""Repositories to name files in, and worlds to lease them in."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.client.conftest import (
    client_kind,
    leases,
    pytest_pyfunc_call,
    real_world,
    store_kind,
    strangers,
    world,
)

__all__ = [
    "client_kind",
    "leases",
    "pytest_pyfunc_call",
    "real_world",
    "store_kind",
    "strangers",
    "world",
]


def git(folder: Path, *arguments: str) -> None:
    """Let git do something."""
    identity = ("-c", "user.name=n", "-c", "user.email=e")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(autouse=True)
def nobodys_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no settings of the user's git count, nor an agent's name."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("LEASEHOLD_AGENT", raising=False)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a commit, in which we are."""
    folder = tmp_path / "repository"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "app.py").write_text("first\n")
    git(folder, "init")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "first")
    monkeypatch.chdir(folder)
    return folder

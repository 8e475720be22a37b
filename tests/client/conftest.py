"""Worlds to play scenarios in."""

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leasehold.engine.clock import SystemClock
from leasehold.testing.clock import FakeClock
from tests.client.worlds import World


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(params=["memory", "sqlite", "wire", "http"])
def store_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["memory", "sqlite"])
def local_kind(request: pytest.FixtureRequest) -> str:
    """A store without a line, for tests that look into the client's process."""
    return str(request.param)


@pytest.fixture(params=["blocking", "asynchronous"])
def client_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def world(store_kind: str, client_kind: str, clock: FakeClock, tmp_path: Path) -> Iterator[World]:
    """A world in which time passes when the test says so."""
    made = World(store_kind, client_kind, clock, tmp_path)
    yield made
    asyncio.run(made.close())


@pytest.fixture
def real_world(store_kind: str, client_kind: str, tmp_path: Path) -> Iterator[World]:
    """A world in which time passes by itself."""
    made = World(store_kind, client_kind, SystemClock(), tmp_path)
    yield made
    asyncio.run(made.close())


@pytest.fixture
def leases(world: World) -> Any:
    """A client called ann."""
    return world.connect(holder="ann")


@pytest.fixture
def strangers(world: World) -> Any:
    """Another client of the same store, called bob."""
    return world.connect(holder="bob")

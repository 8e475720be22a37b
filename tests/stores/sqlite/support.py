"""What the tests of the SQLite store share: opening it in unusual ways, and asking whether it is sound."""

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from leasehold import Client
from leasehold.engine.audit import audit
from leasehold.engine.clock import Clock
from leasehold.engine.port import LeaseQuery
from leasehold.engine.registrar import Registrar
from leasehold.registry import FAMILIES
from leasehold.stores.sqlite import SqliteStore
from leasehold.stores.sqlite.key_files import KeyFolder
from leasehold.testing.faults import FaultyDisk

PATIENCE_SECONDS = 60
"""How long a test waits for another process before it gives up."""

NOBODY = 65534
"""The id of a user, and of a group, that owns nothing."""

_spawn = multiprocessing.get_context("spawn")


def open_store(
    path: Path,
    *,
    disk: FaultyDisk | None = None,
    clock: Clock | None = None,
    durability: str = "full",
    create: bool = True,
) -> SqliteStore:
    vfs = None if disk is None else disk.name
    return SqliteStore(path, vfs=vfs, clock=clock, durability=durability, create=create, families=FAMILIES)


@contextmanager
def client_of(
    path: Path,
    *,
    holder: str = "me",
    timeout: float = 30,
    disk: FaultyDisk | None = None,
    clock: Clock | None = None,
    durability: str = "full",
) -> Iterator[Client]:
    """Connect like `leasehold.connect`, but to a disk or a clock of the test's own."""
    store = open_store(path, disk=disk, clock=clock, durability=durability)
    try:
        client = Client(Registrar(store, timeout=timeout), holder=holder)
    except BaseException:
        store.close()
        raise
    with client:
        yield client


def problems_of(path: Path) -> list[str]:
    """Audit a store through a connection of its own; a copy without its keys goes on with one of ours."""
    store = open_store(path, create=False)
    try:
        return audit(store, trusted=KeyFolder(path).at_hand()).problems
    finally:
        store.close()


def tokens_of(path: Path) -> set[int]:
    """Every token that a store remembers to have given out."""
    store = open_store(path, create=False)
    try:
        with store.snapshot() as snapshot:
            return {lease.token for lease in snapshot.leases(LeaseQuery(limit=100_000))}
    finally:
        store.close()


def epoch_of(path: Path) -> int:
    store = open_store(path, create=False)
    try:
        with store.snapshot() as snapshot:
            assert snapshot.authority is not None
            return snapshot.authority.epoch
    finally:
        store.close()


def contents_of(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, byte for byte."""
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}


def become_nobody() -> None:
    """Give up being root, for whom no mode is an obstacle; whoever is not root stays who they are."""
    if os.geteuid() == 0:
        # Load what is loaded late: nobody may not be allowed to read it.
        with tempfile.TemporaryDirectory() as name, client_of(Path(name) / "leases") as client:
            client.acquire("resource")
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


class Other:
    """Another process, which runs `target(pipe, *arguments)`, and what it says through the pipe."""

    def __init__(self, target: Callable[..., None], *arguments: object) -> None:
        self._pipe, theirs = _spawn.Pipe()
        self.process: SpawnProcess = _spawn.Process(target=target, args=(theirs, *arguments))
        self.process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def hear(self) -> Any:
        """Return the next thing it says; raise EOFError if it ends without."""
        assert self._pipe.poll(PATIENCE_SECONDS), "the other process says nothing"
        return self._pipe.recv()

    def hear_to_the_end(self) -> list[Any]:
        """Return all that it says until it ends; the patience is for each thing, not for all together."""
        said: list[Any] = []
        while True:
            try:
                said.append(self.hear())
            except EOFError:
                return said

    def tell(self, word: object = None) -> None:
        self._pipe.send(word)

    def join(self) -> int:
        """Wait until it ends; return its exit code."""
        end = time.monotonic() + PATIENCE_SECONDS
        while self.process.exitcode is None:
            assert time.monotonic() < end, "the other process does not end"
            self.process.join(0.02)  # What it waits for, a child of the process may keep open.
        return self.process.exitcode

    def kill(self) -> None:
        self.process.kill()
        self.join()

    def hang_up(self) -> None:
        """Close the pipe, which also ends children of the process that still listen to it."""
        self._pipe.close()


@contextmanager
def others(*processes: Other) -> Iterator[tuple[Other, ...]]:
    """Make sure that no process outlives its test."""
    try:
        yield processes
    finally:
        for other in processes:
            if other.process.exitcode is None:
                other.kill()
            other.hang_up()


Pipe = Connection

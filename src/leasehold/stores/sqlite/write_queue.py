"""A fair queue in front of SQLite's write lock.

SQLite's own waiting is a sleep and a retry, in which a process that commits in a loop starves the others.
Here a writer first passes a turnstile and then takes the writer's lock, both advisory locks on files
in the store's folder, which are there once somebody has opened the store:

    lock the turnstile → lock the writer → unlock the turnstile → … write … → unlock the writer

Who has just written and wants to write again finds the next writer already in the turnstile and has to
queue behind it. The kernel frees both locks when a process dies, however it dies.

Not promised: strict first-come-first-served among those who wait for the turnstile; the kernel wakes them
in about that order. A process that is stopped while it writes, or in the turnstile, keeps everybody waiting
until it goes on or dies; `writer_of` names it.
"""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from leasehold.engine.port import WouldBlock
from leasehold.errors import StoreBusy
from leasehold.stores.sqlite.failures import system_error
from leasehold.stores.sqlite.files import TURNSTILE, WRITER, open_own

PATIENCE_SECONDS = 30.0
"""How long those wait for their turn who cannot come back later: who migrates, or restores."""


class WriteQueue:
    """One process's place in the queue. Used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        try:
            folder = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                self.turnstile = open_own(folder, TURNSTILE)
                try:
                    self.writer = open_own(folder, WRITER)
                except BaseException:
                    os.close(self.turnstile)
                    raise
            finally:
                os.close(folder)
        except OSError as error:
            raise system_error(error, str(path)) from error
        self.leave = partial(fcntl.flock, self.writer, fcntl.LOCK_UN)
        """Let the next writer in. Not a method of ours: Ctrl-C could come before its first line."""

    def enter(self, *, blocking: bool) -> None:
        """Take the writer's lock; raise WouldBlock instead of waiting if not `blocking`."""
        operation = fcntl.LOCK_EX if blocking else fcntl.LOCK_EX | fcntl.LOCK_NB
        try:
            fcntl.flock(self.turnstile, operation)
            fcntl.flock(self.writer, operation)
            fcntl.flock(self.turnstile, fcntl.LOCK_UN)
        except BaseException as error:
            # Also Ctrl-C, which may come when a lock has just been taken.
            fcntl.flock(self.writer, fcntl.LOCK_UN)
            fcntl.flock(self.turnstile, fcntl.LOCK_UN)
            if isinstance(error, BlockingIOError):
                raise WouldBlock from None
            raise

    def close(self) -> None:
        """Close both lock files, which frees what this process holds of them."""
        os.close(self.turnstile)
        os.close(self.writer)


def writer_of(path: Path) -> int | None:
    """Return the id of the process whose turn it is to write the store, as far as the kernel tells.

    Whoever is in the turnstile while nobody writes is about to: if it stands still, so does everybody.
    """
    return next(iter(in_the_way(path)), None)


def in_the_way(path: Path) -> list[int]:
    """Return the processes that keep all others from writing: who writes, then who is in the turnstile."""
    lockers = (locker_of(path / name) for name in (WRITER, TURNSTILE))
    return [process_id for process_id in lockers if process_id is not None]


def locker_of(path: Path) -> int | None:
    """Return the id of a process that has locked a file or folder by `flock`, as far as the kernel tells."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    name = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    locks = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    return next((int(words[4]) for words in locks if words[1] == "FLOCK" and words[5] == name), None)


@contextmanager
def turn(path: Path, patience_seconds: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Be the store's only writer; raise StoreBusy if the turn does not come in time.

    The kernel cannot be asked to wait for a while, and asking again and again would be no place in the
    queue; so a thread waits, and if it comes too late it lets the next one in.
    """
    queue = WriteQueue(path)
    came, deciding = threading.Event(), threading.Lock()
    over = False

    def end() -> None:
        queue.leave()  # Closing is not enough: a child that was forked meanwhile has the open file as well.
        queue.close()

    def wait() -> None:
        queue.enter(blocking=True)
        with deciding:
            came.set()
            if over:
                end()

    threading.Thread(target=wait, name="leasehold-turn", daemon=True).start()
    try:
        if not came.wait(patience_seconds):
            raise _busy(path, patience_seconds)
        yield
    finally:
        with deciding:
            over = True
            if came.is_set():
                end()


def _busy(path: Path, patience_seconds: float) -> StoreBusy:
    process_id = writer_of(path)
    return StoreBusy(
        f"process {process_id or 'unknown'} has kept the write lock of {path} for more than "
        f"{patience_seconds:g} s; nothing was changed. `leasehold doctor` tells more",
        path=str(path),
        process_id=process_id,
    )

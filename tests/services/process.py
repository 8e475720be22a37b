"""Running a service, which ends with us.

What a service has to say is read as long as it runs, and its last lines explain why it did not start. It gets
a signal if the process that started it is killed. The kernel sends that signal when the *thread* that started
the service ends, so services are started by the main thread only.

How it fails: `Unavailable`, if a program cannot be run, ends with an error, or is not ready in time.
"""

import ctypes
import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.services import user
from tests.services.programs import Unavailable

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)
_RUN_SECONDS = 60.0
_END_SECONDS = 10.0
_LINES_KEPT = 10


def run(command: Sequence[str], folder: Path) -> None:
    """Run a program of a service to its end."""
    with _start(command, folder, end_with=signal.SIGTERM) as process:
        try:
            output, _ = process.communicate(timeout=_RUN_SECONDS)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{command[0]} did not end in {_RUN_SECONDS:.0f} seconds") from None
        finally:
            _end(process, signal.SIGTERM)
    if process.returncode != 0:
        raise Unavailable(f"{command[0]} ended with {process.returncode}: {_last_lines(output.splitlines())}")


@contextmanager
def running(command: Sequence[str], folder: Path, *, ready: str, end_with: signal.Signals) -> Iterator[None]:
    """Run a service, from when it says that it is ready until it has ended."""
    with _start(command, folder, end_with=end_with) as process:
        try:
            _wait_until_ready(process, command[0], ready)
            yield
        finally:
            _end(process, end_with)


def _start(command: Sequence[str], folder: Path, *, end_with: signal.Signals) -> "subprocess.Popen[str]":
    assert threading.current_thread() is threading.main_thread(), (
        "a service ends with the thread that started it"
    )
    owner = user.account()
    parent = os.getpid()

    def end_with_parent() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, end_with, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            # Nothing of ours steers a service.
            env={"PATH": os.defpath, "HOME": str(folder), "LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # Out of reach of Ctrl-C: the tests that it interrupts may still need the service.
            start_new_session=True,
            user=owner and owner.user,
            group=owner and owner.group,
            extra_groups=owner and [],
            # Called after the change of user, which would undo it.
            preexec_fn=end_with_parent,  # noqa: PLW1509
        )
    except OSError as error:
        raise Unavailable(f"{command[0]} cannot be run: {error}") from error


def _wait_until_ready(process: "subprocess.Popen[str]", name: str, ready: str) -> None:
    assert process.stdout is not None
    said: deque[str] = deque(maxlen=_LINES_KEPT)
    is_ready, has_news = threading.Event(), threading.Event()

    def read(output: IO[str]) -> None:
        for line in output:
            said.append(line)
            if ready in line:
                is_ready.set()
                has_news.set()
        has_news.set()

    # Goes on reading after that: a service that nobody reads comes to a stop when the pipe is full.
    threading.Thread(target=read, args=(process.stdout,), name=f"output of {name}", daemon=True).start()
    has_news.wait(_RUN_SECONDS)
    if not is_ready.is_set():
        raise Unavailable(f"{name} did not start: {_last_lines(list(said))}")


def _end(process: "subprocess.Popen[str]", end_with: signal.Signals) -> None:
    process.send_signal(end_with)
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def _last_lines(lines: Sequence[str]) -> str:
    return " / ".join(line.strip() for line in lines[-_LINES_KEPT:] if line.strip()) or "it said nothing"

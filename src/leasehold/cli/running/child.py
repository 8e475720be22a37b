"""A command as the child of a launcher: starting it, and what the launcher tells of it.

The kernel kills the command when the launcher dies, but nothing that the command has started.
"""

import os
import signal
import struct
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NoReturn

from leasehold.cli.running.descendants import die_with_parent
from leasehold.errors import LeaseholdError

STARTED, FAILED, ENDED = range(3)
"""What a launcher tells: a process id, an error number, a wait status."""
_REPLY = struct.Struct("=iq")


class LauncherGone(LeaseholdError, code="LAUNCHER_GONE"):
    """The process that the command was a child of was killed."""


def tell(replies: int, kind: int, number: int) -> None:
    """Say what has become of a command, if anybody is left to hear it."""
    with suppress(BrokenPipeError):
        os.write(replies, _REPLY.pack(kind, number))


def hear(replies: int) -> tuple[int, int]:
    """Wait for what a launcher tells."""
    reply = os.read(replies, _REPLY.size)
    if not reply:
        raise LauncherGone(
            "a process of leasehold was killed; the command was ended, and what was held for it is free again"
        )
    kind, number = _REPLY.unpack(reply)
    return kind, number


def hear_of_start(replies: int) -> int:
    """Return the process id of a command; raise the OSError that kept it from being executed."""
    kind, number = hear(replies)
    if kind == FAILED:
        raise OSError(number, os.strerror(number))
    return number


def start(
    command: list[str],
    environment: Mapping[str, str],
    mask: Iterable[int],
    prepare: Callable[[], object] = lambda: None,
) -> int:
    """Start a command that dies with us; raise what keeps it from being executed.

    `prepare` is called in its process, just before it is executed.
    """
    us = os.getpid()
    failure, tell_failure = os.pipe()
    process_id = os.fork()
    if process_id == 0:
        _become(command, environment, mask, parent=us, prepare=prepare, failure=tell_failure)
    os.close(tell_failure)
    number = os.read(failure, 16)  # It ends, without a word, when the command is executed.
    os.close(failure)
    if number:
        os.waitpid(process_id, 0)
        raise OSError(int(number), os.strerror(int(number)))
    return process_id


def _become(
    command: list[str],
    environment: Mapping[str, str],
    mask: Iterable[int],
    *,
    parent: int,
    prepare: Callable[[], object],
    failure: int,
) -> NoReturn:
    try:
        die_with_parent(parent)
        for number in signal.valid_signals():
            # No handler of ours may run any more; SIGPIPE and SIGXFSZ are what Python has set to be ignored.
            if callable(signal.getsignal(number)) or number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        prepare()
        os.execvpe(command[0], command, environment)
    except OSError as error:
        os.write(failure, str(error.errno or 0).encode())
    finally:
        os._exit(1)

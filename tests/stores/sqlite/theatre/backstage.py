"""The process behind the stages: it has leasehold loaded, and forks a stage for whoever knocks.

Each stage is a process in a mount namespace of its own (for root), so that mounts are gone with it. It forks
actors, which share that namespace, passes on what they are told and say, mounts and kills. When its test
hangs up, all its actors are killed. All of it ends with the process that started it.
"""

import ctypes
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from typing import Any, TextIO

from tests.stores.sqlite.theatre.actor import act

_CLONE_NEWNS = 0x00020000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Let in whoever knocks, until nobody is left who could."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(sys.argv[1])
        door.listen()
        print("open", flush=True)
        while True:
            readable, _, _ = select.select([door, sys.stdin], [], [])
            if sys.stdin in readable:
                return
            visitor, _ = door.accept()
            with visitor:
                if os.fork() == 0:
                    door.close()
                    _play(visitor)


def _play(visitor: socket.socket) -> None:
    """Be a stage, in a process of its own."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    code = 1
    try:
        if os.geteuid() == 0:
            _check(_libc.unshare(_CLONE_NEWNS))
            _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
        with visitor.makefile("rw") as pipe:
            _Stage(pipe).direct()
        code = 0
    finally:
        os._exit(code)


class _Stage:
    def __init__(self, pipe: TextIO) -> None:
        self._pipe = pipe
        self._actors: dict[int, TextIO] = {}
        self._died: dict[int, int] = {}
        """Who is dead, and by which signal."""

    def direct(self) -> None:
        """Do what the test says, line by line; in the end send everybody home."""
        for line in self._pipe:
            order = json.loads(line)
            try:
                answer = {"value": getattr(self, order.pop("order"))(**order)}
            except OSError as error:
                answer = {"failed": str(error)}
            self._pipe.write(json.dumps(answer) + "\n")
            self._pipe.flush()
        for process_id in list(self._actors):
            self.kill(process_id, signal.SIGKILL)

    def engage(self, name: str) -> int:
        ours, theirs = socket.socketpair()
        process_id = os.fork()
        if process_id == 0:
            ours.close()
            for pipe in self._actors.values():
                pipe.close()
            try:
                act(name, theirs)
            finally:
                os._exit(0)
        theirs.close()
        self._actors[process_id] = ours.makefile("rw")
        ours.close()
        return process_id

    def tell(self, actor: int, step: str, details: dict[str, Any]) -> None:
        if actor in self._died:
            return
        with suppress(BrokenPipeError):  # It died; who listens for its answer hears of that.
            self._actors[actor].write(json.dumps({"step": step, "with": details}) + "\n")
            self._actors[actor].flush()

    def hear(self, actor: int) -> Any:
        line = ""
        if actor not in self._died:
            with suppress(ConnectionResetError):
                line = self._actors[actor].readline()
        return json.loads(line) if line else {"died": self._bury(actor)}

    def _bury(self, actor: int) -> int:
        """Return the signal that somebody died of."""
        if actor not in self._died:
            _, status = os.waitpid(actor, 0)
            self._died[actor] = -os.waitstatus_to_exitcode(status)
            with suppress(BrokenPipeError):
                self._actors.pop(actor).close()
        return self._died[actor]

    def kill(self, actor: int, number: int) -> None:
        os.kill(actor, number)
        self._bury(actor)

    def bind(self, source: str, target: str) -> None:
        _mount(source, target, None, _MS_BIND)

    def overlay(self, lower: str, upper: str, work: str, target: str) -> None:
        _mount("overlay", target, "overlay", 0, f"lowerdir={lower},upperdir={upper},workdir={work}")

    def unmount(self, target: str) -> None:
        _check(_libc.umount(target.encode()))


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    words = [None if word is None else word.encode() for word in (source, target, kind, options)]
    _check(_libc.mount(*words[:3], ctypes.c_ulong(flags), words[3]))


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    main()

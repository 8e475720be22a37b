"""Commands in processes of their own that need not start: forked from one that has imported everything.

A real executable takes a quarter of a second until it begins to do anything, and tests run hundreds. Here a
command takes a fork. It is a process with its own id, environment, working directory and streams, and it ends
as a program of Python ends, with everything that is done at exit.

What it does not show: that the executable starts, what is imported when, and what the interpreter takes from
its environment (`PYTHON…`, the locale). `/proc` tells the arguments and the environment of the server, not of
the command. Tests of these, of signals and of terminals run the real executable.

Run as a program, this module is the server: it is given the descriptor of a socket, by which it is handed a
connection for each command. It ends when nobody has the other end of that any more.
"""

import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, TextIO

_STREAMS = 3
_LATER = {"mcp": "leasehold.mcp.stdio", "serve": "leasehold.server.serving"}
"""Large, and not imported before somebody wants them."""
_LEFT_OUT = ("leasehold.mcp.", "leasehold.server.", "leasehold.__main__")
_END_SECONDS = 10.0


class Ended(NamedTuple):
    """What is left of a command."""

    code: int
    out: bytes
    err: bytes


class ForkServer:
    """Runs commands, from as many threads as there are."""

    def __init__(self) -> None:
        # Whole messages, so that threads need no lock; no address, so that nothing is left behind.
        self._door, servers_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with servers_end:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.cli.fork_server", str(servers_end.fileno())],
                cwd=Path(__file__).parents[2],
                stdin=subprocess.DEVNULL,
                pass_fds=[servers_end.fileno()],
            )
        self._owner = os.getpid()
        atexit.register(self.close)

    def run(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        given: bytes | None,
        seconds: float,
    ) -> Ended:
        """Run a command to its end; without input, it reads from `/dev/null`."""
        with (
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
            _input(given) as source,
        ):
            streams = [stream.fileno() for stream in (source, out, err)]
            process = self._fork(arguments, environment, folder, streams)
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            out.seek(0)
            err.seek(0)
            return Ended(code, out.read(), err.read())

    def start(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        stderr: IO[str] | None = None,
    ) -> "ForkedProcess":
        """Start a command, whose streams are pipes; `stderr` can be something else."""
        (in_end, given), (out, out_end), (err, err_end) = os.pipe(), os.pipe(), os.pipe()
        try:
            streams = [in_end, out_end, err_end if stderr is None else stderr.fileno()]
            process = self._fork(arguments, environment, folder, streams)
        finally:
            for descriptor in (in_end, out_end, err_end):
                os.close(descriptor)
        process.stdin = open(given, "w", encoding="utf-8")  # noqa: SIM115
        process.stdout, process.stderr = open(out, encoding="utf-8"), open(err, encoding="utf-8")  # noqa: SIM115
        return process

    def _fork(
        self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path, streams: list[int]
    ) -> "ForkedProcess":
        request = {"arguments": list(arguments), "environment": dict(environment), "folder": str(folder)}
        connection, servers_end = socket.socketpair()
        with servers_end:
            socket.send_fds(self._door, [b"command"], [servers_end.fileno(), *streams])
        connection.sendall(json.dumps(request).encode())
        connection.shutdown(socket.SHUT_WR)
        return ForkedProcess(arguments, connection)

    def close(self) -> None:
        """Let the server end, which a forked child of ours has no business to do."""
        if os.getpid() == self._owner:
            self._door.shutdown(socket.SHUT_RDWR)
            self._process.wait(_END_SECONDS)


class ForkedProcess:
    """What `subprocess.Popen` is, for a command that was forked."""

    stdin: TextIO
    stdout: TextIO
    stderr: TextIO

    def __init__(self, arguments: Sequence[str], connection: socket.socket) -> None:
        self.arguments = list(arguments)
        self._connection = connection
        self.pid = _number(connection)
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, once there is one."""
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.arguments, timeout or 0)
            self.returncode = _number(self._connection)
            self._connection.close()
        return self.returncode

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _input(given: bytes | None) -> Any:
    if given is None:
        return open(os.devnull, "rb")
    source = tempfile.TemporaryFile()  # noqa: SIM115
    source.write(given)
    source.seek(0)
    return source


def _number(connection: socket.socket) -> int:
    data = connection.recv(8, socket.MSG_WAITALL)
    assert len(data) == 8, "the server of commands has ended"
    return int.from_bytes(data, "big", signed=True)


class _Shared:
    server: ForkServer | None = None
    lock = threading.Lock()


def fork_server() -> ForkServer:
    """Return the server of this process."""
    with _Shared.lock:
        if _Shared.server is None:
            _Shared.server = ForkServer()
        return _Shared.server


class _Running(NamedTuple):
    process_id: int
    connection: socket.socket


def _import_everything() -> None:
    import leasehold

    for module in pkgutil.walk_packages(leasehold.__path__, "leasehold."):
        if not f"{module.name}.".startswith(_LEFT_OUT):
            importlib.import_module(module.name)
    # Nothing of this is ever garbage; looking for that would copy it in every process.
    gc.collect()
    gc.freeze()


@functools.cache
def _import_for(command: str) -> None:
    if command in _LATER:
        importlib.import_module(_LATER[command])
        gc.collect()
        gc.freeze()


def _serve(door: socket.socket) -> list[str]:
    """Fork a process for each command; in that process, return the arguments of its command."""
    running: dict[int, _Running] = {}
    while True:
        ready = select.select([door.fileno(), *running], [], [])[0]
        for descriptor in running.keys() & ready:
            _report(descriptor, running.pop(descriptor))
        if door.fileno() not in ready:
            continue
        message, descriptors, _, _ = socket.recv_fds(door, 16, 1 + _STREAMS)
        if not message:  # Whoever had the other end has closed it, or has ended.
            for left in running.values():
                os.kill(left.process_id, signal.SIGKILL)
            os._exit(0)
        connection, streams = socket.socket(fileno=descriptors[0]), descriptors[1:]
        request = _receive(connection)
        if request is not None:
            _import_for(next(iter(request["arguments"]), ""))
            process_id = os.fork()
            if process_id == 0:
                for one in (door, connection, *(each.connection for each in running.values())):
                    one.close()
                for descriptor in running:
                    os.close(descriptor)
                _become(request, streams)
                return list(request["arguments"])
            running[os.pidfd_open(process_id)] = _Running(process_id, connection)
            _send(connection, process_id)
        for stream in streams:
            os.close(stream)


def _report(descriptor: int, ended: _Running) -> None:
    """Tell who waits for a command how it has ended, as `subprocess` does."""
    _, status = os.waitpid(ended.process_id, 0)
    os.close(descriptor)
    _send(ended.connection, os.waitstatus_to_exitcode(status))
    ended.connection.close()


def _send(connection: socket.socket, number: int) -> None:
    with suppress(BrokenPipeError):  # Who asked does not wait any more.
        connection.sendall(number.to_bytes(8, "big", signed=True))


def _receive(connection: socket.socket) -> dict[str, Any] | None:
    """Return what is asked for, or None if whoever asked was interrupted."""
    message = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    try:
        request: dict[str, Any] = json.loads(message)
    except ValueError:
        connection.close()
        return None
    return request


def _become(request: dict[str, Any], streams: list[int]) -> None:
    """Let this process have what its command was given."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace", buffering=1)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])


def _run(arguments: list[str]) -> None:
    """Run a command, and end as Python does, without taking apart what the server has imported."""
    from leasehold.cli import main

    sys.argv = ["leasehold", *arguments]
    try:
        code = main()
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        code = end.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _import_everything()
    _run(_serve(socket.socket(fileno=int(sys.argv[1]))))

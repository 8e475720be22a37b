"""A user at a shell, with the real executable or a faster one.

`run` forks a command from a process that has imported everything: see `tests/cli/fork_server`. Whatever hangs
on how the program starts, on signals or on a terminal takes the real executable: by `execute`,
`start` and `terminal`.
"""

import json
import os
import pty
import queue
import secrets
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import leasehold
from tests.cli.fork_server import fork_server

EXECUTABLE = str(Path(sys.executable).with_name("leasehold"))
PATIENCE = 20.0
"""How long something may take that should happen at once; a busy machine needs a while."""

UNTIL_END_OF_INPUT = ("sh", "-c", "echo started; exec cat")
"""A command that says that it runs, and does so until its stdin ends or a signal comes."""


class Result(NamedTuple):
    """What a finished command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> Any:
        return json.loads(self.err)["error"]


class Running:
    """A command that runs, whose output is read as it comes."""

    def __init__(self, arguments: list[str], environment: dict[str, str], folder: Path) -> None:
        self.process = subprocess.Popen(
            arguments,
            env=environment,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def line(self) -> str:
        """Wait for the next line of output."""
        line = self._lines.get(timeout=PATIENCE)
        assert line is not None, f"the output ended: {self.process.stderr and self.process.stderr.read()}"
        return line

    def give(self, line: str) -> None:
        """Write a line to the command's input."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> Result:
        """Wait for the command to end by itself; return its exit code and what it had not said yet."""
        assert self.process.stderr is not None
        code = self.process.wait(PATIENCE)
        rest = list(iter(lambda: self._lines.get(timeout=PATIENCE), None))
        return Result(code, "\n".join(rest), self.process.stderr.read())

    def close(self) -> None:
        """Let go of a command that has ended, with all that it had started."""
        self.process.wait()
        self._reader.join()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            with suppress(BrokenPipeError):  # what was written to a command that did not live to read it
                stream.close()


class Terminal:
    """A terminal in which one command runs."""

    def __init__(self, command: tuple[str, ...], environment: dict[str, str]) -> None:
        self.keyboard, screen = pty.openpty()
        _let_nothing_be_flushed(screen)
        # The first terminal that the leader of a new session opens becomes that session's own. It says so
        # before we close our end: a terminal that nobody has open is gone.
        takes_terminal = 'exec <"$0" >"$0" 2>&1; echo ready; exec "$@"'
        self._process = subprocess.Popen(
            ["sh", "-c", takes_terminal, os.ttyname(screen), *command],
            env=environment,
            start_new_session=True,
        )
        self.process_id = self._process.pid
        self._shown = ""
        self.wait_for("ready")
        os.close(screen)

    def wait_for(self, text: str) -> None:
        while text not in self._shown:
            self._shown += os.read(self.keyboard, 4096).decode()

    def press(self, key: bytes) -> None:
        os.write(self.keyboard, key)

    def end(self) -> tuple[int, str]:
        """Wait for the command to end; return its exit code, and all that was shown."""
        try:
            while chunk := os.read(self.keyboard, 4096):
                self._shown += chunk.decode()
        except OSError:  # how a terminal says that nobody is there any more
            pass
        return self._process.wait(), self._shown

    def close(self) -> None:
        """Let go of a terminal whose command has ended."""
        self._process.wait()
        os.close(self.keyboard)


def _let_nothing_be_flushed(screen: int) -> None:
    """Keep Ctrl-C from wiping out what a command says in answer to it."""
    settings = termios.tcgetattr(screen)
    settings[3] |= termios.NOFLSH
    termios.tcsetattr(screen, termios.TCSANOW, settings)


class Shell:
    """A user in a folder of its own, with a store of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "leases"
        self.url = f"sqlite:///{self.store}"
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if name == "PYTHONPATH"
            or not name.startswith(("CLAUDE_", "LEASEHOLD_", "PYTHON", "NO_COLOR", "TERM"))
        }
        self.environment |= {"LEASEHOLD_URL": self.url, "TERM": "xterm"}
        self.environment[_MARK] = secrets.token_hex(8)
        self._is_sabotaged = False
        self._running: list[Running | Terminal] = []

    def run(self, *arguments: str, code: int = 0, given: str | None = None, **environment: str) -> Result:
        """Run a command to its end; fail unless its exit code is the expected one."""
        variables = self.environment | environment
        # What the interpreter takes from its environment, and what starts processes, needs the real thing.
        steers_python = self._is_sabotaged or not environment.keys().isdisjoint(_STEERS_PYTHON)
        if steers_python or not _STARTS_PROCESSES.isdisjoint(arguments):
            result = self.execute(*arguments, given=given, **environment)
        else:
            ended = fork_server().run(
                arguments,
                environment=variables,
                folder=self.folder,
                given=None if given is None else given.encode(),
                seconds=_RUN_SECONDS,
            )
            result = Result(ended.code, ended.out.decode(), ended.err.decode())
        assert result.code == code, result
        assert "Traceback" not in result.err, result
        return result

    def execute(self, *arguments: str, given: str | None = None, **environment: str) -> Result:
        """Run the real executable to its end, whatever comes of it."""
        finished = subprocess.run(
            [EXECUTABLE, *arguments],
            env=self.environment | environment,
            cwd=self.folder,
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            text=True,
            timeout=_RUN_SECONDS,
            check=False,
        )
        return Result(finished.returncode, finished.stdout, finished.stderr)

    def json(self, *arguments: str, code: int = 0) -> Any:
        """Run a command with --json; return what it printed."""
        return self.run(*arguments, "--json", code=code).json

    def start(self, *arguments: str, **environment: str) -> Running:
        """Start a command, and go on."""
        running = Running([EXECUTABLE, *arguments], self.environment | environment, self.folder)
        self._running.append(running)
        return running

    def terminal(self, *command: str) -> Terminal:
        """Start a command in the foreground of a terminal of its own."""
        terminal = Terminal(command, self.environment)
        self._running.append(terminal)
        return terminal

    @contextmanager
    def client(self) -> Iterator[leasehold.Client]:
        """Look at the store from outside."""
        with leasehold.connect(self.url, holder="test", durability="fast") as client:
            yield client

    def sabotage(self, code: str) -> None:
        """Let every Python process of this shell run some code before anything else."""
        self._is_sabotaged = True
        (self.folder / "sitecustomize.py").write_text(code)
        paths = [str(self.folder), *filter(None, [self.environment.get("PYTHONPATH")])]
        self.environment["PYTHONPATH"] = os.pathsep.join(paths)

    def renew_often(self) -> None:
        """Let keepers ask ten times a second for leases that last an hour: no busy machine loses those."""
        self.sabotage("import leasehold.engine.keeper as keeper; keeper._RENEWALS_PER_TTL = 36_000")

    def history(self, resource: str) -> list[str]:
        """Return what happened to a resource, as short words."""
        with self.client() as client:
            return [_word(entry) for entry in client.history(resource=resource)]

    def leases(self) -> list[leasehold.Lease]:
        """Return the leases that stand, without the help of the command line."""
        with self.client() as client:
            return [status.lease for status in client.list().statuses if status.is_live]

    def revoke_all(self) -> None:
        """Forcibly end every lease."""
        with self.client() as client:
            for status in client.list().statuses:
                client.revoke(status.lease.lease_id, reason="test")

    def wait_for_event(self, resource: str, word: str) -> leasehold.Entry:
        """Wait until something has happened to a resource; the test's own time limit is ours."""
        with self.client() as client:
            return next(entry for entry in client.watch(after=0, resource=resource) if _word(entry) == word)

    @contextmanager
    def stalled_writer(self, lock: str = "writer") -> Iterator[int]:
        """Let a process take the writer's lock and be stopped; yield its id, and end it afterwards."""
        process = subprocess.Popen(
            [sys.executable, "-c", _TAKE_LOCK, str(self.store / lock)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"locked\n"
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            try:
                yield process.pid
            finally:
                process.kill()

    def wait_until_queued(self, process_id: int) -> None:
        """Wait until a process waits for the writer's lock."""
        lock = f":{(self.store / 'writer').stat().st_ino} "
        until(
            lambda: any(
                "-> FLOCK" in line and f" {process_id} " in line and lock in line
                for line in Path("/proc/locks").read_text().splitlines()
            )
        )

    def _processes(self) -> list[int]:
        mark = f"{_MARK}={self.environment[_MARK]}".encode()
        found = []
        for folder in Path("/proc").iterdir():
            with suppress(OSError):  # it is no process, or has ended, or is another user's
                if folder.name.isdecimal() and mark in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
        return found

    def close(self) -> None:
        """End whatever was started here and still runs, wherever in the tree of processes it is by now."""
        while left := self._processes():
            for process_id in left:
                with suppress(ProcessLookupError):
                    os.kill(process_id, signal.SIGKILL)
        for running in self._running:
            running.close()


_RUN_SECONDS = 60
_STEERS_PYTHON = {"LANG", "LC_ALL", "PYTHONIOENCODING", "PYTHONPATH", "PYTHONPROFILEIMPORTTIME", "PYTHONUTF8"}
_STARTS_PROCESSES = {"consume", "demo", "mcp", "run", "serve"}
_MARK = "SHELL_OF_TEST"
"""A variable in the environment of every process that a shell starts, and of all that those start."""


def _word(entry: leasehold.Entry) -> str:
    return entry.event.type.removeprefix("lease.")


_TAKE_LOCK = """
import fcntl, sys
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that can only be seen by looking."""
    never = threading.Event()
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        never.wait(0.005)


def wait_until_gone(process_id: int) -> None:
    """Wait until a process has ended, whoever its parent is."""
    try:
        descriptor = os.pidfd_open(process_id)
    except ProcessLookupError:
        return
    try:
        ready, _, _ = select.select([descriptor], [], [], PATIENCE)
    finally:
        os.close(descriptor)
    assert ready, f"process {process_id} still runs"


def children_of(process_id: int) -> list[int]:
    """Return the process ids of the children of a process."""
    tasks = Path(f"/proc/{process_id}/task")
    return [int(word) for task in tasks.iterdir() for word in (task / "children").read_text().split()]

"""Other processes, spoken to line by line, and ended by their ids whatever happens."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from leasehold.stores.sqlite.write_queue import in_the_way
from tests.client.worlds import SIGNAL_SECONDS


class Python:
    """A process that runs a piece of Python, or a file of it."""

    def __init__(self, program: str | Path, *arguments: str) -> None:
        named = [str(program)] if isinstance(program, Path) else ["-c", program]
        self.process = subprocess.Popen(
            [sys.executable, "-u", *named, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def read_line(self) -> str:
        """The next line that the process prints."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], SIGNAL_SECONDS)
        assert ready, "the process said nothing"
        return self.process.stdout.readline().strip()

    def write_line(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def stop(self, store: Path) -> None:
        """Stop the process, and wait until it stands still; but not where all others would wait for it."""
        while True:
            self.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)
            if self.process.pid not in in_the_way(store):
                return
            self.process.send_signal(signal.SIGCONT)
            while self.process.pid in in_the_way(store):  # Stopped again at once, it would not get on.
                os.sched_yield()

    def ends(self) -> int:
        """Wait for the end, and return the exit code."""
        return self.process.wait(SIGNAL_SECONDS)

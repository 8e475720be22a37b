"""Starting workers, hearing from them, and making sure that none of them outlives the demo."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from leasehold.stores.sqlite.write_queue import in_the_way

_LOOK_EVERY_SECONDS = 0.001


class Heard(NamedTuple):
    """What a worker said."""

    worker: str
    event: str
    facts: dict[str, Any]


class NothingHeard(Exception):
    """The workers did not say what the demo was waiting for."""


class Actors:
    """The workers of one demo, by name."""

    def __init__(self, names: Collection[str], *, store: Path, shelf: Path, ttl: float) -> None:
        self._store = store
        self._heard: queue.SimpleQueue[Heard] = queue.SimpleQueue()
        self._kept: list[Heard] = []
        self._processes: dict[str, subprocess.Popen[str]] = {}
        for name in names:
            self._start(name, [f"sqlite:///{store}", name, str(shelf), str(ttl)])

    def _start(self, name: str, arguments: list[str]) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "leasehold.cli.demo_parts.worker", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,  # Ctrl-C is for us; we see to them.
        )
        self._processes[name] = process
        threading.Thread(target=self._listen, args=(name, process), daemon=True).start()

    def _listen(self, name: str, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            facts = json.loads(line)
            self._heard.put(Heard(name, facts.pop("event"), facts))

    def process_id(self, name: str) -> int:
        """Return a worker's process id."""
        return self._processes[name].pid

    def tell(self, name: str, word: str) -> None:
        """Tell a worker what to do."""
        stdin = self._processes[name].stdin
        assert stdin is not None
        stdin.write(f"{word}\n")
        stdin.flush()

    def wait_for(self, events: Collection[str], workers: Collection[str], *, timeout: float) -> Heard:
        """Return the next of these events that one of these workers tells."""
        deadline = time.monotonic() + timeout
        while True:
            for heard in self._kept:
                if heard.event in events and heard.worker in workers:
                    self._kept.remove(heard)
                    return heard
            try:
                self._kept.append(self._heard.get(timeout=max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                raise NothingHeard(f"none of {', '.join(workers)} said: {', '.join(events)}") from None

    def kill(self, name: str) -> None:
        """End a worker without any warning."""
        self._processes[name].kill()
        self._processes[name].wait()

    def stop(self, name: str) -> None:
        """Pause a worker, but not while it writes to the store, or is about to: all would wait for it."""
        process_id = self.process_id(name)
        while True:
            os.kill(process_id, signal.SIGSTOP)
            os.waitid(os.P_PID, process_id, os.WSTOPPED)
            if process_id not in in_the_way(self._store):
                return
            self.go_on(name)
            while process_id in in_the_way(self._store):  # Stopped again at once, it would not get on.
                time.sleep(_LOOK_EVERY_SECONDS)

    def go_on(self, name: str) -> None:
        """Let a paused worker go on."""
        os.kill(self.process_id(name), signal.SIGCONT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del kind, error, trace
        for process in self._processes.values():
            process.kill()  # ends a stopped process as well
        for process in self._processes.values():
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()

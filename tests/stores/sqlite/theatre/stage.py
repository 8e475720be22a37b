"""What a test sees of a stage: it engages actors there, and has them use a store step by step."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

_PATIENCE_SECONDS = 60.0
_ROOT = Path(__file__).parents[4]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a step."""

    value: Any = None
    error: str | None = None
    """The code of one of our errors."""
    message: str = ""
    crash: str | None = None
    """Any other exception."""
    died: int | None = None
    """The signal that killed the actor."""

    @property
    def went_well(self) -> bool:
        return self.error is None and self.crash is None and self.died is None


class Actor:
    """A process that uses a store when it is told to."""

    def __init__(self, stage: "Stage", name: str) -> None:
        self.name = name
        self.process_id: int = stage.order("engage", name=name)
        self._stage = stage

    def tries(self, step: str, **details: Any) -> Answer:
        """Take a step, whatever comes of it."""
        self.begins(step, **details)
        return self.ends()

    def does(self, step: str, **details: Any) -> Any:
        """Take a step that goes well; return what came of it."""
        answer = self.tries(step, **details)
        assert answer.went_well, (self.name, step, details, answer)
        return answer.value

    def begins(self, step: str, **details: Any) -> None:
        """Take a step, and do not wait for what comes of it."""
        self._stage.order("tell", actor=self.process_id, step=step, details=details)

    def ends(self) -> Answer:
        """Wait for what comes of the step that was begun."""
        return msgspec.convert(self._stage.order("hear", actor=self.process_id), Answer)

    def dies(self) -> None:
        """Be killed, as by kill -9."""
        self._stage.order("kill", actor=self.process_id, number=int(signal.SIGKILL))


class Stage:
    """A mount namespace with processes in it. It shares all files with the test, and no mounts."""

    def __init__(self, door: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_PATIENCE_SECONDS)
        self._socket.connect(str(door))
        self._pipe = self._socket.makefile("rw")

    def order(self, order: str, **details: Any) -> Any:
        """Have something done on the stage."""
        self._pipe.write(json.dumps({"order": order, **details}) + "\n")
        self._pipe.flush()
        line = self._pipe.readline()
        assert line, f"the stage broke down: {order} {details}"
        answer = json.loads(line)
        if "failed" in answer:
            raise OSError(answer["failed"])
        return answer["value"]

    def engage(self, name: str) -> Actor:
        """Start another process."""
        return Actor(self, name)

    def bind(self, source: Path, target: Path) -> None:
        """Let a file or folder appear at another path as well; for root only."""
        self.order("bind", source=str(source), target=str(target))

    def overlay(self, lower: Path, base: Path) -> Path:
        """Let a container see a folder of its image, and keep what it changes to itself; for root only."""
        upper, work, seen = base / "upper", base / "work", base / "seen"
        for folder in (upper, work, seen):
            folder.mkdir(parents=True)
        self.order("overlay", lower=str(lower), upper=str(upper), work=str(work), target=str(seen))
        return seen

    def close(self) -> None:
        """Send all actors home; mounts go with the last of them."""
        self._socket.shutdown(socket.SHUT_WR)
        self._pipe.read()
        self._pipe.close()
        self._socket.close()


@contextmanager
def theatre(door: Path) -> Iterator[Path]:
    """Run the process behind the stages; yield where to knock."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.stores.sqlite.theatre.backstage", str(door)],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield door


@contextmanager
def stage_of(door: Path) -> Iterator[Stage]:
    """Have a stage for a while."""
    stage = Stage(door)
    try:
        yield stage
    finally:
        stage.close()

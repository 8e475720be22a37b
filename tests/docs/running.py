"""Runs the blocks of one page in order, in one folder, and compares what they print with what is shown.

Python blocks of a page share their names, as cells of a notebook do. A block of commands is one shell: lines
that begin with `$ ` are run, the lines below each are what it prints. Each command has to succeed, unless the
next one is `echo $?`, which shows how it failed.

Where the output can not be the same twice (ids, times, tokens, names of users), anything of the same kind
will do; `…` stands for anything at all.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.docs.pages import Block

COMMAND_SECONDS = 60
_MARK = "\x1e"
# Marking the end of a command must not hide its status from an `echo $?` behind it.
_DEFINE_MARK = f"_mark() {{ local status=$?; printf '{_MARK}%s{_MARK}' $status; return $status; }}\n"

_VARYING = (
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z?"), "TIME"),
    (re.compile(r"\b(?=\d*[a-f])[0-9a-f]{16}\b"), "KEY"),
    (re.compile(r"\b\d{10,}\b"), "TOKEN"),
    (re.compile(r"\b[\w.-]+@[\w.-]+(?:/\d+)?"), "USER"),
    (re.compile(r"\bin \d[\d.]*[a-z]+(?:\d+[a-z]+)?\b"), "in DURATION"),
    (re.compile(r"\b\d+\.\d+ s\b"), "SECONDS s"),
    (re.compile(r"\b3\.\d+\.\d+(?:\.\d+)?\b"), "VERSION"),
)


class Page:
    """The state that the blocks of a page share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._printed: str | None = None

    def run(self, block: Block) -> None:
        """Do with a block what its page says."""
        if block.remark == "not run":
            return
        if block.remark == "file":
            (self._folder / block.argument).write_text(block.text)
        elif block.remark == "prints":
            assert self._printed is not None, f"{block.place} shows the output of nothing"
            assert_shown(self._printed, block.text, block.place)
        elif block.language == "python":
            self._printed = self._run_python(block)
        elif block.language == "console":
            self._run_console(block)
        elif block.language == "sh":
            status, output = self._shell(block.text)
            assert status == 0, f"{block.place} ended with {status}:\n{output}"

    def close(self) -> None:
        """Close what the blocks have left open."""
        for thing in self._names.values():
            close = getattr(thing, "close", None)
            if type(thing).__module__.partition(".")[0] in ("leasehold", "sqlite3") and close is not None:
                close()

    def _run_python(self, block: Block) -> str:
        output = io.StringIO()
        # The empty lines make a traceback point to the line of the page.
        code = compile("\n" * (block.line - 1) + block.text, str(block.page), "exec")
        with contextlib.redirect_stdout(output):
            exec(code, self._names)
        return output.getvalue()

    def _run_console(self, block: Block) -> None:
        session = list(commands_in(block))
        script = _DEFINE_MARK + "".join(f"{command}\n_mark\n" for command, _ in session)
        _, output = self._shell(script)
        pieces = output.split(_MARK)
        for index, (command, shown) in enumerate(session):
            printed, status = pieces[2 * index], pieces[2 * index + 1]
            place = f"{block.place}: {command}"
            assert_shown(printed, shown, place)
            asked = index + 1 < len(session) and session[index + 1][0] == "echo $?"
            assert asked or status == "0", f"{place} ended with {status}:\n{printed}"

    def _shell(self, script: str) -> tuple[int, str]:
        """Run a script where our programs are found first; return its status and all that it printed."""
        programs = Path(sys.executable).parent
        environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(self._folder),
            "LOGNAME": "ana",
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
        }
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self._folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        return done.returncode, done.stdout


def commands_in(block: Block) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block and what is shown below it."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not parts[0].strip(), f"{block.place} shows output before any command"
    for part in parts[1:]:
        lines = part.splitlines(keepends=True)
        length = 1
        while lines[length - 1].endswith("\\\n"):
            length += 1
        yield "".join(lines[:length]).strip(), "".join(lines[length:])


def assert_shown(printed: str, shown: str, place: str) -> None:
    """Fail unless a page shows what was printed."""
    pattern = ".*".join(re.escape(piece) for piece in _alike(shown).split("…"))
    matches = re.fullmatch(pattern, _alike(printed), flags=re.DOTALL)
    assert matches, f"{place} printed:\n{printed}\nand the page shows:\n{shown}"


def _alike(text: str) -> str:
    """Return a text with what varies put in one form, and spaces and empty lines made few."""
    for varying, kind in _VARYING:
        text = varying.sub(kind, text)
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)

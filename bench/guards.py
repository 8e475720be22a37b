"""How long do a guard and a hook take as fresh processes, beside an empty Python program?

They are measured in turns, with bytecode at hand, as it is where leasehold is installed. What a hook does
most of the time has a bound: it looks, and the agent has the file already, or somebody else has. The first
edit of a file claims it, which loads the whole registrar; that is shown.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import leasehold
from bench.measuring import Report

_SLICES = 15
_AT_MOST = 8.0


def run(report: Report, folder: Path) -> None:
    """Measure a guard and a hook in a repository of their own."""
    place = folder / "repository"
    place.mkdir()
    for words in (["init", "--quiet", "."], ["commit", "--quiet", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=place, check=True)
    with leasehold.connect(place / ".leasehold") as leases:
        for one in leases.files.lease(place / "held.py", agent="ada", ttl=3600).parts():
            one.detach()
    program = str(Path(sys.executable).with_name("leasehold"))
    hook = [program, "guard", "hook", "--mode", "block"]
    numbers = count()
    commands: dict[str, tuple[list[str], Callable[[], bytes]]] = {
        "an empty program": ([sys.executable, "-c", "pass"], lambda: b""),
        "guard PATH": ([program, "guard", "held.py", "--as", "ada"], lambda: b""),
        "guard PATH, refused": ([program, "guard", "held.py", "--as", "ben"], lambda: b""),
        "the hook, for a file that the agent has": (hook, lambda: _edit(place, "held.py", "ada")),
        "the hook, refused": (hook, lambda: _edit(place, "held.py", "ben")),
        "the hook, for a file that it claims": (hook, lambda: _edit(place, f"{next(numbers)}.py", "ada")),
    }
    cached = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    cached["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(_SLICES + 1):
        for name, (command, given) in commands.items():
            told = given()
            began = time.perf_counter()
            subprocess.run(command, cwd=place, env=cached, input=told, capture_output=True, check=False)
            if turn:  # The first writes the bytecode.
                times[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(values) * 1e3 for name, values in times.items()}
    empty = medians.pop("an empty program")
    report.show(f"an empty program takes {empty:.0f} ms")
    for name, milliseconds in medians.items():
        ratio = milliseconds / empty
        if "claims" in name:
            report.show(f"{name}: {milliseconds:.0f} ms, {ratio:.1f} empty programs")
        else:
            report.ratio(f"{name}, in empty programs", ratio, at_most=_AT_MOST)


def _edit(place: Path, name: str, agent: str) -> bytes:
    """Return what Claude Code tells its hook before a file is edited."""
    told = {
        "session_id": agent,
        "cwd": str(place),
        "hook_event_name": "PreToolUse",
        "tool_name": "Edit",
        "tool_input": {"file_path": str(place / name)},
    }
    return json.dumps(told).encode()

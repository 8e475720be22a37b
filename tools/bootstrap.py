"""Build the development environment in .venv from requirements.lock.

Promises: after success `.venv` holds the locked version of every dependency (each archive
checked against its hash) and leasehold itself as an editable install. Running it again repairs
or updates what is there. Needs only the standard library, because on a fresh Debian nothing else
is installed; there `python3 -m venv` itself is broken until python3-venv is, so this tries, in
order: venv as it should work, venv without pip driven by a pip found elsewhere, and apt (as
root, or where sudo asks no password).

Fails with one paragraph that names what to install. A half-made `.venv` is removed, so the
next run starts clean.
"""

# Without this an older Python dies on an annotation before it can be told that it is too old.
from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

OLDEST_PYTHON = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv"
ENVIRONMENT_PYTHON = ENVIRONMENT / "bin" / "python"
LOCK = ROOT / "requirements.lock"


def main() -> int:
    if sys.version_info < OLDEST_PYTHON:
        return fail(
            f"leasehold needs Python {dotted(OLDEST_PYTHON)} or newer; "
            f"{sys.executable} is {dotted(sys.version_info[:2])}.\n"
            "Name another one: make setup PYTHON=python3.12"
        )
    pip = working_pip() or create_environment()
    if pip is None:
        return fail(explain_missing_venv())
    say("Installing the locked dependencies")
    if not run([*pip, "install", "--quiet", "--require-hashes", "--requirement", str(LOCK)]):
        return fail("The dependencies could not be installed; pip says why above.")
    say("Installing leasehold (editable)")
    editable = ["--no-deps", "--no-build-isolation", "--editable", str(ROOT)]
    if not run([*pip, "install", "--quiet", *editable]):
        return fail("leasehold itself could not be installed; pip says why above.")
    return 0


def working_pip() -> list[str] | None:
    """The command that installs into `.venv`, or None when there is no usable `.venv`."""
    too_old = f"import sys; sys.exit(sys.version_info < {OLDEST_PYTHON})"
    if not ENVIRONMENT_PYTHON.exists() or not succeeds([str(ENVIRONMENT_PYTHON), "-c", too_old]):
        return None
    own = [str(ENVIRONMENT_PYTHON), "-m", "pip"]
    # The second form is for an environment that was made without a pip of its own.
    borrowed = [sys.executable, "-m", "pip", "--python", str(ENVIRONMENT_PYTHON)]
    for command in (own, borrowed):
        if succeeds([*command, "--version"]):
            return command
    return None


def create_environment() -> list[str] | None:
    """Try each way to make `.venv`; the pip command of the first that works."""
    say(f"Creating {ENVIRONMENT.name} with Python {dotted(sys.version_info[:3])}")
    if importlib.util.find_spec("venv") is not None:
        for flags in ([], ["--without-pip"]):
            pip = make_venv(flags)
            if pip is not None:
                return pip
    if install_venv_package():
        return make_venv([])
    return None


def make_venv(flags: Sequence[str]) -> list[str] | None:
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    # Output is dropped: on Debian the failure is expected, and its advice is ours below.
    pip = None
    if succeeds([sys.executable, "-m", "venv", *flags, str(ENVIRONMENT)]):
        pip = working_pip()
    if pip is None:
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    return pip


def install_venv_package() -> bool:
    """Ask apt for the missing package, where that needs no password and no guess."""
    privilege = privilege_prefix()
    if privilege is None or shutil.which("apt-get") is None or not is_system_python():
        return False
    say(f"Installing {venv_package()} with apt-get, because this Python has no working venv")
    apt = [*privilege, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet", "--quiet"]
    install = [*apt, "install", "--yes", "--no-install-recommends", venv_package()]
    return run([*apt, "update"]) and run(install)


def privilege_prefix() -> list[str] | None:
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") is not None and succeeds(["sudo", "-n", "true"]):
        return ["sudo", "-n"]
    return None


def is_system_python() -> bool:
    # A Python built by hand or by a version manager is not mended by a Debian package.
    return Path(sys.executable).resolve().parent == Path("/usr/bin")


def venv_package() -> str:
    return f"python{dotted(sys.version_info[:2])}-venv"


def explain_missing_venv() -> str:
    if is_system_python() and shutil.which("apt-get") is not None:
        remedy = f"Install the missing package, then try again:\n\n    sudo apt-get install {venv_package()}"
    else:
        remedy = (
            "Install the venv and ensurepip modules for it, or pip, or name another Python:\n\n"
            "    make setup PYTHON=python3.12"
        )
    return f"{sys.executable} cannot create virtual environments, and has no pip.\n{remedy}\n"


def succeeds(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def run(command: Sequence[str]) -> bool:
    return subprocess.run(command, check=False).returncode == 0


def dotted(version: Sequence[int]) -> str:
    return ".".join(str(part) for part in version)


def say(message: str) -> None:
    print(message, flush=True)


def fail(message: str) -> int:
    print(message, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

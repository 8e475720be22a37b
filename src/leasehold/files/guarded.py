"""A file that is written beside the one it will replace, and takes its place whole or not at all.

The place is taken by a rename, which other programs see happen at once, or never. The permissions of the
file that is replaced stay; a symbolic link stays, and what it leads to is replaced. What was written is on
the disk before the rename. Whoever gives up leaves nothing behind, unless the process is killed: then a file
whose name begins with a dot and ends with `.leasehold`.
"""

import os
import secrets
import shutil
import stat
from contextlib import suppress
from typing import IO, Any

from leasehold.errors import InvalidInput

_KINDS = frozenset("rwax")


def kind_of(mode: str) -> str:
    """Return whether a mode reads, writes, appends or makes a new file: r, w, a or x."""
    given: object = mode
    kind = mode.replace("b", "").replace("t", "") if isinstance(given, str) else ""
    if kind not in _KINDS or mode.count("b") + mode.count("t") > 1:
        raise InvalidInput(f"mode must be r, w, a or x, with b for bytes, not {mode!r}", field="mode")
    return kind


class Replacement:
    """What will replace a file."""

    def __init__(self, path: str, mode: str, options: dict[str, Any]) -> None:
        self.beside = ""
        self._handle = -1
        self._process_id = os.getpid()
        kind = kind_of(mode)
        self.target = os.path.realpath(path)
        self.is_new = kind == "x"
        if self.is_new and os.path.lexists(self.target):
            raise FileExistsError(f"{path} exists already")
        if kind == "r":
            self.file: IO[Any] = open(self.target, mode, **options)  # noqa: SIM115 - closed by its owner
            return
        if os.path.exists(self.target) and not os.path.isfile(self.target):
            raise InvalidInput(f"{path} is a folder or a device, and is not replaced", field="path")
        folder, name = os.path.split(self.target)
        permissions = _permissions(self.target)
        beside = os.path.join(folder, f".{name[:200]}.{secrets.token_hex(6)}.leasehold")
        try:
            self.beside = beside
            self._handle = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            if permissions is not None:
                os.fchmod(self._handle, permissions)
            if kind == "a" and permissions is not None:
                _copy(self.target, self._handle)
            # Closed by nobody but us: what `open` does with it on a wrong option depends on the option.
            self.file = open(self._handle, mode.replace("x", "w"), **options | {"closefd": False})  # noqa: SIM115
        except BaseException:
            self.discard()
            raise

    def __del__(self) -> None:
        """Clear away what nobody got hold of, because Ctrl-C came before."""
        if self._process_id == os.getpid():
            self.discard()

    def finish(self) -> None:
        """Write everything to the disk, without replacing anything yet."""
        if self.beside:
            self.file.flush()
            os.fsync(self.file.fileno())
        self.file.close()
        self._close_handle()

    def replace(self) -> None:
        """Take the place."""
        if not self.beside:
            return
        if self.is_new:
            os.link(self.beside, self.target)  # Unlike a rename, this fails if there is a file by now.
            os.unlink(self.beside)
        else:
            os.replace(self.beside, self.target)
        self.beside = ""
        folder = os.open(os.path.dirname(self.target), os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def discard(self) -> None:
        """Leave everything as it was."""
        try:
            if hasattr(self, "file"):
                self.file.close()  # Before its handle: it may write what it has kept back.
        finally:
            self._close_handle()
            beside, self.beside = self.beside, ""
            if beside:
                with suppress(FileNotFoundError):  # It was not made yet, or has taken its place already.
                    os.unlink(beside)

    def _close_handle(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def _permissions(path: str) -> int | None:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return None


def _copy(path: str, handle: int) -> None:
    with open(path, "rb") as source, open(handle, "wb", closefd=False) as target:
        shutil.copyfileobj(source, target)

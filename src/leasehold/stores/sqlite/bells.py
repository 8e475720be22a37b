"""Bells that other processes can ring: datagram sockets in a folder of their own in the store's.

Who may use the store may ring: the sockets have the permissions of the database, and are where it is,
so that containers which share the store share them as well. A waiter's address is the name of a socket in
that folder and nothing else; nobody can be made to send anything anywhere else.

The path of a socket may have 107 bytes. Where the folder's is too long for that, it is reached through its
descriptor in /proc.

How it fails: silently. Where no socket can be made there is no bell, and waiters ask by themselves. The
socket of a process that was killed is removed by whoever rings it in vain, or opens a bell later.
"""

import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from leasehold.engine.bells import Bell, by_bell, datagram_socket
from leasehold.stores.sqlite.files import BELLS, DATABASE

if TYPE_CHECKING:
    import socket

_PATH_BYTES = 107
_NAME_BYTES = 16
_FREE_BELLS_KEPT = 8
_OLD_SECONDS = 60.0
_LOOKED_AT = 64
"""How many sockets to look at in search of those whose process has died."""


class SocketBells:
    """The bells of one SQLite store."""

    def __init__(self, path: Path) -> None:
        self._database = path / DATABASE
        self._folder = f"{path / BELLS}"
        self._open: dict[str, Bell] = {}
        self._free: dict[Bell, None] = {}
        self._closed = False
        self._tidied = False
        self._descriptor: int | None = None
        self._sender: socket.socket | None = None

    def take(self) -> Bell | None:
        """Return a bell to listen at; None if no socket can be made here."""
        for bell in list(self._free):
            try:
                del self._free[bell]  # Not popped: Ctrl-C could come when nobody has it.
            except KeyError:  # Another thread was faster.
                continue
            return bell
        try:
            return self._make()
        except OSError:
            return None

    def give(self, bell: Bell) -> None:
        """Put a bell back. To do it twice is fine, also if the first time was interrupted."""
        if self._closed or len(self._free) >= _FREE_BELLS_KEPT or bell.name not in self._open:
            bell.dispose()
        else:
            self._free[bell] = None

    def ring(self, addresses: Iterable[str]) -> None:
        """Wake the waiters at these addresses."""
        if self._closed:
            return
        for name, datagram in by_bell(addresses).items():
            try:
                self._sending().sendto(datagram, self._path_of(name))
            except ConnectionRefusedError:
                self._remove(name)  # Nobody will ever listen there again: names are used once.
            except OSError:
                continue  # It is gone, or has heard enough to ask anyway.

    def close(self) -> None:
        """Close all bells of this process."""
        self._closed = True
        self._free = {}
        for bell in list(self._open.values()):
            bell.dispose()
        sender, self._sender = self._sender, None
        if sender is not None:
            sender.close()
        self._close_folder()

    def after_fork_in_child(self) -> None:
        """Have nothing to do with the parent's bells; they stay where they are."""
        for bell in self._open.values():
            bell.close()
        self._open = {}
        self._free = {}
        self._tidied = False

    def _make(self) -> Bell:
        mode = stat.S_IMODE(self._database.stat().st_mode) & 0o660
        self._make_folder(mode)
        if not self._tidied:
            self._tidied = True
            self._tidy()
        name = os.urandom(_NAME_BYTES // 2).hex()
        receiver = datagram_socket()
        try:
            receiver.bind(self._path_of(name))
            self._let_in(name, mode)
        except BaseException:
            receiver.close()
            self._remove(name)
            raise

        def dispose() -> None:
            if self._open.pop(name, None) is not None:  # As it is in a forked child: the parent listens on.
                self._remove(name)
            receiver.close()

        bell = self._open[name] = Bell(name, receiver, dispose)
        return bell

    def _let_in(self, name: str, mode: int) -> None:
        """Let those ring who may use the store; not through the name, which somebody may have made a link."""
        descriptor = os.open(f"{self._folder}/{name}", os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                os.chmod(f"/proc/self/fd/{descriptor}", mode)
        finally:
            os.close(descriptor)

    def _make_folder(self, mode: int) -> None:
        with suppress(FileExistsError):
            os.mkdir(self._folder, 0o700)
            os.chmod(self._folder, 0o2770 if mode & 0o060 else 0o700)

    def _path_of(self, name: str) -> str:
        path = f"{self._folder}/{name}"
        if len(os.fsencode(path)) <= _PATH_BYTES:
            return path
        if self._descriptor is None:
            self._descriptor = os.open(self._folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._descriptor}/{name}"

    def _close_folder(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _sending(self) -> "socket.socket":
        if self._sender is None:
            sender = datagram_socket()
            sender.setblocking(False)
            self._sender = sender
        return self._sender

    def _remove(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(f"{self._folder}/{name}")

    def _tidy(self) -> None:
        """Remove what processes that were killed have left; what is new may be about to be listened at."""
        old = time.time() - _OLD_SECONDS
        with os.scandir(self._folder) as entries:
            for entry, _ in zip(entries, range(_LOOKED_AT), strict=False):
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < old and self._is_dead(entry.name):
                        os.unlink(entry.path)

    def _is_dead(self, name: str) -> bool:
        with datagram_socket() as probe:
            probe.setblocking(False)
            try:
                probe.connect(self._path_of(name))
            except ConnectionRefusedError:
                return True
        return False

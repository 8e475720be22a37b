"""Waking those who wait in a queue: hints, nothing more.

Whoever waits listens at a bell, and says with its claim where: `bell.number`. Whoever has committed something
that concerns it rings there. Ringing never blocks and never raises, and nobody relies on it: a ring that is
lost costs the waiter the time until it asks again by itself, one too many costs it a question.

There are two ways to ring. A waiter that has won something, or had to leave, should ask at once. One whose
turn comes next, behind somebody who has won and has not confirmed it yet, need only ask when the claim window
is over; if it asked now, it would get into the way of the winner.

A bell belongs to one thread, or to one event loop, while it is taken. It is a datagram socket, so that a
thread can wait for it without another thread's help, and an event loop like for any other socket.
"""

import itertools
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

from leasehold.kernel.lease.ticket import NEXT_IN_LINE

if TYPE_CHECKING:
    import socket

_ADDRESS = re.compile(r"([0-9a-f]{16})\.([0-9]{1,19})(\??)", re.ASCII)
_DATAGRAM_BYTES = 4096
_FULL = 8
"""So many unheard rings may be all that there was room for: then everybody at this bell had better ask."""


def datagram_socket() -> "socket.socket":
    """Return a socket for rings."""
    import socket  # Only here: who never waits need not load it.

    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)


class Ring(IntEnum):
    """What a waiter has heard; the greater one counts."""

    SILENCE = 0
    NEXT_IN_LINE = 1
    ASK = 2


class Bell:
    """Where one thread, or the tasks of one event loop, are rung for."""

    def __init__(self, name: str, receiver: "socket.socket", dispose: Callable[[], None]) -> None:
        self.name = name
        self._receiver = receiver
        self.dispose = dispose
        """Close it, and forget it everywhere."""
        self._numbers = itertools.count(1)
        self._buffer = bytearray(_DATAGRAM_BYTES)
        receiver.setblocking(False)

    def fileno(self) -> int:
        """Return what to wait for until it can be read."""
        return self._receiver.fileno()

    def new_number(self) -> int:
        """Return a number that tells this waiter from all who listened here before."""
        return next(self._numbers)

    def heard(self) -> dict[int, Ring] | None:
        """Return what was rung for whom, without waiting; None: perhaps for anybody."""
        rings: dict[int, Ring] = {}
        count = 0
        while True:
            try:
                size = self._receiver.recv_into(self._buffer)
            except OSError:  # nothing more; or the store was closed
                return rings if count < _FULL else None
            count += 1
            for word in self._buffer[:size].split():
                number, ring = _read(bytes(word))
                rings[number] = max(ring, rings.get(number, Ring.SILENCE))

    def close(self) -> None:
        """Close the socket."""
        self._receiver.close()


def _read(word: bytes) -> tuple[int, Ring]:
    """Return what a word of a datagram says; anybody who may ring could have written anything."""
    mark = NEXT_IN_LINE.encode()
    digits = word.removesuffix(mark)
    number = int(digits) if digits.isdigit() and len(digits) < 20 else 0
    return number, Ring.NEXT_IN_LINE if word.endswith(mark) else Ring.ASK


class Bells(Protocol):
    """The bells of one store: those of this process to listen at, those of others to ring."""

    def take(self) -> Bell | None:
        """Return a bell to listen at; None where there can be none, and waiters have to ask by themselves."""
        ...

    def give(self, bell: Bell) -> None:
        """Put a bell back that nobody listens at any more."""
        ...

    def ring(self, addresses: Iterable[str]) -> None:
        """Wake the waiters at these addresses. Never blocks, never raises; may be in vain."""
        ...

    def close(self) -> None:
        """Close all bells of this process."""
        ...


def by_bell(addresses: Iterable[str]) -> dict[str, bytes]:
    """Return what to send to which bell, in the order asked; what is no address is left out."""
    found: dict[str, bytes] = {}
    for address in addresses:
        match = _ADDRESS.fullmatch(address)
        if match is None:
            continue
        name, number, mark = match.groups()
        word = f"{number}{mark}".encode()
        words = found.get(name)
        if words is None:
            found[name] = word
        elif len(words) + len(word) < _DATAGRAM_BYTES:
            found[name] = b"%s %s" % (words, word)
    return found


class LocalBells:
    """Bells that are rung from within this process only."""

    def __init__(self) -> None:
        self._open: dict[str, Bell] = {}
        self._senders: dict[str, socket.socket] = {}
        self._names = itertools.count(1)

    def take(self) -> Bell | None:
        """Return a bell to listen at."""
        import socket  # Only here: who never waits need not load it.

        receiver, sender = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        sender.setblocking(False)
        name = f"{next(self._names):016x}"
        self._senders[name] = sender

        def dispose() -> None:
            if self._open.pop(name, None) is not None:
                self._senders.pop(name).close()
                receiver.close()

        bell = self._open[name] = Bell(name, receiver, dispose)
        return bell

    def give(self, bell: Bell) -> None:
        """Close a bell: another one is made soon enough, and nobody may ever close a store in memory."""
        bell.dispose()

    def ring(self, addresses: Iterable[str]) -> None:
        """Wake the waiters at these addresses."""
        for name, datagram in by_bell(addresses).items():
            with suppress(KeyError, OSError):
                self._senders[name].send(datagram)

    def close(self) -> None:
        """Close all bells."""
        for bell in list(self._open.values()):
            bell.dispose()

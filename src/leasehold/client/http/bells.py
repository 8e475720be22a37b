"""Bells that a server rings, with one stream for all who wait here.

The client has one name, drawn at random, under which the server rings. The name of each bell begins with it
and ends with a number of the bell's own, which the server says with the waiter's.

The stream is opened with the first bell that is taken. When it breaks, it is opened again after a pause, and
then everybody who waits asks once: what was rung meanwhile was rung for nobody.

How it fails: silently. Without the stream, waiters ask by themselves, as often as the registrar says.
"""

import asyncio
import itertools
import random
import secrets
import socket
from collections.abc import Iterable
from contextlib import suppress

from leasehold.client.http.exchange import Exchange, NotAnswered
from leasehold.client.http.line import Line
from leasehold.engine.bells import Bell, Ring, by_bell

_SILENCE_SECONDS = 45.0
"""A server says something every fifteen seconds; one that does not is gone."""
_PAUSE_SECONDS = 0.1
_PAUSE_MAXIMUM_SECONDS = 5.0
_BELLS_MAXIMUM = 1 << 16
_EVERYBODY = b"*"
_NAME_BYTES = 6


class _RemoteBell(Bell):
    """A bell that can also be rung for everybody who listens at it."""

    def heard(self) -> dict[int, Ring] | None:
        """Return what was rung for whom, without waiting; None: perhaps for anybody."""
        rings = super().heard()
        return None if rings is None or 0 in rings else rings


class RemoteBells:
    """The bells of one remote desk."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._name = secrets.token_hex(_NAME_BYTES)
        self._numbers = itertools.count(1)
        self._open: dict[str, tuple[Bell, socket.socket]] = {}
        """By what tells a bell's name from the others'."""
        self._is_listening = False
        self._is_closed = False

    def take(self) -> Bell | None:
        """Return a bell to listen at."""
        own = f"{next(self._numbers) % _BELLS_MAXIMUM:04x}"
        if self._is_closed or own in self._open:
            return None
        receiver, sender = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        sender.setblocking(False)

        def dispose() -> None:
            if self._open.pop(own, None) is not None:
                sender.close()
                receiver.close()

        bell = _RemoteBell(f"{self._name}{own}", receiver, dispose)
        self._open[own] = bell, sender
        self._listen()
        return bell

    def give(self, bell: Bell) -> None:
        """Close a bell: another one is made soon enough."""
        bell.dispose()

    def ring(self, addresses: Iterable[str]) -> None:
        """Wake waiters of this process. Those of others hear of it from the server."""
        for name, words in by_bell(addresses).items():
            self._ring(name.removeprefix(self._name), words)

    def close(self) -> None:
        """Close all bells."""
        self._is_closed = True
        for bell, _ in list(self._open.values()):
            bell.dispose()

    def _listen(self) -> None:
        if self._is_listening:
            return
        try:
            self._is_listening = True
            self._line.run(self._follow)
        except BaseException:  # Ctrl-C: the next one listens.
            self._is_listening = False
            raise

    async def _follow(self, exchange: Exchange) -> None:
        """Pass on what the server rings, for as long as the desk is open."""
        pause, is_first = _PAUSE_SECONDS, True
        while True:
            delay = 0.0
            try:
                self._line.requests += 1
                async for line in exchange.lines(
                    f"/v1/desk/bells?name={self._name}", silence=_SILENCE_SECONDS
                ):
                    if not is_first:
                        self._pass_on(_EVERYBODY)
                    is_first, pause = True, _PAUSE_SECONDS
                    self._pass_on(line)
            except NotAnswered as trouble:
                delay = trouble.error.retry_after or 0.0
                if not trouble.is_passing:
                    self._pass_on(_EVERYBODY)  # Whoever waits has to hear that this client is not let in.
            is_first = False
            await asyncio.sleep(max(pause * random.uniform(0.5, 1.5), delay))
            pause = min(pause * 2, _PAUSE_MAXIMUM_SECONDS)

    def _pass_on(self, words: bytes) -> None:
        """Ring here; what a server says may be anything."""
        for word in words.split():
            if word == _EVERYBODY:
                for one in list(self._open):
                    self._ring(one, _EVERYBODY)
            else:
                own, _, waiter = word.partition(b".")
                self._ring(own.decode("latin-1"), waiter)

    def _ring(self, own: str, words: bytes) -> None:
        found = self._open.get(own)
        if found is not None:
            with suppress(OSError):  # It has heard enough to ask anyway, or was closed.
                found[1].send(words)

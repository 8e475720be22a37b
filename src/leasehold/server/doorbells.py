"""Bells for callers at the other end of a network.

A remote client has a name of its own choosing, and as many bells as it likes: an address is the name, the
number of a bell, and the number of a waiter there (`0123456789ab0001.17`). The server maps the name to one
bell of its own store, and puts that one's name into the claims of this caller, with both numbers in one. So a
remote caller can have nobody rung but itself: an address that it sends is never passed on as it is, and the
name means nothing in the hands of another access key.

A bell is there from the first claim that names it; its socket keeps what was rung until the client's stream
fetches it. One that nobody has named for a while, and no stream is open for, is closed.

How it fails: silently, as bells do. Where there can be none, the waiter asks by itself.
"""

import asyncio
import re
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator

from leasehold.engine.bells import Bell, Bells, Ring
from leasehold.kernel.lease.ticket import NEXT_IN_LINE
from leasehold.kernel.ledger.commands import Caller

_NAME = re.compile(r"[0-9a-f]{12}", re.ASCII)
_ADDRESS = re.compile(r"([0-9a-f]{12})([0-9a-f]{4})\.([0-9]{1,12})", re.ASCII)
_WAITERS_OF_A_BELL = 1 << 40
_BELLS_MAXIMUM = 4_096
_BELLS_OF_A_CALLER = 1_024
_FORGOTTEN_SECONDS = 60.0
_ANYBODY = "*"
"""Sent where so much was rung that nobody can tell for whom: everybody had better ask."""


class _Doorbell:
    """The bell of one remote client."""

    def __init__(self, bell: Bell) -> None:
        self.bell = bell
        self.named_at = time.monotonic()
        self.stream: object | None = None
        """Who passes on what is rung; a second stream under the same name takes over from the first."""
        self.is_doubted = False
        """Whether its stream has to show that it may still be open."""
        self.rung = asyncio.Event()


class Doorbells:
    """The bells of all remote clients of one server; for use in its event loop only."""

    def __init__(self, bells: Bells) -> None:
        self._bells = bells
        self._known: OrderedDict[tuple[str, str], _Doorbell] = OrderedDict()
        """By access key and name; the one that was named longest ago comes first."""
        self._of_caller: Counter[str] = Counter()
        self._is_stopped = False

    def address_of(self, caller: Caller, wake: str) -> str:
        """Return where to ring in the store for who wants to be woken at `wake`; empty: nowhere."""
        match = _ADDRESS.fullmatch(wake)
        if match is None or int(match[3]) >= _WAITERS_OF_A_BELL:
            return ""
        doorbell = self._find(caller, match[1])
        number = int(match[2], 16) * _WAITERS_OF_A_BELL + int(match[3])
        return "" if doorbell is None else f"{doorbell.bell.name}.{number}"

    async def rings(self, caller: Caller, name: str, every_seconds: float) -> AsyncGenerator[str]:
        """Yield what is rung for a client, as words; nothing at first, and again after each silence.

        Ends when the server stops, when another stream takes over, and where there is no bell.
        """
        doorbell = self._find(caller, name) if _NAME.fullmatch(name) else None
        if doorbell is None:
            return
        stream = doorbell.stream = object()
        doorbell.rung.set()  # So that a stream that was here before goes, and this one reads what there is.
        loop, descriptor = asyncio.get_running_loop(), doorbell.bell.fileno()
        loop.add_reader(descriptor, doorbell.rung.set)
        try:
            yield ""
            while not self._is_stopped and doorbell.stream is stream:
                try:
                    async with asyncio.timeout(every_seconds):
                        await doorbell.rung.wait()
                except TimeoutError:
                    yield ""
                    continue
                if doorbell.stream is stream:
                    doorbell.rung.clear()
                    is_doubted, doorbell.is_doubted = doorbell.is_doubted, False
                    words = _words(doorbell.bell.heard())
                    if words or is_doubted:
                        yield words
        finally:
            if doorbell.stream is stream:
                doorbell.stream = None
                doorbell.named_at = time.monotonic()
                loop.remove_reader(descriptor)
                if self._is_stopped:
                    self._forget((caller.access, name))

    def doubt(self) -> None:
        """Let every stream yield once: what its caller may do has perhaps changed."""
        for doorbell in self._known.values():
            doorbell.is_doubted = True
            doorbell.rung.set()

    def stop(self) -> None:
        """End all streams, and close all bells."""
        self._is_stopped = True
        for doorbell in self._known.values():
            doorbell.rung.set()
        for key in [key for key, doorbell in self._known.items() if doorbell.stream is None]:
            self._forget(key)

    def _find(self, caller: Caller, name: str) -> _Doorbell | None:
        key = (caller.access, name)
        doorbell = self._known.get(key)
        if doorbell is None:
            doorbell = self._make(key)
            if doorbell is None:
                return None
        doorbell.named_at = time.monotonic()
        self._known.move_to_end(key)
        return doorbell

    def _make(self, key: tuple[str, str]) -> _Doorbell | None:
        self._tidy()
        is_full = len(self._known) >= _BELLS_MAXIMUM or self._of_caller[key[0]] >= _BELLS_OF_A_CALLER
        bell = None if self._is_stopped or is_full else self._bells.take()
        if bell is None:
            return None
        self._of_caller[key[0]] += 1
        doorbell = self._known[key] = _Doorbell(bell)
        return doorbell

    def _tidy(self) -> None:
        """Close bells that nobody has named for a while."""
        since = time.monotonic() - _FORGOTTEN_SECONDS
        old = [key for key, one in self._known.items() if one.stream is None and one.named_at < since]
        for key in old:
            self._forget(key)

    def _forget(self, key: tuple[str, str]) -> None:
        """Close a bell for good: what is rung for its client must never reach the next one."""
        self._known.pop(key).bell.dispose()
        self._of_caller[key[0]] -= 1


def _words(rings: dict[int, Ring] | None) -> str:
    if rings is None:
        return _ANYBODY
    return " ".join(_word(number, ring) for number, ring in rings.items())


def _word(number: int, ring: Ring) -> str:
    bell, waiter = divmod(number, _WAITERS_OF_A_BELL)
    return f"{bell:04x}.{waiter}{NEXT_IN_LINE if ring is Ring.NEXT_IN_LINE else ''}"

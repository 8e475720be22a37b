"""How the tasks of an event loop sleep until they are woken; the counterpart of `blocking.listening`.

All tasks of a loop listen at one bell, which the loop watches like any other socket.
"""

import asyncio
import itertools
import os
import time

from leasehold.client.waits import DEAF_SECONDS, LOOK_EVERY_SECONDS
from leasehold.engine.bells import Bell, Bells, Ring
from leasehold.kernel.ledger.commands import Command


class AsyncListener:
    """One task that waits, and how to undo what it waits with."""

    def __init__(self, listeners: "AsyncListeners") -> None:
        self._listeners = listeners
        self._bench: _Bench | None = None
        self.process_id = os.getpid()
        self.undo: Command | None = None
        """Leaves the queue, or gives back what was won; None as long as there is nothing to undo."""
        self.number = 0
        self.address = ""
        """Where to ring for this waiter."""
        self._heard = Ring.SILENCE
        self._woken = asyncio.Event()

    def open(self) -> None:
        """Begin to listen, in the calling task."""
        bench = self._bench = self._listeners.bench()
        self.number = bench.new_number()
        self.address = "" if bench.bell is None else f"{bench.bell.name}.{self.number}"
        bench.listeners[self.number] = self

    def hear(self, ring: Ring) -> None:
        """Take in that somebody rang."""
        self._heard = max(self._heard, ring)
        self._woken.set()

    async def wait(self, seconds: float) -> Ring:
        """Sleep until somebody rings, or for so long; return what was heard."""
        if not self.address:
            await asyncio.sleep(min(seconds, DEAF_SECONDS))
            return Ring.ASK
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            pass
        self._woken.clear()
        heard, self._heard = self._heard, Ring.SILENCE
        return heard

    def close(self) -> None:
        """Stop listening. Closing twice is fine."""
        if self._bench is not None:
            self._bench.listeners.pop(self.number, None)


class _Bench:
    """Where the tasks of one event loop wait, at one bell."""

    def __init__(self, bells: Bells, loop: asyncio.AbstractEventLoop) -> None:
        self._bells = bells
        self.loop = loop
        self.bell: Bell | None = bells.take()
        self.new_number = itertools.count(1).__next__ if self.bell is None else self.bell.new_number
        self.listeners: dict[int, AsyncListener] = {}
        if self.bell is not None:
            loop.add_reader(self.bell.fileno(), self._pass_on)

    def _pass_on(self) -> None:
        if self.bell is None:
            return
        rings = self.bell.heard()
        if rings is None:
            rings = dict.fromkeys(self.listeners, Ring.ASK)
        for number, ring in rings.items():
            listener = self.listeners.get(number)
            if listener is not None:
                listener.hear(ring)

    def close(self) -> None:
        """Give the bell back. Called in the loop itself, or when that was closed."""
        bell, self.bell = self.bell, None
        if bell is not None:
            if not self.loop.is_closed():
                self.loop.remove_reader(bell.fileno())
            self._bells.give(bell)

    def close_from_anywhere(self) -> None:
        """Give the bell back, from whichever loop or thread."""
        try:
            self.loop.call_soon_threadsafe(self.close)
        except RuntimeError:  # the loop was closed
            self.close()


class AsyncListeners:
    """All tasks of one client that wait, by event loop: a client may outlive one loop after another."""

    def __init__(self, bells: Bells) -> None:
        self._bells = bells
        self._benches: dict[asyncio.AbstractEventLoop, _Bench] = {}
        self.waiting: dict[AsyncListener, None] = {}
        """Put in, and taken out, by who waits."""

    def new(self) -> AsyncListener:
        """Return what the calling task can listen with."""
        return AsyncListener(self)

    def bench(self) -> _Bench:
        """Return where the tasks of the running loop wait."""
        self._tidy()
        loop = asyncio.get_running_loop()
        bench = self._benches.get(loop)
        if bench is None:
            bench = self._benches[loop] = _Bench(self._bells, loop)
        return bench

    def _tidy(self) -> None:
        """Put the bells of loops back that were closed with tasks still waiting in them."""
        for loop in [loop for loop in self._benches if loop.is_closed()]:
            self._benches.pop(loop).close()

    def _everybody(self) -> list[AsyncListener]:
        """Return all who wait in loops that can still go on."""
        return [one for bench in list(self._benches.values()) for one in list(bench.listeners.values())]

    async def dismiss(self, patience_seconds: float) -> None:
        """Wake everybody who waits, return when they have left, or after a while, and let go of the bells."""
        deadline = time.monotonic() + patience_seconds
        self._bells.ring(listener.address for listener in self._everybody())
        while self._everybody() and time.monotonic() < deadline:
            self._tidy()
            await asyncio.sleep(LOOK_EVERY_SECONDS)
        benches, self._benches = self._benches, {}
        here = asyncio.get_running_loop()
        for bench in benches.values():
            if bench.loop is here:
                bench.close()
            else:
                bench.close_from_anywhere()

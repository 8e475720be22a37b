"""How a blocking client sleeps until it is woken; the counterpart of `aio.listening`.

The waiting thread itself listens at the bell: nobody has to wake it on somebody's behalf.
"""

import os
import select
import time

from leasehold.client.waits import DEAF_SECONDS, LOOK_EVERY_SECONDS
from leasehold.engine.bells import Bell, Bells, Ring
from leasehold.kernel.ledger.commands import Command


class Listener:
    """One thread that waits, and how to undo what it waits with."""

    def __init__(self, bells: Bells) -> None:
        self._bells = bells
        self.process_id = os.getpid()
        self.undo: Command | None = None
        """Leaves the queue, or gives back what was won; None as long as there is nothing to undo."""
        self._bell: Bell | None = None
        self._number = 0
        self.address = ""
        """Where to ring for this waiter."""

    def open(self) -> None:
        """Begin to listen, in the calling thread."""
        self._bell = self._bells.take()
        if self._bell is not None:
            self._number = self._bell.new_number()
            self.address = f"{self._bell.name}.{self._number}"

    def wait(self, seconds: float) -> Ring:
        """Sleep until somebody rings, or for so long; return what was heard."""
        if self._bell is None:
            time.sleep(min(seconds, DEAF_SECONDS))
            return Ring.ASK
        poll = select.poll()
        poll.register(self._bell.fileno(), select.POLLIN)
        if not poll.poll(seconds * 1000):
            return Ring.SILENCE
        rings = self._bell.heard()
        # What was rung for somebody who listened here before is no reason to ask, nor to sleep less.
        return Ring.ASK if rings is None else rings.get(self._number, Ring.NEXT_IN_LINE)

    def close(self) -> None:
        """Stop listening. Closing twice is fine, also if the first time was interrupted."""
        if self._bell is not None:
            self._bells.give(self._bell)
            self._bell = None


class Listeners:
    """All threads of one client that wait."""

    def __init__(self, bells: Bells) -> None:
        self._bells = bells
        self.waiting: dict[Listener, None] = {}
        """Put in, and taken out, by who waits."""

    def new(self) -> Listener:
        """Return what the calling thread can listen with."""
        return Listener(self._bells)

    def dismiss(self, patience_seconds: float) -> None:
        """Wake everybody who waits, and return when they have left, or after a while."""
        deadline = time.monotonic() + patience_seconds
        self._bells.ring(listener.address for listener in list(self.waiting))
        while self.waiting and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_SECONDS)

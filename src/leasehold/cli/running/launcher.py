"""The launcher of a `run`: the parent of the command, which ends it if nobody else is left to do so.

As long as front and keeper process do their work, it only starts the command and tells how that ended. It
steps in when both are gone, and when the lease can no longer be trusted and neither of the two has acted on
that, stopped as they may be. It is forked from the keeper process before that has any threads, so that it can
fork in its turn.

If the launcher itself is killed, the kernel kills the command. Not promised then, should front and keeper
process be killed with it: that what the command has started is ended as well, nor a command that has become
another user (set-user-ID), whom the kernel spares.
"""

import json
import os
import select
from collections.abc import Iterable, Mapping
from contextlib import suppress

from leasehold.cli.running import child
from leasehold.cli.running.board import Board
from leasehold.cli.running.descendants import adopt_orphans, end_descendants, reap
from leasehold.cli.running.wakeup import Wakeup

_LOOK_EVERY_SECONDS = 1.0
_PRECEDENCE_SECONDS = 2.5
"""How much later than the front, which looks once a second, we notice that it is time to step in."""


class Launcher:
    """The launcher, as the keeper process sees it. Its orders end when the keeper process does."""

    def __init__(self, command: list[str], board: Board, grace: float, mask: Iterable[int]) -> None:
        orders, self._orders = os.pipe()
        self.descriptor, replies = os.pipe()
        """Becomes readable when there is something to hear."""
        if os.fork() == 0:
            try:
                os.close(self._orders)
                os.close(self.descriptor)
                _Post(orders, replies, board, grace).stand(command, mask)
            finally:
                os._exit(0)
        os.close(orders)
        os.close(replies)

    def start(self, variables: Mapping[str, str]) -> int:
        """Have the command started with these variables in its environment; return its process id.

        Raises the OSError that kept it from being executed.
        """
        with suppress(BrokenPipeError):
            os.write(self._orders, f"{json.dumps(variables)}\n".encode())
        return child.hear_of_start(self.descriptor)

    def wait_status(self) -> int:
        """Return the wait status of the command, which has ended."""
        return child.hear(self.descriptor)[1]


class _Post:
    """Where the launcher stands, in its own process."""

    def __init__(self, orders: int, replies: int, board: Board, grace: float) -> None:
        self._orders = orders
        self._replies = replies
        self._board = board
        self._grace = grace
        self._wake_up = Wakeup()

    def stand(self, command: list[str], mask: Iterable[int]) -> None:
        """Wait for the order, start the command, and stay until it has ended."""
        adopt_orphans()
        with os.fdopen(self._orders, "rb", closefd=False) as orders:
            order = orders.readline()
        if not order:
            return
        try:
            process_id = child.start(command, os.environ | json.loads(order), mask)
        except OSError as error:
            child.tell(self._replies, child.FAILED, error.errno or 0)
            return
        child.tell(self._replies, child.STARTED, process_id)
        self._wait_for_end(process_id)

    def _wait_for_end(self, command: int) -> None:
        poll = select.poll()
        poll.register(self._wake_up.descriptor, select.POLLIN)
        alive = {self._orders, self._board.front_lives}
        for descriptor in alive:
            poll.register(descriptor, 0)  # Only its end counts.
        while True:
            ready = {descriptor for descriptor, _ in poll.poll(_LOOK_EVERY_SECONDS * 1000)}
            self._wake_up.clear()
            status = reap().get(command)
            if status is not None:
                child.tell(self._replies, child.ENDED, status)
                return
            for descriptor in ready & alive:
                poll.unregister(descriptor)
                alive.remove(descriptor)
            if not alive or self._board.is_overdue(by_seconds=_PRECEDENCE_SECONDS):
                end_descendants(os.getpid(), grace=self._grace)
                return

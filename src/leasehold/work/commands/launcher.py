"""The launcher of a consumer: the parent of its commands, which ends them if the consumer is killed.

The consumer has threads, so it cannot have the kernel kill its commands when it dies. The launcher is forked
from it before that, starts every command, and tells how each has ended.

Promised: if either of the two is killed, the commands that run are ended (TERM, grace, KILL), and everything
that commands have started with them. Not promised: that for both at once, where the kernel kills the commands
but nothing that they have started; nor for a consumer that is only stopped. What commands have left behind
goes on if the consumer ends, or is killed, while none of them runs.
"""

import json
import os
import select
import signal
import socket
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from leasehold.cli.running import child
from leasehold.cli.running.descendants import adopt_orphans, end_descendants, reap, send
from leasehold.cli.running.wakeup import Wakeup

_GRACE_SECONDS = 10.0
_ORDER_BYTES = 65_536


class Launcher:
    """The launcher, as the consumer sees it. Make it before there are threads; it ends with the consumer."""

    def __init__(self, command: list[str]) -> None:
        self._orders, orders = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            try:
                self._orders.close()
                _Post(orders, command).stand()
            finally:
                os._exit(0)
        orders.close()
        adopt_orphans()  # If the launcher dies, what is below it is ours to end.

    def start(self, variables: Mapping[str, str], payload: str) -> "Running":
        """Have the command started with these variables in its environment and a payload as its input.

        Raises the OSError that kept it from being executed. Can be called from any thread.
        """
        given = os.memfd_create("payload")
        hears, replies = os.pipe()
        try:
            os.write(given, os.fsencode(payload))
            os.lseek(given, 0, os.SEEK_SET)
            socket.send_fds(self._orders, [json.dumps(variables).encode()], [given, replies])
        except ConnectionError:
            pass  # It is gone, as we hear in a moment.
        finally:
            os.close(given)
            os.close(replies)
        return Running(hears)

    def end_all(self) -> None:
        """End what a launcher that was killed has left."""
        end_descendants(os.getpid(), grace=_GRACE_SECONDS)


class Running:
    """A command that runs, until the end of the block."""

    def __init__(self, replies: int) -> None:
        self._replies = replies
        try:
            self._process_id = child.hear_of_start(replies)
        except BaseException:
            os.close(replies)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._replies)

    def exit_code(self, *, patience: float) -> int | None:
        """Wait for the end; return the exit code, or None if it takes longer."""
        if not select.select([self._replies], [], [], patience)[0]:
            return None
        return os.waitstatus_to_exitcode(child.hear(self._replies)[1])

    def terminate(self) -> None:
        """Ask the command to end."""
        send(self._process_id, signal.SIGTERM)


class _Post:
    """Where the launcher stands, in its own process."""

    def __init__(self, orders: socket.socket, command: list[str]) -> None:
        self._orders = orders
        self._command = command
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._wake_up = Wakeup()
        self._replies: dict[int, int] = {}
        """Where to tell of the commands that run, by process id."""

    def stand(self) -> None:
        """Start what is ordered, until the consumer ends; end what is left of it then."""
        os.setsid()  # Ctrl-C is for the consumer, which waits for what it has begun.
        adopt_orphans()
        poll = select.poll()
        poll.register(self._wake_up.descriptor, select.POLLIN)
        poll.register(self._orders, select.POLLIN)
        while True:
            ready = dict(poll.poll())
            self._wake_up.clear()
            for process_id, status in reap().items():
                if process_id in self._replies:
                    self._tell(self._replies.pop(process_id), child.ENDED, status)
            if self._orders.fileno() in ready:
                order, descriptors, _, _ = socket.recv_fds(self._orders, _ORDER_BYTES, 2)
                if not order:
                    break
                self._obey(order, *descriptors)
        if self._replies:
            end_descendants(os.getpid(), grace=_GRACE_SECONDS)

    def _obey(self, order: bytes, given: int, replies: int) -> None:
        def prepare() -> None:
            os.setsid()
            os.dup2(given, 0)

        for descriptor in (given, replies):
            os.set_inheritable(descriptor, False)  # What another process has sent is inherited otherwise.
        try:
            process_id = child.start(self._command, os.environ | json.loads(order), self._mask, prepare)
        except OSError as error:
            self._tell(replies, child.FAILED, error.errno or 0)
        else:
            child.tell(replies, child.STARTED, process_id)
            self._replies[process_id] = replies
        finally:
            os.close(given)

    def _tell(self, replies: int, kind: int, number: int) -> None:
        child.tell(replies, kind, number)
        os.close(replies)

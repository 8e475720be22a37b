"""The keeper process of a `run`: it holds the lease, or several, and the command runs under them.

It does not listen to signals itself, but to the front, which asks with SIGTERM to give up as long as the
command was not started. Ctrl-Z does not stop it: a command that is suspended keeps its lease.
"""

import os
import select
import signal
import threading
from argparse import Namespace
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from leasehold.cli.asking import ask
from leasehold.cli.connecting import HOLDER_VARIABLE, connected, holder_of
from leasehold.cli.output import say_on_stderr
from leasehold.cli.running.board import ENDING_SECONDS, FRONT_VARIABLE, Board
from leasehold.cli.running.child import LauncherGone
from leasehold.cli.running.descendants import adopt_orphans, end_descendants, reap
from leasehold.cli.running.launcher import Launcher
from leasehold.cli.running.wakeup import Wakeup
from leasehold.errors import LeaseholdError, LeaseLost, StoreError

if TYPE_CHECKING:
    from leasehold.client.blocking.block import Block
    from leasehold.client.blocking.lease import HeldLease

EXIT_CANNOT_EXECUTE = 126
EXIT_NOT_FOUND = 127


class CommandNotStarted(LeaseholdError, code="COMMAND_NOT_STARTED", exit_code=EXIT_CANNOT_EXECUTE):
    """The command could not be started."""


class CommandNotFound(CommandNotStarted, code="COMMAND_NOT_FOUND", exit_code=EXIT_NOT_FOUND):
    """There is no such command."""


class FrontGone(LeaseholdError, code="FRONT_GONE"):
    """The process that the user had started was killed."""


def cover(arguments: Namespace, board: Board, command_mask: Iterable[int]) -> int:
    """Acquire, run the command, release; return the exit code."""
    interruptible = signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN
    adopt_orphans()
    front_gone = board.watch_front()
    launcher = Launcher(arguments.child, board, arguments.grace, command_mask)
    wake_up = Wakeup()
    holder = holder_of(arguments, suffix=f"/{os.getppid()}")
    if interruptible:
        signal.signal(signal.SIGTERM, _interrupt_once)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        _end_with(front_gone)
    with connected(arguments, create=True, holder=holder) as client:
        held = ask(client, arguments, on_lost=lambda error: wake_up.now())
        # Signals concern the command from now on. Blocking would not do: other threads have it unblocked.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        board.is_held = True
        with held:
            if select.select([front_gone], [], [], 0)[0]:
                raise FrontGone("leasehold was killed; the command was not started")
            ward = _Ward(held.parts(), board, arguments.grace, wake_up, launcher)
            try:
                # The front has to know the deadline first: we could be stopped right after the start.
                ward.report()
                board.command = _start(launcher, arguments.child[0], held.parts())
                code = ward.wait_for_end()
            except LauncherGone:
                # It may not have told of the command yet. The kernel has killed that, but nothing below it.
                ward.end()
                raise
            finally:
                board.forget_deadline()
                board.command = 0  # its process id may be somebody else's by now
            _release(held, completed=code == 0)
            return code


def _end_with(front_gone: int) -> None:
    """Stop waiting for the lease when the front is gone; once the command runs, the ward sees to that."""

    def watch() -> None:
        select.select([front_gone], [], [])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="leasehold-front", daemon=True).start()


def _interrupt_once(number: int, frame: FrameType | None) -> NoReturn:
    """Raise at the first request only: a second one must not disturb the tidying up."""
    del number, frame
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _start(launcher: Launcher, command: str, leases: "Sequence[HeldLease]") -> int:
    variables = {
        "LEASEHOLD_TOKEN": "\n".join(str(lease.token) for lease in leases),
        "LEASEHOLD_LEASE_ID": "\n".join(lease.lease_id for lease in leases),
        "LEASEHOLD_RESOURCE": "\n".join(lease.resource for lease in leases),
        HOLDER_VARIABLE: leases[0].holder,
        FRONT_VARIABLE: str(os.getppid()),
    }
    try:
        return launcher.start(variables)
    except FileNotFoundError:
        raise CommandNotFound(f"there is no command {command!r}; check its name and $PATH") from None
    except OSError as error:
        raise CommandNotStarted(
            f"{command!r} cannot be executed: {error.strerror}; check its permissions"
        ) from None


def _release(held: "Block", *, completed: bool) -> None:
    parts = held.parts()  # Before files are released: what became of each is to be told.
    try:
        held_to_the_end = held.release("completed" if completed else "aborted")
    except StoreError as error:
        # The command has done its work under the lease, and its exit code says more than this does.
        say_on_stderr(f"leasehold: {error}. What is held ends by itself")
        return
    if not held_to_the_end:
        from leasehold.client.held import ended_unnoticed

        raise ended_unnoticed(parts, "command")


class _Ward:
    """A command that runs under leases: it may go on for as long as each of them can be trusted."""

    def __init__(
        self,
        leases: "Sequence[HeldLease]",
        board: Board,
        grace: float,
        wake_up: Wakeup,
        launcher: Launcher,
    ) -> None:
        self._leases = leases
        self._board = board
        self._grace = grace
        self._wake_up = wake_up
        self._launcher = launcher
        # Often enough for the front to hear of each renewal well before the window of the one before closes.
        self._report_every = min(1.0, leases[0].lease.ttl_ns / 1e9 / 10)

    def wait_for_end(self) -> int:
        """Wait for the command to end, or end it; return its exit code, or raise what it was ended for."""
        poll = select.poll()
        poll.register(self._wake_up.descriptor, select.POLLIN)
        poll.register(self._board.front_lives, select.POLLIN)
        poll.register(self._launcher.descriptor, select.POLLIN)
        while True:
            self.report()
            ready = dict(poll.poll(self._report_every * 1000))
            self._wake_up.clear()
            reap()
            if self._board.front_lives in ready:
                self.end()
                raise FrontGone("leasehold was killed; the command was ended and the lease released")
            losses = [lease.lost.error for lease in self._leases if lease.lost.error is not None]
            if losses:
                self.end()
                raise LeaseLost(f"{losses[0]}. The command was ended", **losses[0].facts) from losses[0]
            if self._launcher.descriptor in ready:
                return self._exit_code()

    def report(self) -> None:
        """Tell the others how long all leases can be trusted."""
        remaining = min(lease.remaining for lease in self._leases)
        if remaining > 0:
            self._board.set_deadline(remaining)

    def _exit_code(self) -> int:
        code = os.waitstatus_to_exitcode(self._launcher.wait_status())
        return code if code >= 0 else 128 - code

    def end(self) -> None:
        """End the command and everything that it has started."""
        self._board.set_deadline(self._grace + ENDING_SECONDS)
        end_descendants(os.getpid(), grace=self._grace)

"""The front of a `run`: the process that the user started and sends signals to.

It has one thread and asks for signals with `sigtimedwait`, which tells where each came from. What the
terminal sent (Ctrl-C) has reached the command as well, because they share a process group; handing it on
would interrupt the command twice. What somebody sent with kill(2) has reached only us, and is handed on to
the command and to those of its descendants that Ctrl-C would reach. Where one run is the command of another,
what the outer one hands on has reached the command of the inner one as well.
"""

import os
import signal
from argparse import Namespace

from leasehold.cli.naming import displayed
from leasehold.cli.running.board import ENDING_SECONDS, FRONT_VARIABLE, Board
from leasehold.cli.running.descendants import adopt_orphans, descendants, end_descendants, send
from leasehold.errors import LeaseLost

_HANDED_ON = frozenset(
    {
        signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2,
        signal.SIGALRM, signal.SIGWINCH,
    }
)  # fmt: skip
WATCHED = _HANDED_ON | {signal.SIGCHLD, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}

_ENDS_A_START = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM})
_SENT_BY_KERNEL = 0x80
_LOOK_EVERY_SECONDS = 1.0
_LOOK_SOON_SECONDS = 0.05
_PRECEDENCE_SECONDS = 0.25
"""How much later than the keeper process we notice a closed window: it should have ended the command."""


def stand_in_front(keeper_process: int, board: Board, arguments: Namespace) -> int:
    """Hand on signals until the keeper process ends; return its exit code, or step in for it."""
    adopt_orphans()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})
    around = os.environ.get(FRONT_VARIABLE)
    early: list[int] = []
    """Signals that came before we knew of a command to hand them to."""
    while True:
        patience = _LOOK_SOON_SECONDS if early else _LOOK_EVERY_SECONDS
        received = signal.sigtimedwait(_HANDED_ON | {signal.SIGCHLD}, patience)
        command = board.command  # asked for once: it is 0 again when the command has ended
        if received is not None and received.si_signo != signal.SIGCHLD:
            if command:
                handed_on = str(received.si_pid) == around and _is_in_our_group(command)
                if received.si_code != _SENT_BY_KERNEL and not handed_on:
                    _hand_on(received.si_signo, command)
            elif board.is_held:  # it may run already, and whoever sent this may have seen that it does
                early.append(received.si_signo)
            elif received.si_signo in _ENDS_A_START:
                early.append(received.si_signo)
                send(keeper_process, signal.SIGTERM)
        if command:
            for number in early:
                _hand_on(number, command)
            early.clear()
        ended, status = os.waitpid(keeper_process, os.WNOHANG)
        if ended:
            code = _exit_code(status, board, arguments)
            return code if board.is_held or not early else 128 + early[0]
        if board.is_overdue(by_seconds=_PRECEDENCE_SECONDS):
            _step_in(keeper_process, board, arguments)


def _is_in_our_group(command: int) -> bool:
    try:
        return os.getpgid(command) == os.getpgrp()
    except ProcessLookupError:  # it has ended
        return True


def _hand_on(number: int, command: int) -> None:
    group = os.getpgrp()
    # Found before the first of them ends: the children of what has ended are somebody else's.
    below = [process.process_id for process in descendants(command) if process.group == group]
    for process_id in (command, *below):
        send(process_id, number)


def _exit_code(status: int, board: Board, arguments: Namespace) -> int:
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        _end(board, arguments)
        raise _lost(arguments, f"was ended by signal {-code}")
    return code


def _end(board: Board, arguments: Namespace, *, spare: int = 0) -> None:
    board.set_deadline(arguments.grace + ENDING_SECONDS)  # The launcher need not step in for us.
    end_descendants(os.getpid(), grace=arguments.grace, spare=spare)


def _step_in(keeper_process: int, board: Board, arguments: Namespace) -> None:
    _end(board, arguments, spare=keeper_process)
    send(keeper_process, signal.SIGKILL)
    raise _lost(arguments, "has stopped working")


def _lost(arguments: Namespace, what_happened: str) -> LeaseLost:
    first, *others = arguments.resources
    leases = "leases" if others else "lease"
    names = ", ".join(map(displayed, arguments.resources))
    return LeaseLost(
        f"the process that kept the {leases} on {names} {what_happened}, so the {leases} can no "
        "longer be trusted. The command was ended; run it again",
        **({} if others else {"resource": first}),
    )

"""run: a lease, or several, around another command.

Three processes work together, so that no death or pause of two lets the command run on without the lease:

- the *front* is the process the user started. It waits for signals, hands them on to the command, and
  takes over if the keeper process is stopped or dies.
- the *keeper process* holds and renews the lease, and ends the command when the lease is lost or the front is
  gone.
- the *launcher* is the command's parent, and ends the command when the other two cannot.

Promised: the command is started only with the lease; it is ended (TERM, grace, KILL, and everything it has
started with it) when the lease is lost, when the front, the keeper process or both are killed, or stopped for
longer than the lease can be trusted; the lease is released when the command has ended and the keeper process
lives. If all three are killed at once, the kernel kills the command, but nothing that it has started. A
command that is suspended with Ctrl-Z keeps its lease. Where several resources are named, all of this holds
for their leases together: none without the others, the first to be lost is the loss of all, and they can be
trusted for as long as the one whose window closes first.

Not promised: that a command whose lease was lost stops before somebody else gets the resource. That is what
the token is for.

- ``front``        signals, and stepping in
- ``covered``      the keeper process: the lease, and the command under it
- ``launcher``     starting the command, and ending it when nobody else can
- ``child``        a command as the child of a launcher; consumers of work have one, too
- ``board``        what they tell each other; ``wakeup``: what they wait for
- ``descendants``  finding and ending everything that a command has started
"""

import os
import signal
from argparse import Namespace

from leasehold.cli.asking import add_claim_options, refuse_nonsense
from leasehold.cli.connecting import add_holder_option
from leasehold.cli.durations import parse_duration
from leasehold.cli.output import Output
from leasehold.cli.parser import Commands


def add_commands(commands: Commands) -> None:
    """Add the command of this package."""
    parser = commands.add(
        "run",
        _run,
        "hold a lease, or several, while a command runs",
        details="""\
Starts COMMAND once the lease is held, renews the lease while it runs, and releases it afterwards. If the
lease is lost, COMMAND and all that it has started are ended: SIGTERM, then SIGKILL after the grace time.
Signals sent to leasehold go to COMMAND. In its environment COMMAND finds LEASEHOLD_TOKEN (pass it along
with every write), LEASEHOLD_LEASE_ID, LEASEHOLD_RESOURCE and LEASEHOLD_HOLDER. Unless named, the holder
is user@host/process: two runs compete, also those of one user. With --json only errors are JSON: stdout
is COMMAND's own.

Of several resources COMMAND runs under all, or is not started; if one of the leases is lost, it is ended.
LEASEHOLD_RESOURCE, LEASEHOLD_TOKEN and LEASEHOLD_LEASE_ID then have one line for each, in the order named.

examples:
  leasehold run report-42 -- make report
  leasehold run report-42 --wait 5m -- make report
  leasehold run src/ docs/ --wait 5m -- make both
  leasehold run camera-7 --ttl 30s --grace 2s -- ./record.sh --fast

exit codes: COMMAND's own, 128+n if signal n ended it · 75 not acquired · 76 lease lost ·
            126 COMMAND cannot be executed · 127 COMMAND not found · 1 error · 2 wrong usage""",
        has_child=True,
    )
    parser.usage = "leasehold run RESOURCE [RESOURCE ...] [options] -- COMMAND [ARGUMENT ...]"
    add_claim_options(parser)
    add_holder_option(parser, "who will hold it", otherwise="user@host/process")
    parser.add_argument(
        "--grace",
        type=parse_duration,
        default=10.0,
        metavar="TIME",
        help="how long COMMAND may take to end after SIGTERM when the lease is lost (default: 10s)",
    )


def _run(arguments: Namespace, out: Output) -> int:
    from leasehold.cli.running.board import Board
    from leasehold.cli.running.covered import cover
    from leasehold.cli.running.front import WATCHED, stand_in_front

    refuse_nonsense(arguments)
    board = Board()
    # Blocked before the fork: from here on signals wait to be asked for, in both processes and all threads.
    command_mask = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    keeper_process = os.fork()
    if keeper_process == 0:
        return cover(arguments, board, command_mask)
    return stand_in_front(keeper_process, board, arguments)

"""leasehold work consume: a command for each offset."""

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from io import TextIOWrapper
from typing import TYPE_CHECKING

from leasehold.cli.connecting import add_holder_option, connected, holder_of
from leasehold.cli.durations import parse_duration
from leasehold.cli.output import Output, counted
from leasehold.cli.parser import Group, is_number, positive_number
from leasehold.cli.running.child import LauncherGone
from leasehold.errors import EXIT_ERROR, EXIT_USAGE, InvalidInput, LimitExceeded
from leasehold.work.commands.arguments import add_retries

if TYPE_CHECKING:
    from leasehold.work.commands.launcher import Launcher
    from leasehold.work.consuming import Message, Progress

_LOOK_EVERY_SECONDS = 0.5
"""How often to look whether the offset that a command works on was lost."""


def add_commands(group: Group) -> None:
    """Add the command of this module."""
    parser = group.add(
        "consume",
        _consume,
        "run a command for each message on standard input",
        details="""\
Each line on standard input is a message: DOMAIN OFFSET [PAYLOAD]. COMMAND is run for each offset that was
acquired, in order within a domain, with the payload on its standard input. In its environment it finds
LEASEHOLD_WORK_DOMAIN, LEASEHOLD_WORK_OFFSET, LEASEHOLD_WORK_TOKEN (pass it along with every write) and
LEASEHOLD_WORK_ATTEMPT. An exit code other than 0 is a failed attempt, which is repeated after a while. A line
that is no message is shown and skipped, and the exit code says so in the end. Other consumers may have the
same domains. After SIGTERM no command is started; those that run are waited for. If
the consumer is killed, they are ended with all that they have started: SIGTERM, then SIGKILL after 10 s.

example:
  printf 'orders 41 first\\norders 42 second\\n' | leasehold work consume -- ./process.sh

exit codes: 0 everything was processed, or stopped by a signal · 1 error, or an offset was given up ·
            2 wrong usage, or a line was skipped · 127 COMMAND not found""",
        has_child=True,
    )
    parser.usage = "leasehold work consume [options] -- COMMAND [ARGUMENT ...]"
    parser.add_argument(
        "--concurrency",
        type=positive_number,
        default=4,
        metavar="N",
        help="in how many domains at a time (default: 4)",
    )
    parser.add_argument(
        "--ttl",
        type=parse_duration,
        default=60.0,
        metavar="TIME",
        help="after how long others may go on if this consumer dies (default: 60s)",
    )
    parser.add_argument(
        "--backoff",
        type=parse_duration,
        default=1.0,
        metavar="TIME",
        help="how long to wait before the second attempt, then twice as long each time (default: 1s)",
    )
    add_retries(parser, "3")
    add_holder_option(parser, "who works on it", otherwise="user@host/process")


def _consume(arguments: Namespace, out: Output) -> int:
    from leasehold.work.commands.launcher import Launcher
    from leasehold.work.consuming import Backoff

    command = arguments.child[0]
    _refuse_missing_command(command)
    launcher = Launcher(arguments.child)
    out = Output(arguments, sys.stderr)
    lines = _Lines(out)
    _tell_what_is_logged(out)
    holder = holder_of(arguments, f"/{os.getpid()}")
    with connected(arguments, create=True, holder=holder) as client:
        try:
            progress = client.work.consume(
                lambda message: _run(launcher, command, message),
                source=lines.messages(),
                concurrency=arguments.concurrency,
                backoff=Backoff(first=arguments.backoff),
                ttl=arguments.ttl,
                max_retries=arguments.max_retries,
            )
        except _Over as over:
            raise over.error from None
    _tell_progress(out, progress, lines.skipped)
    return EXIT_ERROR if progress.failed else EXIT_USAGE if lines.skipped else 0


def _refuse_missing_command(command: str) -> None:
    """Refuse what cannot be run for any message, before each has failed because of it and is given up."""
    import shutil

    from leasehold.cli.running.covered import CommandNotFound

    if shutil.which(command) is None:
        raise CommandNotFound(f"there is no command {command!r}; check its name, permissions and $PATH")


class _Lines:
    """What standard input says, line by line."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self.skipped = 0
        """How many lines were no messages."""

    def messages(self) -> Iterator[tuple[str, int, str]]:
        """Yield the messages; show what is none, and go on."""
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(errors="surrogateescape")  # A payload may be any bytes.
        for number, line in enumerate(sys.stdin, 1):
            text = line.rstrip("\n")
            try:
                yield _message(text)
            except (InvalidInput, LimitExceeded) as error:
                self._skip(number, text, str(error))

    def _skip(self, number: int, text: str, problem: str) -> None:
        self.skipped += 1
        if self._out.as_json:
            self._out.json({"skipped_line": number, "text": text, "problem": problem})
        else:
            self._out.line(f"leasehold: line {number} was skipped: {problem}: {text!r:.120}")


def _message(line: str) -> tuple[str, int, str]:
    from leasehold.work.consuming import checked_item

    domain, _, rest = line.partition(" ")
    offset, _, payload = rest.partition(" ")
    if not (domain and is_number(offset)):
        raise InvalidInput("it must be DOMAIN OFFSET [PAYLOAD]", field="line")
    return checked_item((domain, int(offset), payload))


def _tell_what_is_logged(out: Output) -> None:
    """Show what the consumer warns of, such as an offset that was given up, in a line each."""
    import logging

    class Teller(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if not out.as_json:
                out.line(f"leasehold: {record.getMessage()}")

    logger = logging.getLogger("leasehold.work")
    logger.addHandler(Teller(logging.WARNING))
    logger.propagate = False


class CommandFailed(Exception):
    """The command for an offset did not end well."""


class _Over(BaseException):
    """Ends the consumer, which gives back what it holds; an exception would be a failed attempt."""

    def __init__(self, error: LauncherGone) -> None:
        self.error = error


def _run(launcher: "Launcher", command: str, message: "Message") -> None:
    """Run the command for an offset; end it if the offset was lost."""
    variables = {
        "LEASEHOLD_WORK_DOMAIN": message.domain,
        "LEASEHOLD_WORK_OFFSET": str(message.offset),
        "LEASEHOLD_WORK_TOKEN": message.token,
        "LEASEHOLD_WORK_ATTEMPT": str(message.attempt),
    }
    try:
        with launcher.start(variables, message.payload) as running:
            while (code := running.exit_code(patience=_LOOK_EVERY_SECONDS)) is None:
                if message.is_lost:
                    running.terminate()
    except LauncherGone as error:
        launcher.end_all()
        raise _Over(error) from None
    if code != 0:
        raise CommandFailed(f"{command} ended with {code}")


def _tell_progress(out: Output, progress: "Progress", skipped_lines: int) -> None:
    from msgspec.structs import asdict

    if out.as_json:
        out.json(asdict(progress) | {"skipped_lines": skipped_lines})
    else:
        out.line(
            f"processed {progress.processed}, failed {progress.failed}, skipped {progress.skipped}, "
            f"retried {progress.retried}, pending {progress.pending}"
        )
        if skipped_lines:
            out.line(f"{counted(skipped_lines, 'line')} skipped: not DOMAIN OFFSET [PAYLOAD]")
        if progress.failed:
            out.line("`leasehold work failed DOMAIN` says which were given up, and why")

"""From arguments to an exit code.

Promised: an error is one line on stderr that says what happened and what to do next (one JSON object with
`--json`), never a traceback; and the exit code says which kind it was. A defect is an error too: it says
how to get the traceback.
"""

import os
import shlex
import signal
import sys
from argparse import Namespace
from collections.abc import Sequence
from io import TextIOWrapper
from types import FrameType

from leasehold.cli.naming import displayed
from leasehold.cli.output import Output, json_of, say_on_stderr
from leasehold.cli.parser import UsageError, parse
from leasehold.errors import (
    EXIT_USAGE,
    AlreadyHeld,
    Deadlock,
    LeaseholdError,
    LeaseNotFound,
    LimitExceeded,
    NotHolder,
)

DEBUG_VARIABLE = "LEASEHOLD_DEBUG"

_GIVEN = {
    "description",
    "domain",
    "holder",
    "lease_id",
    "lock_delay",
    "max_renewals",
    "max_retries",
    "metadata",
    "offset",
    "offsets",
    "operator",
    "reason",
    "request_id",
    "resource",
    "tenant",
    "token",
    "ttl",
    "workflow_id",
}
"""What somebody gives whose value can be past a limit: that is wrong usage, and not a count that is full."""


class Defect(LeaseholdError, code="DEFECT"):
    """Something happened that nobody thought of."""


class SystemTrouble(LeaseholdError, code="SYSTEM_ERROR"):
    """The operating system said no."""


class ExtraMissing(LeaseholdError, code="EXTRA_MISSING"):
    """A package is not installed that only this command needs."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    _open_closed_streams()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as it is under nohup
            signal.signal(number, _leave)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show ✔ shows ?
    try:
        code = _run(parse(given))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        _give_up_output()
        return 128 + signal.SIGPIPE
    except Exception as error:
        _give_up_output()
        return report(error, as_json="--json" in _own(given))


def _open_closed_streams() -> None:
    """Let standard streams lead nowhere that were closed, as by `>&-`.

    Otherwise the next file to be opened would get their number, and whatever a command says would go there.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _give_up_output() -> None:
    """Write what is left of our output, if that is possible; what is not must not raise again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _leave(number: int, frame: FrameType | None) -> None:
    """End as if interrupted, so that whatever was begun is put back in order."""
    del frame
    sys.exit(128 + number)


def _own(argv: list[str]) -> list[str]:
    """Return the arguments that are ours, without those of a child command."""
    return argv[: argv.index("--")] if "--" in argv else argv


def _run(arguments: Namespace) -> int:
    out = Output(arguments)
    if arguments.version:
        from leasehold import __version__

        out.line(json_of({"version": __version__}) if out.as_json else f"leasehold {__version__}")
        return 0
    code: int | None = arguments.runner(arguments, out)
    return code or 0


def report(error: Exception, *, as_json: bool) -> int:
    """Say on stderr what went wrong; return the exit code for it."""
    problem = problem_of(error)
    message = message_of(problem)
    is_usage = isinstance(problem, LimitExceeded) and problem.facts.get("field") in _GIVEN
    code = EXIT_USAGE if is_usage else problem.exit_code
    if as_json:
        from leasehold.shapes import error_shape

        say_on_stderr(json_of({"error": error_shape(problem, message) | {"exit_code": code}}))
    else:
        say_on_stderr(f"leasehold: {message}")
    return code


def problem_of(error: Exception) -> LeaseholdError:
    """Return an error as one of ours; whoever debugs is told on stderr where it comes from."""
    if os.environ.get(DEBUG_VARIABLE):
        import traceback

        for lines in traceback.format_exception(error):
            for line in lines.splitlines():
                say_on_stderr(line)
    if isinstance(error, LeaseholdError):
        return error
    if isinstance(error, OSError):
        what = f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
        return SystemTrouble(f"{what}; check that place and try again")
    return Defect(
        f"unexpected {type(error).__name__}: {error}; "
        f"this is a defect, please report it with the output of {DEBUG_VARIABLE}=1"
    )


def message_of(error: LeaseholdError) -> str:
    """Return an error's message, with the next step as this command line spells it."""
    match error:
        case AlreadyHeld():
            name = displayed(str(error.resource))
            return (
                f"{name} is already held by you ({error.holder}) as lease {error.lease_id}; "
                f"renew or release it, or replace it with `leasehold acquire {shlex.quote(name)} --adopt`"
            )
        case NotHolder():
            return (
                f"lease {error.lease_id} on {displayed(str(error.resource))} belongs to {error.holder}; "
                f"if that is you, say so with --holder {shlex.quote(str(error.holder))}"
            )
        case LeaseNotFound() if error.lease_id is not None:
            return (
                f"there is no lease {displayed(error.lease_id)}, and none stands on a resource of that name; "
                "`leasehold ls` lists what there is"
            )
        case Deadlock():
            message = str(error)
            for resource in set((error.cycle or ())[1::2]):  # Between those who wait for them.
                message = message.replace(f"because of {resource};", f"because of {displayed(resource)};")
            return message
        case UsageError():
            return " ".join(str(error).split())
        case _:
            return _told_here(error)


def _told_here(error: LeaseholdError) -> str:
    """Return an error's message, with the resource that it is about as it can be typed here."""
    message, resource = str(error), error.facts.get("resource")
    if not isinstance(resource, str):
        return message
    from leasehold.files.names import shown

    name, inside = displayed(resource), shown(resource)
    if message.startswith(f"{inside} "):  # As what `files` raises does.
        return f"{name}{message.removeprefix(inside)}"
    return message if name in message else message.replace(resource, name, 1)

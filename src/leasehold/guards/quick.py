"""`leasehold guard` as hooks call it, without the parser of the command line.

It understands paths, `--staged`, `--pushed`, `--as`, `--mode` and `hook`, and nothing else: whatever it
does not understand is left to the parser, which knows all of it, and says what is wrong.
"""

import gc
import os
import signal
import sys
from collections.abc import Sequence

_VALUES = {"--as": "holder", "--holder": "holder", "--mode": "mode", "--pushed": "pushed"}
_COMMANDS = ("install", "uninstall", "hook")


def main(given: Sequence[str]) -> int | None:
    """Run a command and end the process; return None, and do nothing, if it is not understood."""
    if given[:1] == ["hook"]:
        return _hook(given[1:])
    understood = _read(given)
    if understood is None:
        return None
    paths, options = understood
    if sum((bool(paths), "staged" in options, "pushed" in options)) != 1 or sys.stderr is None:
        return None
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C is no reason for a traceback.
    gc.disable()  # A process that lives for a tenth of a second has no garbage to collect.
    from leasehold.cli.connecting import holder_named, user_at_host
    from leasehold.cli.output import say_on_stderr
    from leasehold.errors import InvalidInput
    from leasehold.guards.asking import Asker
    from leasehold.guards.judging import Case, judge
    from leasehold.guards.verdict import BYPASS_VARIABLE
    from leasehold.stores.locate import tenant_of

    asker = Asker(holder_named(options.get("holder")) or user_at_host(), tenant_of(None))
    try:
        verdict, _ = judge(
            Case(paths, "staged" in options, options.get("pushed")), asker, os.environ.get(BYPASS_VARIABLE)
        )
    except InvalidInput:
        return None
    for line in verdict.lines():
        say_on_stderr(f"leasehold: {line}")
    # What Python does at the end of a program would take a part of the time that all this took.
    os._exit(verdict.exit_code(options.get("mode", "block")))


def _hook(given: Sequence[str]) -> int | None:
    """Answer Claude Code, if this is how it was told to ask."""
    from leasehold.guards.hook import CALLS
    from leasehold.guards.hook import main as answer

    if list(given) not in CALLS:
        return None
    gc.disable()
    answer(given)


def _read(given: Sequence[str]) -> tuple[list[str], dict[str, str]] | None:
    """Return paths and options; None if there is anything else."""
    paths: list[str] = []
    options: dict[str, str] = {}
    words = iter(given)
    for word in words:
        if word == "--staged":
            options["staged"] = word
        elif word in _VALUES:
            value = next(words, "")
            if not value or value.startswith("-") or _VALUES[word] in options:
                return None
            options[_VALUES[word]] = value
        elif not word or word.startswith("-"):
            return None
        else:
            paths.append(word)
    if (paths[:1] and paths[0] in _COMMANDS) or options.get("mode", "block") not in ("block", "warn"):
        return None
    return paths, options

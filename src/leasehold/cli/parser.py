"""The commands and their options.

Global options are understood before and after the command. What does not exist is answered with the
nearest thing that does.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from leasehold.cli.output import Output
from leasehold.errors import EXIT_USAGE, LeaseholdError

Runner = Callable[[argparse.Namespace, Output], int | None]
"""What a command does: it is handed where its answer goes, and returns its exit code; None: 0."""

_EXAMPLES = """\
examples:
  leasehold acquire report-42 --ttl 5m
  leasehold run report-42 --wait 5m -- make report
  leasehold ls
  leasehold show report-42
  leasehold demo

exit codes:
  0 done · 1 error · 2 wrong usage · 75 not acquired · 76 lease lost · 130 interrupted

which store:
  --store, else $LEASEHOLD_URL, else git's setting leasehold.url, else the nearest .leasehold/
  folder upwards, else a new one. http://host:port means a server; $LEASEHOLD_API_KEY is shown to it.
  A key that is bound to a tenant needs its name: --tenant, or $LEASEHOLD_TENANT.

`leasehold COMMAND --help` tells more about each command."""

_DIGITS_MAXIMUM = 19
"""Of the largest number that a store can keep."""

_SEE_ALSO = "Global options such as --store, --tenant and --json: see `leasehold --help`."


class UsageError(LeaseholdError, code="USAGE", exit_code=EXIT_USAGE):
    """The command line cannot be understood."""


class _Parser(argparse.ArgumentParser):
    usage_error: type[UsageError] = UsageError
    """What is raised if its arguments make no sense."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        raise self.usage_error(f"{message}; see `{self.prog} --help`")


GROUPS = {
    "hold": (
        "acquire", "run", "renew", "release", "upgrade", "downgrade", "transfer", "derive", "spend",
    ),
    "look": ("ls", "show", "queue", "top", "history", "watch"),
    "prove": ("certificate", "verify", "head", "keys"),
    "files and agents": ("guard", "guard install", "guard uninstall", "guard hook", "mcp"),
    "work and workflows": ("work", "workflow"),
    "operate": (
        "serve", "access", "config", "revoke", "sweep", "metrics", "doctor", "backup", "restore", "prune",
        "rebuild", "demo",
    ),
}  # fmt: skip
"""In which order `leasehold --help` lists the commands, and under which headings."""


class _MainParser(_Parser):
    """Lists the commands by what they are for."""

    def format_help(self) -> str:
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        summaries = {one.dest: one for action in self._actions for one in _summaries_of(action)}
        for title, names in GROUPS.items():
            formatter.start_section(title)
            formatter.add_arguments([summaries[name] for name in names])
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments([action for action in self._actions if action.option_strings])
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()


def _summaries_of(action: argparse.Action) -> Iterable[argparse.Action]:
    return action._get_subactions() if isinstance(action, argparse._SubParsersAction) else ()


class Commands:
    """Where the modules of the command groups put their commands."""

    def __init__(self) -> None:
        self.main = _MainParser(
            prog="leasehold",
            description="Who owns this right now, until when, and can they prove it?",
            epilog=_EXAMPLES,
        )
        _add_global_options(self.main, inside_command=False)
        self._parsers = self.main.add_subparsers(
            dest="command", metavar="COMMAND", title="commands", parser_class=_Parser
        )
        self.by_name: dict[str, _Parser] = {}
        """Commands of a group are named after it: `config get`."""
        self.groups: set[str] = set()
        self.with_child: set[str] = set()
        """Those that run another command, which is written after `--`."""

    def add(
        self,
        name: str,
        runner: Runner,
        summary: str,
        *,
        details: str,
        has_child: bool = False,
        usage_error: type[UsageError] = UsageError,
    ) -> argparse.ArgumentParser:
        """Add a command; `details` says more than the summary, with an example and exit codes.

        A name of two words is a command beside the one that its first word names: `guard install`.
        """
        parser = _add_parser(self._parsers, name, summary, details)
        parser.set_defaults(runner=runner)
        parser.usage_error = usage_error
        self.by_name[name] = parser
        if has_child:
            self.with_child.add(name)
        return parser

    def add_group(self, name: str, summary: str, *, details: str) -> "Group":
        """Add a name that commands of their own come under."""
        parser = _add_parser(self._parsers, name, summary, details)
        self.by_name[name] = parser
        self.groups.add(name)
        return Group(self, name, parser)


class Group:
    """Commands that come under one name."""

    def __init__(self, commands: Commands, name: str, parser: argparse.ArgumentParser) -> None:
        self._commands = commands
        self._name = name
        self._parsers = parser.add_subparsers(
            dest="action", metavar="COMMAND", title="commands", parser_class=_Parser
        )

    def add(
        self, name: str, runner: Runner, summary: str, *, details: str, has_child: bool = False
    ) -> argparse.ArgumentParser:
        """Add a command, as `Commands.add` does."""
        parser = _add_parser(self._parsers, name, summary, details)
        parser.set_defaults(runner=runner)
        title = f"{self._name} {name}"
        self._commands.by_name[title] = parser
        if has_child:
            self._commands.with_child.add(title)
        return parser


def _add_parser(
    parsers: "argparse._SubParsersAction[_Parser]", name: str, summary: str, details: str
) -> _Parser:
    parser = parsers.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"{details}\n\n{_SEE_ALSO}",
    )
    _add_global_options(parser, inside_command=True)
    return parser


def _add_global_options(parser: argparse.ArgumentParser, *, inside_command: bool) -> None:
    """Add the global options; inside a command they are understood, but neither shown nor given defaults."""

    def add(*names: str, help: str, default: object = None, **options: Any) -> None:
        if inside_command:
            parser.add_argument(*names, help=argparse.SUPPRESS, default=argparse.SUPPRESS, **options)
        else:
            parser.add_argument(*names, help=help, default=default, **options)

    add(
        "--store",
        metavar="URL",
        help="the store: a folder, sqlite:///path/to/folder, or http://host:port for a server",
    )
    add(
        "--tenant",
        metavar="NAME",
        help="whose leases (default: $LEASEHOLD_TENANT, else git's leasehold.tenant, else default)",
    )
    add("--json", action="store_true", default=False, help="JSON on stdout, and errors as JSON on stderr")
    add(
        "--durability",
        choices=("full", "fast"),
        default="full",
        help="fast may lose the last moments of history in a power cut, never repeats a token",
    )
    add("--group", action="store_true", default=False, help="let the folder's group use a store created here")
    add("--no-color", action="store_true", default=False, help="no colours (as does $NO_COLOR)")
    if not inside_command:
        parser.add_argument("--version", action="store_true", help="print the version and exit")


def is_number(text: str) -> bool:
    """Say whether a text is a whole number from 0 on, with no more digits than any number here can have."""
    return text.isdecimal() and len(text) <= _DIGITS_MAXIMUM


def positive_number(text: str) -> int:
    """Return the number that an option was given; refuse anything but 1, 2, 3 and so on."""
    if not is_number(text) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"invalid number {text!r:.80}; write 1, 2, 3 or more")
    return int(text)


def all_commands() -> Commands:
    """Return the parser of the whole command line."""
    from leasehold.access import commands as access
    from leasehold.cli import (
        certificates,
        changes,
        claims,
        delegating,
        demo,
        doctor,
        endings,
        events,
        ledger,
        looking,
        pruning,
        queues,
        running,
        serving,
        top,
        upkeep,
    )
    from leasehold.guards import commands as guards
    from leasehold.mcp import commands as mcp
    from leasehold.metrics import commands as metrics
    from leasehold.settings import commands as settings
    from leasehold.work import commands as work
    from leasehold.workflows import commands as workflows

    commands = Commands()
    holding = (claims, changes, delegating, endings, looking, queues, top, events)
    faces = (guards, mcp, work, workflows, settings, access, metrics)
    keeping = (upkeep, serving, doctor, demo)
    for group in (*holding, certificates, running, ledger, pruning, *faces, *keeping):
        group.add_commands(commands)
    return commands


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return what the arguments ask for; raise UsageError, with a suggestion, if they make no sense."""
    commands = all_commands()
    argv = _with_two_words_as_one(commands, argv)
    name = _command_name(commands, argv)
    child: list[str] | None = None
    takes_child = name in commands.with_child
    if takes_child and "--" in argv:
        # Everything after the first -- belongs to the child, options and further -- included.
        split = list(argv).index("--")
        argv, child = argv[:split], list(argv[split + 1 :])
    arguments, unknown = commands.main.parse_known_args(argv)
    if unknown:
        _refuse_unknown(commands, name, unknown, lacks_child=takes_child and child is None)
    if takes_child and not (child and child[0]):
        raise UsageError(_lacks_child(commands.by_name[name or ""]))
    arguments.child = child
    if not hasattr(arguments, "runner") and not arguments.version:
        parser = commands.main if name is None else commands.by_name[name]
        parser.print_help(sys.stderr)
        sys.exit(EXIT_USAGE)
    return arguments


def _with_two_words_as_one(commands: Commands, argv: Sequence[str]) -> list[str]:
    """Return the arguments with a command's name of two words, such as `guard install`, as one of them."""
    place = next((place for place, _ in _words(commands.main, argv)), len(argv))
    title = " ".join(argv[place : place + 2])
    is_one = title in commands.by_name and argv[place] not in commands.groups
    return [*argv[:place], title, *argv[place + 2 :]] if is_one else list(argv)


def _command_name(commands: Commands, argv: Sequence[str]) -> str | None:
    """Return the command that is meant; refuse one that there is not."""
    words = (word for _, word in _words(commands.main, argv))
    name = next(words, None)
    if name is not None and name not in commands.by_name:
        known = [one for one in commands.by_name if " " not in one]
        raise UsageError(_unknown("command", name, known, "leasehold"))
    if name not in commands.groups or (word := next(words, None)) is None:
        return name
    title = f"{name} {word}"
    if title not in commands.by_name:
        known = [one.partition(" ")[2] for one in commands.by_name if one.startswith(f"{name} ")]
        raise UsageError(_unknown("command", word, known, f"leasehold {name}"))
    return title


def _words(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the arguments that are neither a global option nor the value of one, each with its place."""
    takes_value = {name: action.nargs is None for action in parser._actions for name in action.option_strings}
    skip = False
    for place, argument in enumerate(argv):
        if skip:
            skip = False
        elif not argument.startswith("-"):
            yield place, argument
        elif (name := argument.partition("=")[0]) in takes_value:
            skip = takes_value[name] and "=" not in argument
        else:
            raise UsageError(
                f"{name!r} is not a global option; if a command has it, write it after the command. "
                "See `leasehold --help`"
            )


def _refuse_unknown(
    commands: Commands, name: str | None, unknown: Sequence[str], *, lacks_child: bool
) -> NoReturn:
    parser = commands.main if name is None else commands.by_name[name]
    argument = unknown[0].partition("=")[0]
    options = [option for action in parser._actions for option in action.option_strings]
    if lacks_child and not _near(argument, options):  # It is the child's argument, or an option of the child.
        raise UsageError(f"unexpected argument {argument!r}; {_lacks_child(parser)}")
    if argument.startswith("-"):
        raise parser.usage_error(_unknown("option", argument, options, parser.prog))
    several = [
        action.metavar for action in parser._actions if action.nargs == "+" and not action.option_strings
    ]
    step = f"; write every {several[0]} in one place, before or after the options" if several else ""
    parser.error(f"unexpected argument {argument!r}{step}")


def _lacks_child(parser: argparse.ArgumentParser) -> str:
    return f"name the command after --: {parser.usage}"


def _unknown(kind: str, given: str, known: Iterable[str], program: str) -> str:
    near = _near(given, known)
    step = f"did you mean {near[0]!r}? See" if near else "see"
    return f"there is no {kind} {given!r}; {step} `{program} --help`"


def _near(given: str, known: Iterable[str]) -> list[str]:
    return get_close_matches(given, list(known), n=1, cutoff=0.6)

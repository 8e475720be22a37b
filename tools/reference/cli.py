"""The command line page, from the parser that the commands are read with."""

import argparse

from leasehold.cli.parser import all_commands
from tools.reference.writing import code, name, page, table

_INTRODUCTION = """\
Global options are understood before and after the command. What `--json` prints is on the page
[JSON of the command line](json.md)."""


def cli_page() -> str:
    """Return the page: global options, then each command."""
    commands = all_commands()
    parts = [_INTRODUCTION, "## Global options", _options(commands.main), _details(commands.main)]
    parts += [_command(title, parser) for title, parser in commands.by_name.items()]
    return page("The command line", *parts)


def _command(title: str, parser: argparse.ArgumentParser) -> str:
    parts = [f"## leasehold {title}", parser.description or "", code(_usage(title, parser))]
    parts += [_options(parser), _details(parser)]
    return "\n\n".join(part for part in parts if part)


def _usage(title: str, parser: argparse.ArgumentParser) -> str:
    if parser.usage is not None:
        return parser.usage
    positionals = [_positional(action) for action in _shown(parser) if not action.option_strings]
    options = ["[options]"] if any(action.option_strings for action in _shown(parser)) else []
    return " ".join(["leasehold", title, *positionals, *options])


def _positional(action: argparse.Action) -> str:
    word = str(action.metavar or action.dest)
    return {"?": f"[{word}]", "*": f"[{word} ...]", "+": f"{word} [{word} ...]"}.get(str(action.nargs), word)


def _shown(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    hidden = (argparse._HelpAction, argparse._SubParsersAction)
    return [
        action
        for action in parser._actions
        if action.help != argparse.SUPPRESS and not isinstance(action, hidden)
    ]


def _options(parser: argparse.ArgumentParser) -> str:
    rows = [(_spelling(action), _help(action, parser)) for action in _shown(parser)]
    return table(["argument", "meaning"], rows) if rows else ""


def _spelling(action: argparse.Action) -> str:
    if not action.option_strings:
        return name(str(action.metavar or action.dest))
    value = ""
    if action.nargs != 0:
        choices = "" if action.choices is None else "|".join(str(choice) for choice in action.choices)
        value = f" {action.metavar or choices or action.dest.upper()}"
    return name(f"{', '.join(action.option_strings)}{value}")


def _help(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    return (action.help or "") % {**vars(action), "prog": parser.prog}


def _details(parser: argparse.ArgumentParser) -> str:
    """Return what stands below the options: prose, examples and exit codes, without the hint to look here."""
    parts = []
    for paragraph in (parser.epilog or "").split("\n\n"):
        head, _, rest = paragraph.partition("\n")
        if "see `leasehold --help`" in paragraph:
            continue
        if head in ("example:", "examples:"):
            parts.append(code("\n".join(line.removeprefix("  ") for line in rest.splitlines())))
        elif head.endswith(":") and rest:
            parts.append(f"{head.capitalize()} {' '.join(rest.split())}")
        elif head.startswith("exit codes:"):
            parts.append(f"Exit codes: {' '.join(paragraph.removeprefix('exit codes:').split())}")
        else:
            parts.append(paragraph)
    return "\n\n".join(parts)

"""serve: a registrar for programs on other machines."""

import os
import sys
from argparse import BooleanOptionalAction, Namespace
from pathlib import Path

from leasehold.cli.entry import ExtraMissing
from leasehold.cli.output import Output, json_of, say_on_stderr
from leasehold.cli.parser import Commands, UsageError
from leasehold.server.configuration import (
    CONFIG_VARIABLE,
    SETTINGS,
    Configured,
    configured,
    described,
    is_switch,
)


def add_commands(commands: Commands) -> None:
    """Add the command of this module."""
    parser = commands.add(
        "serve",
        _serve,
        "serve leases to programs on other machines, over HTTP",
        details="""\
Without any setting: the nearest store, on loopback, port 7017. The first start prints an access key with all
rights on a line of its own; it is never shown again. Make others with `leasehold access create`. Programs on
this machine can go on using the store directly.

Settings come from a TOML file, table [serve] (--config, or $LEASEHOLD_SERVE_CONFIG), from the environment
(LEASEHOLD_SERVE_PORT and so on), and from these options; what comes later counts more.

examples:
  leasehold serve
  leasehold serve --host 0.0.0.0 --tls-certificate chain.pem --tls-key key.pem
  leasehold serve --config /etc/leasehold.toml --show-config

exit codes: 0 stopped by a signal · 1 error · 2 wrong usage""",
    )
    parser.add_argument("--config", metavar="FILE", help="a TOML file with a table [serve]")
    parser.add_argument(
        "--show-config", action="store_true", help="print every setting, and where it is from"
    )
    for name in SETTINGS:
        if name == "store":
            continue  # a global option
        flag = f"--{name.replace('_', '-')}"
        if is_switch(name):
            parser.add_argument(flag, action=BooleanOptionalAction, help=described(name))
        else:
            parser.add_argument(flag, metavar=_METAVARS.get(name, "N"), help=described(name))


_METAVARS = {"host": "ADDRESS", "tls_certificate": "FILE", "tls_key": "FILE", "log_level": "LEVEL"}


def _serve(arguments: Namespace, out: Output) -> int:
    if arguments.durability != "full":
        raise UsageError(
            "a server does not serve with --durability fast: a power cut could take back what remote holders "
            "were granted; leave it out"
        )
    found = _configured(arguments)
    if arguments.show_config:
        _show(out, found)
        return 0
    try:
        from leasehold.server.serving import serve
    except ModuleNotFoundError as error:
        raise ExtraMissing(
            f"serve needs {error.name}, which is not installed; install leasehold with its extra `server`"
        ) from None

    def print_key(text: str) -> None:
        out.line(json_of({"access_key": text}) if out.as_json else text)
        say_on_stderr("leasehold: the line above is an access key with all rights. It is not shown again.")

    if not serve(found.values, group=arguments.group, print_key=print_key):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # The store is closed, and whoever is left would only be in the way of an orderly exit.
    return 0


def _configured(arguments: Namespace) -> Configured:
    named = arguments.config or os.environ.get(CONFIG_VARIABLE)
    flags = {name: getattr(arguments, name) for name in SETTINGS if getattr(arguments, name) is not None}
    return configured(Path(named) if named else None, os.environ, flags)


def _show(out: Output, found: Configured) -> None:
    from msgspec.structs import asdict

    values = asdict(found.values)
    if out.as_json:
        out.json({name: {"value": values[name], "from": found.origins[name]} for name in SETTINGS})
        return
    rows = [[name, _shown(values[name]), found.origins[name]] for name in SETTINGS]
    out.table(["SETTING", "VALUE", "FROM"], rows)


def _shown(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case _:
            return str(value) or "-"

"""Which store, or server, a command means, and who is asking."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from leasehold.errors import StoreUnusable

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from contextlib import AbstractContextManager

    from leasehold.client.blocking.client import Client

HOLDER_VARIABLE = "LEASEHOLD_HOLDER"
AGENT_VARIABLE = "LEASEHOLD_AGENT"
SESSION_VARIABLE = "CLAUDE_CODE_SESSION_ID"
"""What Claude Code calls a session, in the commands that an agent runs there."""

_CLOSE_PATIENCE_SECONDS = 1.0


@contextmanager
def connected(
    arguments: "Namespace", *, create: bool = False, as_is: bool = False, holder: str | None = None
) -> "Iterator[Client]":
    """Connect to the store that the arguments mean. Only commands that take leases create one."""
    from leasehold.client.connect import connect

    client = connect(
        arguments.store,
        tenant=arguments.tenant,
        holder=holder_of(arguments) if holder is None else holder,
        durability=arguments.durability,
        group=arguments.group,
        create=create,
        as_is=as_is,
    )
    try:
        refuse_memory(client.url)
        yield client
    except BaseException:
        # A writer that has stopped must not keep an interrupted user, or an error message, waiting as well.
        import threading

        closing = threading.Thread(target=client.close, daemon=True)
        closing.start()
        closing.join(_CLOSE_PATIENCE_SECONDS)
        raise
    client.close()


def tenant_named(arguments: "Namespace") -> str:
    """Return whose leases a command is about."""
    from leasehold.client.connect import tenant_for

    return tenant_for(arguments.store, arguments.tenant, None)


def refuse_memory(url: str) -> None:
    """Refuse a store that nobody else can see, and nobody after this command."""
    if url == "memory:":
        raise StoreUnusable(f"{url} is gone when this command ends; name a folder with --store")


def connected_as_operator(arguments: "Namespace") -> "AbstractContextManager[Client]":
    """Connect to the store as it is, for its upkeep: nothing is recorded for looking at it."""
    return connected(arguments, as_is=True, holder=user_at_host())


def add_holder_option(parser: "ArgumentParser", purpose: str, *, otherwise: str = "user@host") -> None:
    """Let the user say who is asking."""
    variables = f"${HOLDER_VARIABLE}, else ${AGENT_VARIABLE}, else ${SESSION_VARIABLE}"
    default = f"default: {variables}, else {otherwise}"
    parser.add_argument("--holder", "--as", dest="holder", metavar="NAME", help=f"{purpose} ({default})")


def holder_of(arguments: "Namespace", suffix: str = "") -> str:
    """Return the name to hold leases under: one that a later command of the same user gives as well.

    `suffix` tells apart those who gave no name.
    """
    named = holder_named(getattr(arguments, "holder", None))
    return f"{user_at_host()}{suffix}" if named is None else named


def holder_named(given: str | None) -> str | None:
    """Return the name that somebody has given, or the environment; None if nobody has."""
    if given is not None:
        return given  # Even an empty one, which is refused: the variable that it came from was not set.
    variables = (HOLDER_VARIABLE, AGENT_VARIABLE, SESSION_VARIABLE)
    return next((name for variable in variables if (name := os.environ.get(variable))), None)


def user_at_host() -> str:
    """Return who is logged in where."""
    import getpass

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as containers have them
        user = f"uid-{os.getuid()}"
    return f"{user}@{os.uname().nodename[:60]}"

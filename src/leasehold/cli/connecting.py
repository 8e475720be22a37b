"""Which store, or server, a command means, and who is asking."""

import os
import socket
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from leasehold.errors import StoreUnusable

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from leasehold.client.blocking.client import Client

HOLDER_VARIABLE = "LEASEHOLD_HOLDER"
AGENT_VARIABLE = "LEASEHOLD_AGENT"

_CLOSE_PATIENCE_SECONDS = 1.0


@contextmanager
def connected(
    arguments: Namespace, *, create: bool = False, as_is: bool = False, holder: str | None = None
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
        closing = threading.Thread(target=client.close, daemon=True)
        closing.start()
        closing.join(_CLOSE_PATIENCE_SECONDS)
        raise
    client.close()


def refuse_memory(url: str) -> None:
    """Refuse a store that nobody else can see, and nobody after this command."""
    if url == "memory:":
        raise StoreUnusable(f"{url} is gone when this command ends; name a folder with --store")


def connected_as_operator(arguments: Namespace) -> "AbstractContextManager[Client]":
    """Connect to the store as it is, for its upkeep: nothing is recorded for looking at it."""
    return connected(arguments, as_is=True, holder=user_at_host())


def add_holder_option(parser: ArgumentParser, purpose: str, *, otherwise: str = "user@host") -> None:
    """Let the user say who is asking."""
    default = f"default: ${HOLDER_VARIABLE}, else ${AGENT_VARIABLE}, else {otherwise}"
    parser.add_argument("--holder", "--as", dest="holder", metavar="NAME", help=f"{purpose} ({default})")


def holder_of(arguments: Namespace, suffix: str = "") -> str:
    """Return the name to hold leases under: one that a later command of the same user gives as well.

    `suffix` tells apart those who gave no name.
    """
    given: str | None = getattr(arguments, "holder", None)
    if given is not None:
        return given  # Even an empty one, which is refused: the variable that it came from was not set.
    named = os.environ.get(HOLDER_VARIABLE) or os.environ.get(AGENT_VARIABLE)
    return named or f"{user_at_host()}{suffix}"


def user_at_host() -> str:
    """Return who is logged in where."""
    import getpass

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as containers have them
        user = f"uid-{os.getuid()}"
    return f"{user}@{socket.gethostname()[:60]}"

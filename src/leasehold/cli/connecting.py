"""Which store a command means, and who is asking."""

import os
import socket
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from leasehold.errors import StoreUnusable

if TYPE_CHECKING:
    from leasehold.client.sync_client import Client
    from leasehold.stores.sqlite import SqliteStore

HOLDER_VARIABLE = "LEASEHOLD_HOLDER"

_CLOSE_PATIENCE_SECONDS = 1.0


@contextmanager
def connected(arguments: Namespace, *, create: bool = False, holder: str | None = None) -> "Iterator[Client]":
    """Connect to the store that the arguments mean. Only commands that take leases create one."""
    from leasehold.client.connect import connect

    client = connect(
        store_path(arguments),
        tenant=arguments.tenant,
        holder=holder_of(arguments) if holder is None else holder,
        durability=arguments.durability,
        group=arguments.group,
        create=create,
    )
    try:
        yield client
    except BaseException:
        # A writer that has stopped must not keep an interrupted user, or an error message, waiting as well.
        closing = threading.Thread(target=client.close, daemon=True)
        closing.start()
        closing.join(_CLOSE_PATIENCE_SECONDS)
        raise
    client.close()


@contextmanager
def opened(arguments: Namespace) -> "Iterator[SqliteStore]":
    """Open the store that the arguments mean, as it is: nothing is recorded for looking at it."""
    from leasehold.registry import FAMILIES
    from leasehold.stores.sqlite import SqliteStore

    store = SqliteStore(
        store_path(arguments), durability=arguments.durability, create=False, families=FAMILIES
    )
    try:
        yield store
    finally:
        store.close()


def store_path(arguments: Namespace) -> Path:
    """Return the file of the store that the arguments mean, without opening it."""
    from leasehold.stores.locate import locate, sqlite_path

    address = locate(arguments.store)
    path = sqlite_path(address)
    if path is None:
        raise StoreUnusable(f"{address} is gone when this command ends; name a file with --store")
    return path.absolute()


def add_holder_option(parser: ArgumentParser, purpose: str, *, otherwise: str = "user@host") -> None:
    """Let the user say who is asking."""
    default = f"default: ${HOLDER_VARIABLE}, else {otherwise}"
    parser.add_argument("--holder", metavar="NAME", help=f"{purpose} ({default})")


def holder_of(arguments: Namespace, suffix: str = "") -> str:
    """Return the name to hold leases under: one that a later command of the same user gives as well.

    `suffix` tells apart those who gave no name.
    """
    given: str | None = getattr(arguments, "holder", None)
    if given is not None:
        return given  # Even an empty one, which is refused: the variable that it came from was not set.
    return os.environ.get(HOLDER_VARIABLE) or f"{user_at_host()}{suffix}"


def user_at_host() -> str:
    """Return who is logged in where."""
    import getpass

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as containers have them
        user = f"uid-{os.getuid()}"
    return f"{user}@{socket.gethostname()[:60]}"

"""What somebody at a terminal is told while a command waits for a lease: once, and not at once."""

import sys
import threading
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from leasehold.cli.naming import displayed, holders_of
from leasehold.cli.output import say_on_stderr
from leasehold.errors import LeaseholdError

if TYPE_CHECKING:
    from leasehold.client.blocking.client import Client

_QUIET_SECONDS = 1.0
"""A wait that is over by then needs no words."""


@contextmanager
def explained(client: "Client", arguments: Namespace) -> Iterator[None]:
    """Say on a terminal what the block waits for, and who has it, if it takes longer than a moment."""
    if not arguments.wait or arguments.json or not sys.stderr.isatty():
        yield
        return
    is_over = threading.Event()

    def tell() -> None:
        with suppress(LeaseholdError):  # The wait itself meets whatever is wrong.
            line = _obstacle(client, arguments.resources)
            if line is not None and not is_over.is_set():
                say_on_stderr(line)

    telling = threading.Timer(_QUIET_SECONDS, tell)
    telling.daemon = True
    telling.start()
    try:
        yield
    finally:
        is_over.set()
        telling.cancel()


def _obstacle(client: "Client", resources: list[str]) -> str | None:
    """Return what is waited for; None if nobody else has any of it."""
    for resource in resources:
        others = [
            one.lease.holder for one in holders_of(client, resource) if one.lease.holder != client.holder
        ]
        if not others:
            continue
        own = [one.position for one in client.queue(resource) if one.lease.holder == client.holder]
        place = f", place {own[0]} in the queue" if own else ""
        return f"leasehold: waiting for {displayed(resource)}, held by {', '.join(others)}{place}"
    return None

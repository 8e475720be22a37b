"""Trying again what another writer has come in between of.

A store that does not keep writers apart notices at a commit that what was read has changed, and raises
`Conflict`. Then nothing was changed, and whatever was decided is decided again on what is there now. Who is
disturbed over and over is told so.
"""

from collections.abc import Callable
from typing import TypeVar

from leasehold.engine.port import Conflict
from leasehold.errors import StoreRejected

ATTEMPTS = range(100)

Result = TypeVar("Result")


def undisturbed(attempt: Callable[[], Result]) -> Result:
    """Return what `attempt`, which opens a transaction of its own each time, gives once it is let alone.

    Raises StoreRejected if it never is.
    """
    for _ in ATTEMPTS:
        try:
            return attempt()
        except Conflict:
            continue
    raise disturbed()


def disturbed() -> StoreRejected:
    """Return what is told to who was disturbed in every attempt."""
    return StoreRejected("other writers kept changing the same records; try again")

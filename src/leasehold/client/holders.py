"""Who is asking, when the caller does not say.

A holder is one incarnation: this client in this process, and within it this thread or task. Two threads of
one program compete like strangers, and nothing that died can be mistaken for something that lives.
"""

import itertools
import os
import secrets
import socket
import weakref
from collections.abc import Callable

from leasehold.client.held import AnyHeldLease
from leasehold.client.inputs import text


class Holders:
    """Names for the threads and tasks of one client."""

    def __init__(self, holder: str | None, caller: Callable[[], object]) -> None:
        self._given = holder
        self._caller = caller
        self._names: weakref.WeakKeyDictionary[object, str] = weakref.WeakKeyDictionary()
        self._numbers = itertools.count(1)
        self.restart()

    def restart(self) -> None:
        """Become another incarnation: at first, and in a forked child."""
        self.client_id = f"{socket.gethostname()[:60]}-{os.getpid()}-{secrets.token_hex(4)}"
        self._names = weakref.WeakKeyDictionary()

    def current(self) -> str:
        """Return the name of the thread or task that runs now, or the one name this client was given."""
        if self._given is not None:
            return self._given
        here = self._caller()
        name = self._names.get(here)
        if name is None:
            name = self._names[here] = f"{self.client_id}/{next(self._numbers)}"
        return name

    def of(self, lease: AnyHeldLease | str, given: str | None) -> str:
        """Return who acts on a lease: whom the caller names, else its holder, or whoever is asking."""
        if given is not None:
            return text("holder", given)
        return lease.granted.holder if isinstance(lease, AnyHeldLease) else self.current()

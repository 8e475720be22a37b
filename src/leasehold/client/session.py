"""What the sessions of both colours have in common: the desk, on whose behalf, and by which clock."""

from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from leasehold.client.holders import Holders
from leasehold.client.inputs import name
from leasehold.engine.clock import Clock, SystemClock
from leasehold.engine.desk import Desk
from leasehold.errors import LeaseholdError
from leasehold.kernel.ledger.commands import Command


class AnySession:
    """What all parts of one client share, blocking or asynchronous."""

    def __init__(
        self,
        desk: Desk,
        caller: Callable[[], object],
        *,
        tenant: str = "default",
        holder: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.desk = desk
        self.ids = desk.ids
        self.caller = caller
        """Tells which thread or task is calling."""
        self.tenant = name("tenant", tenant)
        self.holders = Holders(None if holder is None else name("holder", holder), caller)
        self.clock = clock or SystemClock()
        self.is_closed = False

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client cannot be copied, nor sent to another process; connect there")

    def send_blindly(self, command: Command) -> None:
        """Send a command without waiting for its outcome; closing the client does that."""
        with suppress(LeaseholdError):  # The client was closed meanwhile; the lease expires by itself.
            self.desk.submit(command, lambda outcome: None)

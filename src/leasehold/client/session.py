"""What the sessions of both colours have in common: the desk, on whose behalf, and by which clock."""

import time
from collections.abc import Callable
from typing import NoReturn, Self

from leasehold.client.holders import Holders
from leasehold.client.inputs import name
from leasehold.client.waits import LOOK_EVERY_SECONDS
from leasehold.engine.clock import Clock, SystemClock
from leasehold.engine.desk import Desk
from leasehold.engine.trust import Trust
from leasehold.errors import LeaseholdError
from leasehold.kernel.lease.model import Lease
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
        trust: Trust | None = None,
    ) -> None:
        self.desk = desk
        self.ids = desk.ids
        self.caller = caller
        """Tells which thread or task is calling."""
        self.tenant = name("tenant", tenant)
        self.holders = Holders(None if holder is None else name("holder", holder), caller)
        self.clock = clock or SystemClock()
        self.trust = trust or Trust()
        self.is_closed = False
        self.hear_of_end: Callable[[Lease], None] = lambda lease: None
        """Told of each lease that an answer says is over; whoever keeps leases listens."""
        self._unheard: dict[object, None] = {}
        """What was sent blindly, and has no outcome yet."""

    def face(self, what: str) -> str:
        """Return how a face of the client shows itself."""
        return f"<{what} of tenant {self.tenant} in {self.desk.url}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client cannot be copied, nor sent to another process; connect there")

    def acting_as(self, holder: str) -> Self:
        """Return this session for one call, on behalf of a holder that its caller names.

        So a server speaks for many holders through one session; whatever else a session has is shared.
        """
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.holders = Holders(name("holder", holder), self.caller)
        return other

    def is_over(self, sent_ns: int, expires_in_ns: int | None) -> bool:
        """Say whether something may have ended by now, by the answer to what was sent then; None: never."""
        if expires_in_ns is None:
            return False
        return self.clock.tick_ns() >= self.trust.deadline_ns(sent_ns, expires_in_ns)

    def send_blindly(self, command: Command) -> None:
        """Send a command without waiting for its outcome; closing the client, or its end, does that."""
        sent = object()

        def heard(outcome: object = None) -> None:
            del outcome
            self._unheard.pop(sent, None)

        self._unheard[sent] = None
        try:
            self.desk.submit(command, heard)
        except LeaseholdError:
            heard()  # The client was closed meanwhile; the lease expires by itself.
        except BaseException:
            heard()
            raise

    def hear_all(self) -> None:
        """Wait until everything that was sent blindly has its outcome, as long as any command would."""
        deadline = time.monotonic() + self.desk.timeout
        while self._unheard and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_SECONDS)

    def forget_what_was_sent(self) -> None:
        """In a forked child: whoever would hear of it is in the parent."""
        self._unheard = {}

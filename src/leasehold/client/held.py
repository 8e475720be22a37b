"""A lease in the hands of its holder: what both colours have in common, because nothing of it waits."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from leasehold.engine.kept import Kept, window_closed
from leasehold.errors import LeaseholdError, LeaseLost, WrongProcess, error_of
from leasehold.kernel.lease.access import check_access
from leasehold.kernel.lease.model import Lease, Mode
from leasehold.kernel.ledger.events import Token
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND
from leasehold.messages import ending

if TYPE_CHECKING:
    from leasehold.client.holdings import Holdings


_FACTS = ("lease_id", "resource", "token", "ended_by", "end_reason")
_OF_THE_CLIENT = frozenset(
    ("belongs_elsewhere", "bodies", "granted", "hearers", "kept", "lose", "loss", "parts", "process_id")
)
"""What other parts of a client use of a lease, and its holder need not see in `dir`."""


class AnyBody(Protocol):
    """The body of a `with` statement."""

    @property
    def runs_elsewhere(self) -> bool:
        """Say whether it is running, and not in the thread or task that asks."""
        ...

    def interrupt(self) -> None:
        """Stop it, where that is possible."""
        ...


class AnyHeldLease:
    """A lease in the hands of its holder, blocking or asynchronous."""

    def __init__(self, lease: Lease, holdings: "Holdings") -> None:
        self._holdings = holdings
        self.granted = lease
        self.process_id = os.getpid()
        """The process that holds the lease; a forked child does not."""
        self.kept: Kept | None = None
        """What the keeper knows; None once the lease was released or detached."""
        self.loss: LeaseholdError | None = None
        self.hearers: list[Callable[[], None]] = []
        """Those who wait for the loss."""
        self.bodies: list[AnyBody] = []
        """What runs under the lease at this moment, and is stopped by the loss."""

    def __repr__(self) -> str:
        if self.loss is not None:
            state = "lost"
        else:
            state = "released or detached" if self.kept is None else f"{self.remaining:.1f} s left"
        return f"<lease on {self.resource} by {self.holder}, token {self.token}, {state}>"

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in _OF_THE_CLIENT]

    @property
    def lease(self) -> Lease:
        """The lease as the registrar last told us."""
        return self.granted if self.kept is None else self.kept.lease

    @property
    def is_unconfirmed(self) -> bool:
        """Whether the lease was won by waiting, and the registrar has not heard of its holder since."""
        return self.kept is not None and self.kept.lease.is_unconfirmed

    @property
    def lease_id(self) -> str:
        """The lease's id."""
        return self.granted.lease_id

    @property
    def resource(self) -> str:
        """What is held."""
        return self.granted.resource

    @property
    def holder(self) -> str:
        """Who holds it."""
        return self.granted.holder

    @property
    def mode(self) -> Mode:
        """Exclusive or shared."""
        return self.granted.mode

    @property
    def token(self) -> Token:
        """The fencing token: pass it along with every write, and let the resource refuse a lower one."""
        return self.granted.token

    @property
    def remaining(self) -> float:
        """Seconds for which the holder may believe in the lease without hearing from the registrar."""
        if self.kept is None or self.process_id != os.getpid():
            return 0.0
        return self.kept.trusted_for_ns / NANOSECONDS_PER_SECOND

    def ensure(self) -> None:
        """Return if the lease can be trusted at this moment; raise LeaseLost (or a kind of it) if not.

        Asks the clock, not the registrar: it costs next to nothing, and cannot see a revocation before the
        keeper does. Call it right before each act that must not happen without the lease, and pass the
        token along.
        """
        elsewhere = self.belongs_elsewhere()
        if elsewhere is not None:
            raise elsewhere
        if self.loss is not None:
            # Without its old traceback: who asks in a loop must not make it longer each time.
            raise self.loss.with_traceback(None)
        if self.kept is None:
            raise LeaseLost(
                f"lease {self.lease_id} was released or detached here; acquire the resource again",
                lease_id=self.lease_id,
                resource=self.resource,
            )
        if self.kept.trusted_for_ns == 0:
            self._holdings.keeper.lose(self.kept, window_closed(self.kept))
            raise self.kept.loss or LeaseLost(f"lease {self.lease_id} has expired", lease_id=self.lease_id)

    def belongs_elsewhere(self) -> WrongProcess | None:
        """Return what is wrong if this process was forked from the one that holds the lease."""
        if self.process_id == os.getpid():
            return None
        return WrongProcess(
            f"lease {self.lease_id} belongs to process {self.process_id}, which this one was forked "
            "from; acquire a lease of your own",
            lease_id=self.lease_id,
            resource=self.resource,
        )

    def lose(self, loss: LeaseholdError) -> None:
        """Let everybody know that the lease is lost. Called from the keeper's thread."""
        self.loss = loss  # First: who begins to listen looks once more, and sees it.
        for hear in list(self.hearers):
            hear()
        for body in list(self.bodies):
            body.interrupt()

    def allows(
        self, *, work_id: str | None = None, tool: str | None = None, namespace: str | None = None
    ) -> bool:
        """Say whether the lease can be trusted at this moment and allows every part of an access.

        Asks the clock and the scope, which never changes, and not the registrar; see `ensure`.
        """
        refusal = check_access(self.granted, work_id=work_id, tool=tool, namespace=namespace)
        return refusal is None and self.remaining > 0

    def ensure_allowed(
        self, *, work_id: str | None = None, tool: str | None = None, namespace: str | None = None
    ) -> None:
        """Return if the lease can be trusted and allows this; raise LeaseLost or ScopeDenied if not."""
        self.ensure()
        refusal = check_access(self.granted, work_id=work_id, tool=tool, namespace=namespace)
        if refusal is not None:
            raise error_of(refusal)

    def detach(self) -> Lease:
        """Stop keeping the lease, without releasing it, and return it: somebody else can adopt it.

        It expires after its TTL unless it is renewed or adopted before. One that was just won by waiting is
        confirmed in the background first; if this process dies before that, it lasts for the claim window.
        """
        self.ensure()
        lease = self.lease
        if lease.is_unconfirmed:
            self._holdings.confirm_blindly(lease)
        self._holdings.forget(self)
        return lease


def ended_unnoticed(leases: Sequence[AnyHeldLease], what: str) -> LeaseLost:
    """Return the loss of a lease whose end was heard of only when `what` ran under it gave it back."""
    ended = next((one.granted for one in leases if one.granted.is_terminal), None)
    lease = leases[0].granted if ended is None and len(leases) == 1 else ended
    if lease is None:
        which, facts = f"one of the leases on {', '.join(one.resource for one in leases)}", {}
    else:
        which = f"lease {lease.lease_id} on {lease.resource}"
        facts = {field: getattr(lease, field) for field in _FACTS}
    how = "" if ended is None else f" ({ending(ended.state, ended.ended_by, ended.end_reason)})"
    return LeaseLost(
        f"{which} had ended before the {what} did{how}; what it did last may have happened without the lease",
        **facts,
    )

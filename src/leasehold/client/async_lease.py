"""A lease in the hands of its holder.

As a context manager it is released at the end of the block. If it was lost meanwhile, the end of the block
raises `LeaseLost`, unless the body is already raising something of its own.
"""

import os
from typing import TYPE_CHECKING, Any, Self

from leasehold.client.acquisition import AsyncAcquisition
from leasehold.client.async_block import AsyncBlock
from leasehold.client.async_loss import AsyncBody, AsyncLoss
from leasehold.client.held import AnyHeldLease
from leasehold.client.inputs import Duration
from leasehold.engine.kept import Kept
from leasehold.errors import LeaseLost, WrongProcess, error_of
from leasehold.kernel.lease.access import check_access
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.model import (
    Lease,
    Mode,
    ReleaseReason,
)
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.events import Token
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND

if TYPE_CHECKING:
    from leasehold.client.async_client import AsyncClient


class AsyncHeldLease(AsyncBlock, AnyHeldLease):
    """A granted lease that its client keeps alive until it is released, detached or lost."""

    def __init__(self, client: "AsyncClient", lease: Lease, lost: AsyncLoss, body: AsyncBody) -> None:
        super().__init__(client, body)
        self.process_id = os.getpid()
        """The process that holds the lease; a forked child does not."""
        self._granted = lease
        self.lost = lost
        """Fires once when the lease is lost: `if lease.lost: …`, or wait for it."""
        self.kept: Kept | None = None
        """What the keeper knows; None once the lease was detached."""

    def __repr__(self) -> str:
        if self.lost:
            state = "lost"
        else:
            state = "released or detached" if self.kept is None else f"{self.remaining:.1f} s left"
        return f"<lease on {self.resource} by {self.holder}, token {self.token}, {state}>"

    @property
    def lease(self) -> Lease:
        """The lease as the registrar last told us."""
        return self._granted if self.kept is None else self.kept.lease

    @property
    def is_unconfirmed(self) -> bool:
        """Whether the lease was won by waiting, and the registrar has not heard of its holder since."""
        return self.kept is not None and self.kept.lease.is_unconfirmed

    @property
    def resource(self) -> str:
        """What is held."""
        return self._granted.resource

    @property
    def holder(self) -> str:
        """Who holds it."""
        return self._granted.holder

    @property
    def mode(self) -> Mode:
        """Exclusive or shared."""
        return self._granted.mode

    @property
    def token(self) -> Token:
        """The fencing token: pass it along with every write, and let the resource refuse a lower one."""
        return self._granted.token

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
        if self.lost.error is not None:
            # Without its old traceback: who asks in a loop must not make it longer each time.
            raise self.lost.error.with_traceback(None)
        if self.kept is None:
            raise LeaseLost(
                f"lease {self.lease_id} was released or detached here; acquire the resource again",
                lease_id=self.lease_id,
                resource=self.resource,
            )
        if self.kept.trusted_for_ns == 0:
            self._client.lose(self.kept)
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

    async def renew(self, ttl: Duration | None = None) -> None:
        """Extend the lease now, for `ttl` seconds or its own TTL again. The keeper does this by itself.

        Raises LeaseLost (or a kind of it) if it was lost, even if the registrar would still extend it.
        """
        self.ensure()
        await self._client.renew(self, ttl=ttl)

    async def upgrade(self, *, wait: Duration | bool | None = None) -> None:
        """Have a shared lease exclusively, under a higher `token`, before everybody who waits for it.

        Waits at most `wait` seconds for the others who share it, as `acquire` does. If that is in vain it
        raises `Held`, or `Deadlock` if another sharer waits for the same, and the lease stays shared.
        """
        await self._client.upgrade(self, wait=wait)

    async def downgrade(self) -> None:
        """Let others share an exclusive lease. The token stays the same."""
        await self._client.downgrade(self)

    async def transfer(self, to: str, *, ttl: Duration | None = None) -> Lease:
        """Hand the lease to another holder in one step, and return theirs: a new id and a higher token.

        Nobody renews it until `to` does, or adopts it.
        """
        return (await self._client.transfer(self, to=to, ttl=ttl)).lease

    def take_in(self, lease: Lease) -> None:
        """Note how the lease is after its mode has changed."""
        self._granted = lease

    async def release(self, reason: ReleaseReason | str = ReleaseReason.VOLUNTARY) -> bool:
        """Give the lease back. Return False, and raise nothing, if it was gone already."""
        return await self._client.release(self, reason=reason)

    async def certificate(self) -> str:
        """Return the registrar's signed word that the lease stands, for those who cannot ask the registrar.

        It holds until the lease would expire if it were not renewed: get a new one after a renewal.
        """
        self.ensure()
        if self.is_unconfirmed:
            await self.renew()
        return await self._client.certificate(self.lease_id)

    def derive(
        self,
        resource: str,
        *,
        scope: Scope | None = None,
        budget: Budget | None = None,
        ttl: Duration | None = None,
        holder: str | None = None,
        **claim: Any,
    ) -> AsyncAcquisition["AsyncHeldLease"]:
        """Hand on a part of this lease, as the client's `derive` does with the same arguments."""
        self.ensure()
        return self._client.derive(
            self, resource, scope=scope, budget=budget, ttl=ttl, holder=holder, **claim
        )

    async def spend(
        self,
        *,
        episodes: int = 0,
        tool_calls: int = 0,
        tokens: int = 0,
        duration_ms: int = 0,
        request_id: str | None = None,
    ) -> Budget:
        """Use up some of the lease's budget, all of it or nothing; return what remains."""
        self.ensure()
        return await self._client.spend(
            self,
            episodes=episodes,
            tool_calls=tool_calls,
            tokens=tokens,
            duration_ms=duration_ms,
            request_id=request_id,
        )

    async def remaining_budget(self) -> Budget:
        """Return what can still be spent, or handed on; None in it means no limit."""
        return await self._client.remaining_budget(self)

    def allows(
        self, *, work_id: str | None = None, tool: str | None = None, namespace: str | None = None
    ) -> bool:
        """Say whether the lease can be trusted at this moment and allows every part of an access.

        Asks the clock and the scope, which never changes, and not the registrar; see `ensure`.
        """
        refusal = check_access(self._granted, work_id=work_id, tool=tool, namespace=namespace)
        return refusal is None and self.remaining > 0

    def ensure_allowed(
        self, *, work_id: str | None = None, tool: str | None = None, namespace: str | None = None
    ) -> None:
        """Return if the lease can be trusted and allows this; raise LeaseLost or ScopeDenied if not."""
        self.ensure()
        refusal = check_access(self._granted, work_id=work_id, tool=tool, namespace=namespace)
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
            self._client.confirm_blindly(lease)
        self._client.forget(self)
        return lease

    def parts(self) -> tuple[Self]:
        """Return this lease alone."""
        return (self,)

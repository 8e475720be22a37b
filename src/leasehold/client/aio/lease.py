"""A lease in the hands of its holder.

As a context manager it is released at the end of the block. If it was lost meanwhile, the end of the block
raises `LeaseLost`, unless the body is already raising something of its own.
"""

from typing import TYPE_CHECKING, Any, Self

from leasehold.client.aio.acquisition import AsyncAcquisition
from leasehold.client.aio.block import AsyncBlock
from leasehold.client.aio.loss import AsyncLoss
from leasehold.client.held import AnyHeldLease
from leasehold.client.inputs import Duration
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.model import Lease, Mode, ReleaseReason
from leasehold.kernel.lease.scope import Scope

if TYPE_CHECKING:
    from leasehold.client.aio.claims import AsyncClaims
    from leasehold.client.aio.terms import AsyncTerms
    from leasehold.client.holdings import Holdings


class AsyncHeldLease(AnyHeldLease, AsyncBlock):
    """A granted lease that its client keeps alive until it is released, detached or lost."""

    def __init__(
        self, lease: Lease, holdings: "Holdings", claims: "AsyncClaims", terms: "AsyncTerms"
    ) -> None:
        super().__init__(lease, holdings)
        self._claims = claims
        self._terms = terms

    @property
    def lost(self) -> AsyncLoss:
        """Fires once when the lease is lost: `if lease.lost: …`, or wait for it."""
        return AsyncLoss(self)

    async def renew(self, ttl: Duration | None = None) -> None:
        """Extend the lease now, for `ttl` seconds or its own TTL again. The keeper does this by itself.

        Raises LeaseLost (or a kind of it) if it was lost, even if the registrar would still extend it.
        """
        self.ensure()
        await self._terms.renew(self, ttl)

    async def upgrade(self, *, wait: Duration | bool | None = None) -> None:
        """Have a shared lease exclusively, under a higher `token`, before everybody who waits for it.

        Waits at most `wait` seconds for the others who share it, as `acquire` does. If that is in vain it
        raises `Held`, or `Deadlock` if another sharer waits for the same, and the lease stays shared.
        """
        await self._terms.change_mode(self, Mode.EXCLUSIVE, wait=wait)

    async def downgrade(self) -> None:
        """Let others share an exclusive lease. The token stays the same."""
        await self._terms.change_mode(self, Mode.SHARED)

    async def transfer(self, to: str, *, ttl: Duration | None = None) -> Lease:
        """Hand the lease to another holder in one step, and return theirs: a new id and a higher token.

        Nobody renews it until `to` does, or adopts it.
        """
        return (await self._terms.transfer(self, to, ttl)).lease

    async def release(self, reason: ReleaseReason | str = ReleaseReason.VOLUNTARY) -> bool:
        """Give the lease back. Return False, and raise nothing, if it was gone already."""
        return await self._claims.release(self, reason)

    async def certificate(self) -> str:
        """Return the registrar's signed word that the lease stands, for those who cannot ask the registrar.

        It holds until the lease would expire if it were not renewed: get a new one after a renewal.
        """
        self.ensure()
        return await self._terms.certificate(self)

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
        return self._claims.derive(
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
        spent = {"episodes": episodes, "tool_calls": tool_calls, "tokens": tokens, "duration_ms": duration_ms}
        return await self._terms.spend(self, None, request_id, **spent)

    async def remaining_budget(self) -> Budget:
        """Return what can still be spent, or handed on; None in it means no limit."""
        return await self._terms.remaining_budget(self)

    def parts(self) -> tuple[Self]:
        """Return this lease alone."""
        return (self,)

"""Several leases of one claim, in the hands of their holder: acquired together, released together."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from leasehold.client.aio.block import AsyncBlock
from leasehold.client.aio.lease import AsyncHeldLease
from leasehold.kernel.lease.model import ReleaseReason

if TYPE_CHECKING:
    from leasehold.client.aio.claims import AsyncClaims
    from leasehold.client.holdings import Holdings


class AsyncHeldLeases(AsyncBlock):
    """Leases that were granted whole; find one by its resource. Each has a token of its own."""

    def __init__(self, leases: list[AsyncHeldLease], holdings: "Holdings", claims: "AsyncClaims") -> None:
        self._leases = {lease.resource: lease for lease in leases}
        self._holdings = holdings
        self._claims = claims

    def __repr__(self) -> str:
        return f"<leases on {', '.join(self._leases)}>"

    def __getitem__(self, resource: str) -> AsyncHeldLease:
        return self._leases[resource]

    def __iter__(self) -> Iterator[AsyncHeldLease]:
        return iter(self._leases.values())

    def __len__(self) -> int:
        return len(self._leases)

    def parts(self) -> list[AsyncHeldLease]:
        """Return the leases, in the order asked."""
        return list(self._leases.values())

    def ensure(self) -> None:
        """Return if all leases can be trusted at this moment; raise LeaseLost (or a kind of it) if not."""
        for lease in self:
            lease.ensure()

    async def release(self, reason: ReleaseReason | str = ReleaseReason.VOLUNTARY) -> bool:
        """Give all leases back in one commit. Return False, and raise nothing, if one was gone already."""
        return await self._claims.release_together(self.parts(), reason)

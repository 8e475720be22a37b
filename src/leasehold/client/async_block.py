"""The body of a `with` statement that runs under one lease, or under several.

They are released at the end of the block. If one was lost meanwhile, the end of the block raises `LeaseLost`,
unless the body is already raising something of its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from leasehold.client.async_loss import AsyncBody
from leasehold.errors import ClientClosed, LeaseholdError, LeaseLost, StoreError
from leasehold.kernel.lease.model import ReleaseReason

if TYPE_CHECKING:
    from leasehold.client.async_client import AsyncClient
    from leasehold.client.async_lease import AsyncHeldLease


class AsyncBlock(ABC):
    """Leases that a block can be run under."""

    def __init__(self, client: "AsyncClient", body: AsyncBody) -> None:
        self._client = client
        self._body = body

    @abstractmethod
    def parts(self) -> "Sequence[AsyncHeldLease]":
        """Return the leases."""

    @abstractmethod
    def ensure(self) -> None:
        """Return if all of it can be trusted at this moment; raise LeaseLost (or a kind of it) if not."""

    @abstractmethod
    async def release(self, reason: ReleaseReason | str = ReleaseReason.VOLUNTARY) -> bool:
        """Give it back. Return False, and raise nothing, if any of it was gone already."""

    def runs_elsewhere(self) -> bool:
        """Say whether a block runs under it, and not in the thread or task that asks."""
        return self._body.runs_elsewhere

    async def __aenter__(self) -> Self:
        try:
            self._body.enter()
            self.ensure()  # Only now: a loss before this is seen here, one after it interrupts the body.
        except BaseException as error:
            self._body.leave(None)
            if not isinstance(error, LeaseholdError):
                self._give_back()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release, and raise LeaseLost if the body may have run without the lease."""
        del kind, trace
        try:
            await self._end_block(error)
        except LeaseholdError:
            raise
        except BaseException:
            self._give_back()
            raise

    async def _end_block(self, error: BaseException | None) -> None:
        interrupted = self._body.leave(error)
        here = [one for one in self.parts() if one.belongs_elsewhere() is None]
        losses = [one.lost.error for one in here if one.lost.error is not None]
        # Lists, not generators: Ctrl-C that comes when one of those is closed early is swallowed.
        if not losses and not [one for one in here if one.kept is not None]:
            return  # The body released or detached it: nothing is held, and nothing was lost.
        reason = ReleaseReason.COMPLETED if error is None else ReleaseReason.ABORTED
        try:
            held_to_the_end = await self.release(reason)
        except (StoreError, ClientClosed):
            # What the body raised, or the loss, says more than that the lease has to expire by itself.
            if error is None and not losses:
                raise
            held_to_the_end = True
        if error is not None and not interrupted:
            return
        if losses:
            raise losses[0].with_traceback(None) from error
        if not held_to_the_end:
            raise _ended_unnoticed(here)

    def _give_back(self) -> None:
        """Release leases whose holder was interrupted on the way into the block, or out of it."""
        held = [one for one in self.parts() if one.kept is not None and one.belongs_elsewhere() is None]
        if held:
            self._client.give_back(tuple(one.lease_id for one in held), held[0].holder)


def _ended_unnoticed(leases: "Sequence[AsyncHeldLease]") -> LeaseholdError:
    first = leases[0]
    which = f"lease {first.lease_id} on {first.resource}" if len(leases) == 1 else "one of the leases"
    return LeaseLost(
        f"{which} had ended before its block did; what the block did last may have happened without it",
        lease_id=first.lease_id,
        resource=first.resource,
        token=first.token,
    )

"""The body of a `with` statement that runs under one lease, or under several.

They are released at the end of the block. If one was lost meanwhile, the end of the block raises `LeaseLost`,
unless the body is already raising something of its own. That they could not be released is raised only if
there is neither.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from leasehold.client.aio.loss import AsyncBody
from leasehold.client.held import ended_unnoticed
from leasehold.errors import LeaseholdError
from leasehold.kernel.lease.model import ReleaseReason

if TYPE_CHECKING:
    from leasehold.client.aio.lease import AsyncHeldLease
    from leasehold.client.holdings import Holdings


class AsyncBlock(ABC):
    """Leases that a block can be run under."""

    _holdings: "Holdings"
    _body: AsyncBody | None = None

    @abstractmethod
    def parts(self) -> "Sequence[AsyncHeldLease]":
        """Return the leases."""

    @abstractmethod
    def ensure(self) -> None:
        """Return if all of it can be trusted at this moment; raise LeaseLost (or a kind of it) if not."""

    @abstractmethod
    async def release(self, reason: ReleaseReason | str = ReleaseReason.VOLUNTARY) -> bool:
        """Give it back. Return False, and raise nothing, if any of it was gone already."""

    async def __aenter__(self) -> Self:
        try:
            self._body = AsyncBody()
            for one in self.parts():
                one.bodies.append(self._body)
            self.ensure()  # Only now: a loss before this is seen here, one after it interrupts the body.
        except BaseException:
            self._leave(None)
            self._give_back()  # There is no end of a block that has not begun.
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
        interrupted = self._leave(error)
        here = [one for one in self.parts() if one.belongs_elsewhere() is None]
        losses = [one.loss for one in here if one.loss is not None]
        # Lists, not generators: Ctrl-C that comes when one of those is closed early is swallowed.
        if not losses and not [one for one in here if one.kept is not None]:
            return  # The body released or detached it: nothing is held, and nothing was lost.
        reason = ReleaseReason.COMPLETED if error is None else ReleaseReason.ABORTED
        try:
            held_to_the_end = await self.release(reason)
        except LeaseholdError:
            # Whatever kept it from being released: what the body raised, or the loss, says more than that
            # the lease has to expire by itself.
            if error is None and not losses:
                raise
            held_to_the_end = True
        if error is not None and not interrupted:
            return
        if losses:
            raise losses[0].with_traceback(None)  # Not `from error`: it may have a cause of its own.
        if not held_to_the_end:
            raise ended_unnoticed(here, "block")

    def _leave(self, error: BaseException | None) -> bool:
        """Let no loss stop anything here any more; return whether `error` is what a loss has done."""
        body, self._body = self._body, None
        for one in self.parts():
            if body in one.bodies:
                one.bodies.remove(body)
        return body is not None and body.leave(error)

    def _give_back(self) -> None:
        """Release leases whose holder never came into the block, or was interrupted on the way out of it."""
        held = [one for one in self.parts() if one.kept is not None and one.belongs_elsewhere() is None]
        if held:
            self._holdings.give_back(tuple(one.lease_id for one in held), held[0].holder)

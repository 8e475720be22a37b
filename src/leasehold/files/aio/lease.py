"""File leases in the hands of an agent, as long as a block runs."""

from collections.abc import Sequence
from typing import Any

from leasehold.client.aio.acquisition import AsyncAcquisition
from leasehold.client.aio.block import AsyncBlock
from leasehold.client.aio.lease import AsyncHeldLease
from leasehold.client.aio.session import AsyncSession
from leasehold.client.inputs import Duration
from leasehold.client.users import User
from leasehold.engine.questions import FindLease
from leasehold.errors import InvalidInput, LeaseLost
from leasehold.files.aio.claiming import AsyncFileClaims
from leasehold.files.aio.guarded import AsyncGuardedFile
from leasehold.files.guarded import Replacement, kind_of
from leasehold.files.names import AnyPath, file_at, shown
from leasehold.kernel.lease.model import Mode, ReleaseReason
from leasehold.kernel.lease.paths import includes


class AsyncHeldFiles(AsyncBlock):
    """What an agent has by one claim; kept alive, and given back at the end of the block.

    Blocks of one agent in one client may have the same lease: it is given back with the last of them, and
    each hears of its loss. What the agent had before, from elsewhere, goes on as it was.
    """

    def __init__(
        self,
        leases: list[AsyncHeldLease],
        user: User,
        session: AsyncSession,
        claims: AsyncFileClaims,
    ) -> None:
        self.leases = leases
        """The leases that cover what was claimed."""
        self._under = leases
        self._is_given_back = False
        self._user = user
        self._session = session
        self._claims = claims

    def __repr__(self) -> str:
        return f"<file lease on {', '.join(self.paths)} by {self.agent}>"

    @property
    def paths(self) -> "list[str]":
        """What is held, each inside its repository or absolute."""
        return [shown(one.resource) for one in self.leases]

    @property
    def agent(self) -> str:
        """Who holds it."""
        return self.leases[0].holder

    @property
    def token(self) -> int:
        """The fencing token of the first lease: pass it along with every write."""
        return self.leases[0].token

    @property
    def lease_id(self) -> str:
        """The id of the first lease."""
        return self.leases[0].lease_id

    def parts(self) -> "Sequence[AsyncHeldLease]":
        """Return the leases that this block runs under: all, until it has given back what it has not lost."""
        return self._under

    def ensure(self) -> None:
        """Return if everything can be trusted at this moment; raise LeaseLost (or a kind of it) if not."""
        for one in self.leases:
            self._ensure(one)

    def _ensure(self, held: AsyncHeldLease) -> None:
        held.ensure()
        if self._is_given_back:
            raise LeaseLost(
                f"lease {held.lease_id} on {shown(held.resource)} was given back here; acquire it again",
                lease_id=held.lease_id,
                resource=held.resource,
            )

    async def renew(self, ttl: Duration | None = None) -> None:
        """Give it more time, from now on. The keeper does this by itself."""
        for one in self.leases:
            await one.renew(ttl)

    async def release(self, reason: ReleaseReason | str = ReleaseReason.VOLUNTARY) -> bool:
        """Give back what was acquired by this claim. Return False if any of it was gone already.

        What other blocks of this agent use as well is given back by the last of them.
        """
        if self._is_given_back or [one for one in self.leases if one.belongs_elsewhere()]:
            return False
        self._step_out()
        return await self._claims.release(self.leases, self._user, reason)

    def detach(self) -> None:
        """Stop keeping it, without giving it back: it is the agent's until it is released, or expires."""
        self.ensure()
        self._step_out()
        self._claims.leave_standing(self.leases, self._user)

    def _step_out(self) -> None:
        for one in self.leases:
            if self._body in one.bodies:
                one.bodies.remove(self._body)
        self._under = [one for one in self.leases if one.loss is not None]
        self._is_given_back = True

    async def _end_block(self, error: BaseException | None) -> None:
        try:
            await super()._end_block(error)
        finally:
            self._give_back()  # Whatever the body did with single leases, nobody waits for this block.

    def _give_back(self) -> None:
        self._claims.give_up(self.leases, self._user)

    def open(self, path: AnyPath, mode: str = "r", **options: Any) -> AsyncAcquisition[AsyncGuardedFile]:
        """Open a file that this lease covers: `r`, `w`, `a` or `x`, with `b` for bytes.

        `options` are those of the built-in `open`.

        The registrar is asked whether the lease stands, now and again when the file is closed; only then does
        what was written take the place of the file, whole and at once. If the lease is lost meanwhile, or
        the block raises, the file stays as it was.
        """
        return AsyncAcquisition(self._open(path, mode, options))

    async def _open(self, path: AnyPath, mode: str, options: dict[str, Any]) -> AsyncGuardedFile:
        place, name = file_at(path)
        covering = [one for one in self.leases if includes(one.resource, name.resource)]
        if not covering:
            raise InvalidInput(
                f"{name.path} is not covered by the lease on {', '.join(self.paths)}", field="path"
            )
        writable = [one for one in covering if one.mode is Mode.EXCLUSIVE]
        writes = kind_of(mode) != "r"
        if writes and not writable:
            raise InvalidInput(f"{name.path} is only shared by this lease; upgrade it to write", field="mode")
        held = (writable or covering)[0]
        await self.validate(held, writes=writes)
        replacement = Replacement(place, mode, options)
        if replacement.target != place:
            replacement.discard()
            raise InvalidInput(f"{name.path} leads elsewhere by now; open it again", field="path")
        return AsyncGuardedFile(replacement, self, held)

    async def validate(self, held: AsyncHeldLease, *, writes: bool) -> None:
        """Raise LeaseLost (or a kind of it) unless the registrar says that a lease stands, and is enough."""
        self._ensure(held)
        question = FindLease(tenant=self._session.tenant, lease_id=held.lease_id)
        status = await self._session.ask(question)
        if status is None or not status.is_live or status.lease.token != held.token:
            raise LeaseLost(
                f"lease {held.lease_id} on {shown(held.resource)} does not stand any more; acquire it again",
                lease_id=held.lease_id,
                resource=held.resource,
            )
        if writes and status.lease.mode is not Mode.EXCLUSIVE:
            raise LeaseLost(
                f"lease {held.lease_id} on {shown(held.resource)} is only shared by now; upgrade it to write",
                lease_id=held.lease_id,
                resource=held.resource,
            )
        self._ensure(held)  # This process may have been stopped while the answer was on its way.

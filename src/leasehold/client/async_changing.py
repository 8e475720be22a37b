"""Changing leases that are held: shared to exclusive and back, and from one holder to another."""

from leasehold.client.async_claiming import AsyncClaiming
from leasehold.client.async_lease import AsyncHeldLease
from leasehold.client.inputs import Duration, duration_ns, lease_id_of, text
from leasehold.client.waits import Claim, patience_ns
from leasehold.engine.desk import answer_of
from leasehold.engine.questions import LeaseStatus
from leasehold.errors import LeaseholdError
from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.commands import ChangeMode, Transfer
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND


class AsyncChanging(AsyncClaiming):
    """How a client changes what it holds."""

    async def upgrade(
        self,
        lease: AsyncHeldLease | str,
        *,
        wait: Duration | bool | None = None,
        holder: str | None = None,
    ) -> LeaseStatus:
        """Have a shared lease exclusively, under a higher token; return how it stands.

        It goes before everybody who waits, but has to wait for the others who share: at most `wait` seconds,
        as for `acquire`. Raises `Held` if they do not release in time, and `Deadlock` if one of them waits
        for the same. The lease is held as before then.
        """
        patience = patience_ns(wait)
        return await self._change_mode(lease, Mode.EXCLUSIVE, patience, holder)

    async def downgrade(self, lease: AsyncHeldLease | str, *, holder: str | None = None) -> LeaseStatus:
        """Let others share an exclusive lease, under the same token; return how it stands."""
        return await self._change_mode(lease, Mode.SHARED, 0, holder)

    async def _change_mode(
        self, lease: AsyncHeldLease | str, mode: Mode, patience: int, holder: str | None
    ) -> LeaseStatus:
        command = ChangeMode(
            tenant=self._tenant,
            lease_id=lease_id_of(lease),
            holder=self._holder_of(lease) if holder is None else text("holder", holder),
            mode=mode,
            wait=patience > 0,
            request_id=self._desk.ids.new(),
        )
        if not isinstance(lease, str):
            lease.ensure()
        await self._confirm(command.lease_id)
        try:
            granted, _ = await self._wait_for(Claim(command), patience)
        except LeaseholdError:
            raise
        except BaseException:
            # Interrupted or cancelled: nobody will ever hear of it, so it stays, or becomes again, shared.
            self._send_blindly(self._undoing(command))
            raise
        held = self._held.get(granted.lease.lease_id)
        if held is not None and held.holder == command.holder:
            held.take_in(granted.lease)
            if held.kept is not None:
                self._keeper.changed(held.kept, granted.lease)
        return _status(granted)

    async def transfer(
        self,
        lease: AsyncHeldLease | str,
        *,
        to: str,
        ttl: Duration | None = None,
        holder: str | None = None,
    ) -> LeaseStatus:
        """Hand a lease to another holder, under a new id and a higher token; return the new lease.

        The old one ends in the same commit, so nobody can come in between. The new one lasts `ttl` seconds,
        or as long as the old one's TTL, and nobody renews it until its holder does, or adopts it.
        """
        command = Transfer(
            tenant=self._tenant,
            lease_id=lease_id_of(lease),
            holder=self._holder_of(lease) if holder is None else text("holder", holder),
            to=text("to", to),
            new_lease_id=self._desk.ids.new(),
            ttl_ns=None if ttl is None else duration_ns("ttl", ttl),
            request_id=self._desk.ids.new(),
        )
        held = self._held.get(lease) if isinstance(lease, str) else lease
        if held is None or held.holder != command.holder:
            return _status(answer_of(await self._send(command), Granted))
        held.ensure()
        await self._confirm(command.lease_id)
        # Not kept meanwhile: the keeper would take the end of the old lease for a loss.
        kept = held.kept
        try:
            self.forget(held)
            return _status(answer_of(await self._send(command), Granted))
        except BaseException:
            # It is still ours, or nobody knows; then the next renewal tells.
            if kept is not None:
                self.keep_again(held, kept)
            raise


def _status(granted: Granted) -> LeaseStatus:
    return LeaseStatus(lease=granted.lease, expires_in=granted.expires_in_ns / NANOSECONDS_PER_SECOND)

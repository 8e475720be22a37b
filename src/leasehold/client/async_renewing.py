"""Renewing what is held, which also confirms what was won by waiting.

A lease that was won lasts only for a claim window until its holder is heard of. The keeper's first renewal
takes care of that in the background; whoever wants to do anything else with the lease renews it first.
"""

from collections.abc import Iterable

from leasehold.client.async_holding import AsyncHolding
from leasehold.client.async_lease import AsyncHeldLease
from leasehold.client.inputs import Duration, duration_ns, lease_id_of, several, text
from leasehold.engine.desk import answer_of
from leasehold.engine.questions import LeaseStatus
from leasehold.errors import LeaseholdError, error_of
from leasehold.kernel.lease.answers import Renewal, Renewed
from leasehold.kernel.lease.commands import Renew
from leasehold.kernel.ledger.limits import BATCH_LEASES
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND


class AsyncRenewing(AsyncHolding):
    """How a client extends leases."""

    async def renew(
        self, lease: AsyncHeldLease | str, *, ttl: Duration | None = None, holder: str | None = None
    ) -> LeaseStatus:
        """Extend a lease from now, for `ttl` seconds or its own TTL again; return how it stands."""
        (result,) = await self.renew_many([lease], ttl=ttl, holder=holder)
        if isinstance(result, LeaseholdError):
            raise result
        return result

    async def renew_many(
        self,
        leases: Iterable[AsyncHeldLease | str],
        *,
        ttl: Duration | None = None,
        holder: str | None = None,
    ) -> list[LeaseStatus | LeaseholdError]:
        """Extend many leases; return for each how it stands, or why it was not extended.

        Leases given as objects are renewed for their own holders; those given by id for `holder`.
        """
        wanted = several("leases", leases)
        ttl_ns = None if ttl is None else duration_ns("ttl", ttl)
        lease_ids = [lease_id_of(lease) for lease in wanted]
        results: dict[int, LeaseStatus | LeaseholdError] = {}
        places: dict[str, list[int]] = {}
        for place, lease in enumerate(wanted):
            elsewhere = None if isinstance(lease, str) else lease.belongs_elsewhere()
            if elsewhere is not None:
                results[place] = elsewhere
            else:
                name = self._holder_of(lease) if holder is None else text("holder", holder)
                places.setdefault(name, []).append(place)
        for name, theirs in places.items():
            for start in range(0, len(theirs), BATCH_LEASES):
                batch = theirs[start : start + BATCH_LEASES]
                named = tuple([lease_ids[place] for place in batch])
                results |= zip(batch, await self._renew_batch(named, ttl_ns, name), strict=True)
        return [results[place] for place in range(len(wanted))]

    async def _renew_batch(
        self, lease_ids: tuple[str, ...], ttl_ns: int | None, holder: str
    ) -> list[LeaseStatus | LeaseholdError]:
        command = Renew(
            tenant=self._tenant,
            lease_ids=lease_ids,
            holder=holder,
            ttl_ns=ttl_ns,
            request_id=self._desk.ids.name(),
        )
        sent_ns = self._clock.tick_ns()
        outcomes = answer_of(await self._send(command), Renewed).outcomes
        renewals = [(self._held.get(one.lease.lease_id), one) for one in outcomes if isinstance(one, Renewal)]
        kept = [(held.kept, one) for held, one in renewals if held is not None and held.kept is not None]
        self._keeper.renewed(kept, sent_ns)
        return [
            LeaseStatus(lease=one.lease, expires_in=one.expires_in_ns / NANOSECONDS_PER_SECOND)
            if isinstance(one, Renewal)
            else self._not_renewed(one, holder)
            for one in outcomes
        ]

    def _not_renewed(self, refusal: Refusal, holder: str) -> LeaseholdError:
        """Return why a lease was not renewed. Tell its holder, if that means that it is lost."""
        error = error_of(refusal)
        held = self._held.get(refusal.lease_id or "")
        # Somebody who asks under another name than the lease's holder has not lost it for that holder.
        if held is not None and held.kept is not None and refusal.code.means_loss and held.holder == holder:
            self._keeper.lose(held.kept, error)
        return error

    async def _confirm(self, lease_id: str) -> None:
        """Confirm a lease that is held here and was won by waiting, if that has not happened yet."""
        held = self._held.get(lease_id)
        if held is not None and held.is_unconfirmed:
            await self.renew(held)

"""The terms of leases that were granted: their time, mode, holder and budget, changed or asked for.

A lease that was won by waiting lasts only for a claim window until its holder is heard of. The keeper's
first renewal takes care of that in the background; whoever wants to do anything else with the lease renews it
first.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from leasehold.client.aio.reader import AsyncReader
from leasehold.client.aio.session import AsyncSession
from leasehold.client.aio.waiting_room import AsyncWaitingRoom
from leasehold.client.holdings import Holdings
from leasehold.client.inputs import Duration, amounts, duration_ns, lease_id_of, several, text
from leasehold.client.waits import Claim, patience_ns, undoing
from leasehold.engine.desk import answer_of
from leasehold.engine.questions import LeaseStatus, lasting
from leasehold.errors import LeaseholdError, LeaseNotFound, NothingGranted, error_of
from leasehold.kernel.lease.answers import Granted, Renewal, Renewed, Spent
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import ChangeMode, Renew, Spend, Transfer
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.ledger.limits import BATCH_LEASES
from leasehold.kernel.ledger.refusals import Refusal

if TYPE_CHECKING:
    from leasehold.client.aio.lease import AsyncHeldLease


class AsyncTerms:
    """What can be done with leases that somebody has, other than giving them back."""

    def __init__(self, session: AsyncSession, holdings: Holdings, waiting_room: AsyncWaitingRoom) -> None:
        self._session = session
        self._holdings = holdings
        self._waiting_room = waiting_room
        self._reader = AsyncReader(session)

    async def renew(
        self, lease: "AsyncHeldLease | str", ttl: Duration | None = None, holder: str | None = None
    ) -> LeaseStatus:
        """Extend a lease; return how it stands, or raise why it was not extended."""
        (result,) = await self.renew_many([lease], ttl, holder)
        if isinstance(result, LeaseholdError):
            raise result
        return result

    async def renew_many(
        self, leases: "Iterable[AsyncHeldLease | str]", ttl: Duration | None, holder: str | None
    ) -> list[LeaseStatus | LeaseholdError]:
        """Extend many leases; return for each how it stands, or why it was not extended."""
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
                places.setdefault(self._session.holders.of(lease, holder), []).append(place)
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
            tenant=self._session.tenant,
            lease_ids=lease_ids,
            holder=holder,
            ttl_ns=ttl_ns,
            request_id=self._session.ids.name(),
        )
        sent_ns = self._session.clock.tick_ns()
        outcomes = answer_of(await self._session.send(command), Renewed).outcomes
        held = self._holdings.held
        renewals = [(held.get(one.lease.lease_id), one) for one in outcomes if isinstance(one, Renewal)]
        kept = [(ours.kept, one) for ours, one in renewals if ours is not None and ours.kept is not None]
        self._holdings.keeper.renewed(kept, sent_ns)
        return [
            lasting(one.lease, one.expires_in_ns)
            if isinstance(one, Renewal)
            else self._not_renewed(one, holder)
            for one in outcomes
        ]

    def _not_renewed(self, refusal: Refusal, holder: str) -> LeaseholdError:
        """Return why a lease was not renewed. Tell its holder, if that means that it is lost."""
        error = error_of(refusal)
        held = self._holdings.held.get(refusal.lease_id or "")
        # Somebody who asks under another name than the lease's holder has not lost it for that holder.
        if held is not None and held.kept is not None and refusal.code.means_loss and held.holder == holder:
            self._holdings.keeper.lose(held.kept, error)
        return error

    async def confirm(self, lease_id: str) -> None:
        """Confirm a lease that is held here and was won by waiting, if that has not happened yet."""
        held = self._holdings.held.get(lease_id)
        if held is not None and held.is_unconfirmed:
            await self.renew(lease_id, holder=held.holder)

    async def change_mode(
        self,
        lease: "AsyncHeldLease | str",
        mode: Mode,
        *,
        wait: Duration | bool | None = None,
        holder: str | None = None,
    ) -> LeaseStatus:
        """Make a lease exclusive, which may have to wait for those who share it, or shared."""
        patience = patience_ns(wait)
        command = ChangeMode(
            tenant=self._session.tenant,
            lease_id=lease_id_of(lease),
            holder=self._session.holders.of(lease, holder),
            mode=mode,
            wait=patience > 0,
            request_id=self._session.ids.new(),
        )
        if not isinstance(lease, str):
            lease.ensure()
        await self.confirm(command.lease_id)
        step = self._holdings.step(lambda: undoing(command, self._session.ids.new()))
        self._holdings.under_way[step] = None
        try:
            granted, _ = await self._waiting_room.wait(Claim(command), patience)
        except LeaseholdError:
            raise
        except BaseException:
            # Interrupted or cancelled: nobody will ever hear of it, so it stays, or becomes again, shared.
            self._session.send_blindly(undoing(command, self._session.ids.new()))
            raise
        finally:
            del self._holdings.under_way[step]
        held = self._holdings.held.get(granted.lease.lease_id)
        if held is not None and held.holder == command.holder:
            held.granted = granted.lease
            if held.kept is not None:
                self._holdings.keeper.changed(held.kept, granted.lease)
        return _status(granted)

    async def transfer(
        self, lease: "AsyncHeldLease | str", to: str, ttl: Duration | None, holder: str | None = None
    ) -> LeaseStatus:
        """Hand a lease to another holder, under a new id and a higher token; return the new lease."""
        ids, holdings = self._session.ids, self._holdings
        command = Transfer(
            tenant=self._session.tenant,
            lease_id=lease_id_of(lease),
            holder=self._session.holders.of(lease, holder),
            to=text("to", to),
            new_lease_id=ids.new(),
            ttl_ns=None if ttl is None else duration_ns("ttl", ttl),
            request_id=ids.new(),
        )
        held = holdings.held.get(lease) if isinstance(lease, str) else lease
        if held is None or held.holder != command.holder:
            return _status(answer_of(await self._session.send(command), Granted))
        held.ensure()
        await self.confirm(command.lease_id)
        # Not kept meanwhile: the keeper would take the end of the old lease for a loss.
        kept = held.kept
        try:
            holdings.forget(held)
            return _status(answer_of(await self._session.send(command), Granted))
        except BaseException:
            # It is still ours, or nobody knows; then the next renewal tells.
            if kept is not None:
                holdings.keep_again(held, kept)
            raise

    async def spend(
        self, lease: "AsyncHeldLease | str", holder: str | None, request_id: str | None, **spent: int
    ) -> Budget:
        """Use up some of a lease's budget, all of it or nothing; return what remains."""
        command = Spend(
            tenant=self._session.tenant,
            lease_id=lease_id_of(lease),
            holder=self._session.holders.of(lease, holder),
            amounts=amounts(**spent),
            request_id=self._session.ids.name() if request_id is None else text("request_id", request_id),
        )
        await self.confirm(command.lease_id)
        return answer_of(await self._session.send(command), Spent).remaining

    async def remaining_budget(self, lease: "AsyncHeldLease | str") -> Budget:
        """Return what can still be spent from a lease, or handed on."""
        found = (await self.existing(lease)).lease
        if found.delegation is None:
            raise NothingGranted(
                f"lease {found.lease_id} on {found.resource} was acquired without scope and budget; "
                "acquire it with what it may do and spend",
                lease_id=found.lease_id,
                resource=found.resource,
            )
        return found.delegation.remaining

    async def existing(self, lease: "AsyncHeldLease | str") -> LeaseStatus:
        """Return how a lease stands; raise LeaseNotFound if there is none."""
        lease_id = lease_id_of(lease)
        status = await self._reader.get(lease_id)
        if status is None:
            raise LeaseNotFound(
                f"there is no lease {lease_id}; list the leases to find the right id", lease_id=lease_id
            )
        return status

    async def certificate(self, lease: "AsyncHeldLease") -> str:
        """Return the registrar's signed word that a held lease stands."""
        await self.confirm(lease.lease_id)
        return await self._reader.certificate(lease.lease_id, holder=lease.holder)


def _status(granted: Granted) -> LeaseStatus:
    return lasting(granted.lease, granted.expires_in_ns)

"""What a lease allows and may spend: asked of the registrar, or taken from its budget."""

from leasehold.client.async_lease import AsyncHeldLease
from leasehold.client.async_renewing import AsyncRenewing
from leasehold.client.inputs import amounts, lease_id_of, text
from leasehold.engine.desk import answer_of
from leasehold.engine.questions import LeaseStatus
from leasehold.errors import LeaseNotFound, NothingGranted
from leasehold.kernel.lease.access import check_access
from leasehold.kernel.lease.answers import Spent
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import Spend


class AsyncDelegating(AsyncRenewing):
    """The scope and the budget of leases."""

    async def spend(
        self,
        lease: AsyncHeldLease | str,
        *,
        episodes: int = 0,
        tool_calls: int = 0,
        tokens: int = 0,
        duration_ms: int = 0,
        holder: str | None = None,
        request_id: str | None = None,
    ) -> Budget:
        """Use up some of a lease's budget, all of it or nothing; return what remains.

        Raises `BudgetExceeded` if there is less of anything than asked for, and `BudgetExhausted` if any
        part is used up already. `request_id` makes a later call with the same arguments a retry of this
        one, which spends nothing more.
        """
        command = Spend(
            tenant=self._tenant,
            lease_id=lease_id_of(lease),
            holder=self._holder_of(lease) if holder is None else text("holder", holder),
            amounts=amounts(episodes=episodes, tool_calls=tool_calls, tokens=tokens, duration_ms=duration_ms),
            request_id=self._desk.ids.name() if request_id is None else text("request_id", request_id),
        )
        await self._confirm(command.lease_id)
        return answer_of(await self._send(command), Spent).remaining

    async def remaining_budget(self, lease: AsyncHeldLease | str) -> Budget:
        """Return what can still be spent from a lease, or handed on; None in it means no limit."""
        found = (await self._existing(lease)).lease
        if found.delegation is None:
            raise NothingGranted(
                f"lease {found.lease_id} on {found.resource} was acquired without scope and budget; "
                "acquire it with what it may do and spend",
                lease_id=found.lease_id,
                resource=found.resource,
            )
        return found.delegation.remaining

    async def allows(
        self,
        lease: AsyncHeldLease | str,
        *,
        work_id: str | None = None,
        tool: str | None = None,
        namespace: str | None = None,
    ) -> bool:
        """Ask the registrar whether a lease stands, with all above it, and allows every part of an access."""
        status = await self._existing(lease)
        refusal = check_access(status.lease, work_id=work_id, tool=tool, namespace=namespace)
        return status.is_live and refusal is None

    async def _existing(self, lease: AsyncHeldLease | str) -> LeaseStatus:
        lease_id = lease_id_of(lease)
        status = await self.get(lease_id)
        if status is None:
            raise LeaseNotFound(
                f"there is no lease {lease_id}; list the leases to find the right id", lease_id=lease_id
            )
        return status

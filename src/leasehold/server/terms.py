"""What holders elsewhere do with their leases: one command each, and what became of it.

Nothing is kept here: a lease that was claimed over HTTP is renewed by nobody but its holder.

A claim that waits takes no thread: the request stays open until the claim is granted, or its time is over. If
its client has left, or the server stops, the claim leaves the queue.
"""

import asyncio
from typing import Any

from litestar.di import NamedDependency

from leasehold.client.aio.waiting_room import AsyncWaitingRoom
from leasehold.client.inputs import duration_ns
from leasehold.client.waits import Claim, ended_since, undoing
from leasehold.engine.desk import answer_of
from leasehold.engine.questions import LeaseStatus, lasting
from leasehold.errors import error_of
from leasehold.kernel.lease.answers import Ended, Granted, Released, Renewal, Renewed
from leasehold.kernel.lease.commands import Acquire, ChangeMode, Release, Renew, Revoke, Transfer
from leasehold.kernel.lease.model import ReleaseReason
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.server.front import LEASE
from leasehold.server.problems import ServerStopping
from leasehold.server.routing import Asking, JsonRequest, Serving


class Terms:
    """What one request has to do with leases."""

    def __init__(self, request: JsonRequest, service: Serving, session: Asking) -> None:
        self._request = request
        self._service = service
        self.session = session

    def about(self, lease_id: str) -> None:
        """Note which lease the request is about, for its line in the log."""
        self._request.notes[LEASE] = lease_id

    def patience_ns(self, wait: float) -> int:
        """Return how long a claim waits: as it says, and no longer than the server lets anybody."""
        longest = self._service.configuration.wait_maximum
        return min(duration_ns("wait", wait), duration_ns("wait", longest))

    async def claim(self, command: Acquire | ChangeMode, patience: int) -> Granted:
        """Have a claim granted: at once or, where it may wait, after waiting for it if need be."""
        if command.wait:
            granted = await self._wait(command, patience)
        else:
            granted = answer_of(await self.session.send(command), Granted)
            if granted.ended:
                raise ended_since(granted, command.request_id)
        self.about(granted.lease.lease_id)
        return granted

    async def _wait(self, command: Acquire | ChangeMode, patience: int) -> Granted:
        asked: Claim[Any] = Claim(command)
        room = AsyncWaitingRoom(self.session, self._service.listeners)
        waiting = asyncio.create_task(room.wait(asked, patience))
        left = asyncio.create_task(self._departure())
        stopped = asyncio.create_task(self._service.stopping.wait())
        try:
            await asyncio.wait({waiting, left, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                granted, _ = waiting.result()
                return granted
            raise ServerStopping("this server is being stopped; the claim has left the queue, ask again")
        finally:
            is_answered = waiting.done()
            for task in (waiting, left, stopped):
                task.cancel()
            await asyncio.gather(waiting, left, stopped, return_exceptions=True)
            if not is_answered:
                self.session.send_blindly(undoing(asked.command, self.session.ids.new()))

    async def _departure(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass

    async def renew_many(
        self, lease_ids: tuple[str, ...], holder: str, ttl: float | None
    ) -> tuple[Renewal | Refusal, ...]:
        """Give leases of one holder more time; return what became of each."""
        command = Renew(
            tenant=self.session.tenant,
            lease_ids=lease_ids,
            holder=holder,
            ttl_ns=None if ttl is None else duration_ns("ttl", ttl),
            request_id=self.session.ids.new(),
        )
        return answer_of(await self.session.send(command), Renewed).outcomes

    async def renew(self, lease_id: str, holder: str, ttl: float | None) -> LeaseStatus:
        """Give a lease more time; raise why it has no more."""
        self.about(lease_id)
        (outcome,) = await self.renew_many((lease_id,), holder, ttl)
        if isinstance(outcome, Refusal):
            raise error_of(outcome)
        return lasting(outcome.lease, outcome.expires_in_ns)

    async def release(
        self, lease_id: str, holder: str, reason: ReleaseReason = ReleaseReason.VOLUNTARY
    ) -> LeaseStatus:
        """Give a lease back, or take back a claim that waits."""
        self.about(lease_id)
        command = Release(
            tenant=self.session.tenant,
            lease_ids=(lease_id,),
            holder=holder,
            reason=reason,
            request_id=self.session.ids.new(),
        )
        (outcome,) = answer_of(await self.session.send(command), Released).outcomes
        if isinstance(outcome, Refusal):
            raise error_of(outcome)
        return lasting(outcome.lease, 0)

    async def revoke(self, lease_id: str, operator: str, reason: str) -> Ended:
        """Forcibly end a lease."""
        self.about(lease_id)
        command = Revoke(
            tenant=self.session.tenant,
            lease_id=lease_id,
            operator=operator,
            reason=reason,
            request_id=self.session.ids.new(),
        )
        return answer_of(await self.session.send(command), Ended)

    async def transfer(self, lease_id: str, holder: str, to: str, ttl: float | None) -> LeaseStatus:
        """Hand a lease to another holder, under a new id and a higher token."""
        self.about(lease_id)
        new = self.session.ids.new()
        command = Transfer(
            tenant=self.session.tenant,
            lease_id=lease_id,
            holder=holder,
            to=to,
            new_lease_id=new,
            ttl_ns=None if ttl is None else duration_ns("ttl", ttl),
            request_id=new,
        )
        granted = answer_of(await self.session.send(command), Granted)
        return lasting(granted.lease, granted.expires_in_ns)


Holding = NamedDependency[Terms]
"""What a handler that changes leases asks for as `terms`."""

"""What holders elsewhere do with their leases: one command each, and what became of it.

Nothing is kept here: a lease that was claimed over HTTP is renewed by nobody but its holder.

A claim that waits takes no thread: the request stays open until the claim is granted, or its time is over. If
its client has left, or the server stops, the claim leaves the queue.
"""

import asyncio
from typing import Any

from leasehold.client.aio.session import AsyncSession
from leasehold.client.aio.waiting_room import AsyncWaitingRoom
from leasehold.client.inputs import duration_ns
from leasehold.client.waits import Claim, ended_since, undoing
from leasehold.engine.desk import answer_of
from leasehold.errors import error_of
from leasehold.kernel.lease.answers import Ended, Granted, Released, Renewal, Renewed
from leasehold.kernel.lease.commands import Acquire, ChangeMode, Release, Renew, Revoke, Transfer
from leasehold.kernel.lease.model import ReleaseReason
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.server.front import LEASE
from leasehold.server.problems import ServerStopping
from leasehold.server.routing import JsonRequest
from leasehold.server.service import Service


def about(request: JsonRequest, lease_id: str) -> None:
    """Note which lease a request is about, for its line in the log."""
    request.notes[LEASE] = lease_id


def patience_ns(service: Service, wait: float) -> int:
    """Return how long a claim waits: as it says, and no longer than the server lets anybody."""
    return min(duration_ns("wait", wait), duration_ns("wait", service.configuration.wait_maximum))


async def claim(
    request: JsonRequest,
    service: Service,
    session: AsyncSession,
    command: Acquire | ChangeMode,
    patience: int,
) -> Granted:
    """Have a claim granted: at once or, where it may wait, after waiting for it if need be."""
    if command.wait:
        granted = await _wait(request, service, session, command, patience)
    else:
        granted = answer_of(await session.send(command), Granted)
        if granted.ended:
            raise ended_since(granted, command.request_id)
    about(request, granted.lease.lease_id)
    return granted


async def _wait(
    request: JsonRequest,
    service: Service,
    session: AsyncSession,
    command: Acquire | ChangeMode,
    patience: int,
) -> Granted:
    asked: Claim[Any] = Claim(command)
    room = AsyncWaitingRoom(session, service.listeners)
    waiting = asyncio.create_task(room.wait(asked, patience))
    left = asyncio.create_task(_departure(request))
    stopped = asyncio.create_task(service.stopping.wait())
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
            session.send_blindly(undoing(asked.command, session.ids.new()))


async def _departure(request: JsonRequest) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def renew_many(
    session: AsyncSession, lease_ids: tuple[str, ...], holder: str, ttl: float | None
) -> tuple[Renewal | Refusal, ...]:
    """Give leases of one holder more time; return what became of each."""
    command = Renew(
        tenant=session.tenant,
        lease_ids=lease_ids,
        holder=holder,
        ttl_ns=None if ttl is None else duration_ns("ttl", ttl),
        request_id=session.ids.new(),
    )
    return answer_of(await session.send(command), Renewed).outcomes


async def renew(session: AsyncSession, lease_id: str, holder: str, ttl: float | None) -> Renewal:
    """Give a lease more time; raise why it has no more."""
    (outcome,) = await renew_many(session, (lease_id,), holder, ttl)
    if isinstance(outcome, Refusal):
        raise error_of(outcome)
    return outcome


async def release(
    session: AsyncSession, lease_id: str, holder: str, reason: ReleaseReason = ReleaseReason.VOLUNTARY
) -> Ended:
    """Give a lease back, or take back a claim that waits."""
    command = Release(
        tenant=session.tenant,
        lease_ids=(lease_id,),
        holder=holder,
        reason=reason,
        request_id=session.ids.new(),
    )
    (outcome,) = answer_of(await session.send(command), Released).outcomes
    if isinstance(outcome, Refusal):
        raise error_of(outcome)
    return outcome


async def revoke(session: AsyncSession, lease_id: str, operator: str, reason: str) -> Ended:
    """Forcibly end a lease."""
    command = Revoke(
        tenant=session.tenant,
        lease_id=lease_id,
        operator=operator,
        reason=reason,
        request_id=session.ids.new(),
    )
    return answer_of(await session.send(command), Ended)


async def transfer(session: AsyncSession, lease_id: str, holder: str, to: str, ttl: float | None) -> Granted:
    """Hand a lease to another holder, under a new id and a higher token."""
    new = session.ids.new()
    command = Transfer(
        tenant=session.tenant,
        lease_id=lease_id,
        holder=holder,
        to=to,
        new_lease_id=new,
        ttl_ns=None if ttl is None else duration_ns("ttl", ttl),
        request_id=new,
    )
    return answer_of(await session.send(command), Granted)

"""Plain REST for leases: for people, and for programs in any language.

Each request is one command or question at the desk of its caller; nothing goes around it. A lease that was
acquired here is bound to nothing on this machine, and nobody renews it but its holder.

A claim that waits takes no thread: the request stays open until the claim is granted, or its time is over. If
its client has left, it leaves the queue.
"""

import asyncio
from typing import Annotated, Any

from litestar import Request, Router, get, post
from litestar.params import Body, Parameter

from leasehold.client.aio.reader import AsyncReader
from leasehold.client.aio.session import AsyncSession
from leasehold.client.aio.waiting_room import AsyncWaitingRoom
from leasehold.client.inputs import claim_ids, duration_ns
from leasehold.client.waits import Claim, ended_since, undoing
from leasehold.engine.desk import answer_of
from leasehold.errors import error_of
from leasehold.kernel.lease.answers import Ended, Granted, Released, Renewed
from leasehold.kernel.lease.commands import Acquire, Release, Renew, Revoke, Transfer, Wanted
from leasehold.kernel.lease.decision import not_found
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.server.bodies import (
    LEASE_EXAMPLE,
    AcquireBody,
    CertificateBody,
    GrantBody,
    LeaseBody,
    PageBody,
    QueueBody,
    ReleaseBody,
    RenewalBody,
    RenewalsBody,
    RenewBody,
    RenewedBody,
    RevokeBody,
    TransferBody,
    granted_body,
    lease_body,
    waiter_body,
)
from leasehold.server.front import LEASE
from leasehold.server.problems import ServerStopping
from leasehold.server.routing import answers, ask_for, told
from leasehold.server.service import Service

_Request = Request[Any, Any, Any]
_PAGE_MAXIMUM = 1_000
_ENDED_EXAMPLE = LEASE_EXAMPLE | {"state": "released", "expires_in": 0.0, "release_reason": "voluntary"}


@post(
    "/v1/leases",
    summary="Acquire a resource",
    responses=answers(201, GrantBody, {"lease": LEASE_EXAMPLE, "also": [], "repeated": False}, 404, 409, 410),
)
async def acquire(
    request: _Request,
    service: Service,
    session: AsyncSession,
    data: Annotated[AcquireBody, Body(examples=ask_for(resource="report-42", holder="ann", ttl=30, wait=10))],
) -> GrantBody:
    """Own a resource for `ttl` seconds; with `wait`, after waiting for it if need be."""
    patience_ns = min(duration_ns("wait", data.wait), duration_ns("wait", service.configuration.wait_maximum))
    lease_id, request_id = claim_ids(session.ids, data.request_id)
    command = Acquire(
        tenant=session.tenant,
        lease_id=lease_id,
        resource=data.resource,
        holder=data.holder,
        ttl_ns=duration_ns("ttl", data.ttl),
        mode=data.mode,
        adopt=data.adopt,
        max_renewals=data.max_renewals,
        bound_to_boot=False,
        metadata=data.metadata,
        config_version=data.config_version,
        zone_version=data.zone_version,
        scope=data.scope,
        budget=data.budget,
        also=tuple(Wanted(resource=one.resource, mode=one.mode) for one in data.also),
        wait=patience_ns > 0,
        gives_up=patience_ns > 0,
        priority=data.priority,
        lock_delay_ns=duration_ns("lock_delay", data.lock_delay),
        request_id=request_id,
    )
    if patience_ns == 0:
        granted = answer_of(await session.send(command), Granted)
        if granted.ended:
            raise ended_since(granted, request_id)
    else:
        granted = await _wait(request, service, session, command, patience_ns)
    request.scope[LEASE] = granted.lease.lease_id  # type: ignore[typeddict-unknown-key]
    return GrantBody(
        lease=granted_body(granted.lease, granted.expires_in_ns),
        also=[granted_body(lease, granted.expires_in_ns) for lease in granted.also],
        repeated=granted.repeated,
    )


async def _wait(
    request: _Request, service: Service, session: AsyncSession, command: Acquire, patience_ns: int
) -> Granted:
    """Wait for a claim; leave the queue if the client has left, or the server stops."""
    claim = Claim(command)
    room = AsyncWaitingRoom(session, service.listeners)
    waiting = asyncio.create_task(room.wait(claim, patience_ns))
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
            session.send_blindly(undoing(claim.command, session.ids.new()))


async def _departure(request: _Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


@get(
    "/v1/leases",
    summary="List and search leases",
    responses=answers(200, PageBody, {"leases": [LEASE_EXAMPLE], "next": None}),
)
async def list_leases(
    *,
    session: AsyncSession,
    resource: str | None = None,
    prefix: Annotated[str | None, Parameter(description="Resources that begin with this.")] = None,
    holder: str | None = None,
    states: Annotated[
        list[str] | None,
        Parameter(query="state", description="In these states; `any` for all. Default: active."),
    ] = None,
    after: Annotated[str | None, Parameter(description="`next` of the page before.")] = None,
    limit: Annotated[int, Parameter(ge=1, le=_PAGE_MAXIMUM)] = 100,
) -> PageBody:
    """Return a page of leases, in the order of their ids."""
    wanted = ["active"] if states is None else [] if states == ["any"] else states
    page = await AsyncReader(session).list(
        resource=resource, prefix=prefix, holder=holder, states=wanted, after=after, limit=limit
    )
    return PageBody(leases=[lease_body(status) for status in page.statuses], next=page.next)


@get(
    "/v1/leases/{lease_id:str}",
    summary="Look at a lease",
    responses=answers(200, LeaseBody, LEASE_EXAMPLE, 404),
)
async def get_lease(session: AsyncSession, lease_id: str) -> LeaseBody:
    """Return a lease by its id, also one that has ended."""
    status = await AsyncReader(session).get(lease_id)
    if status is None:
        raise error_of(not_found(lease_id))
    return lease_body(status)


@post(
    "/v1/leases/{lease_id:str}/renew",
    summary="Renew a lease",
    status_code=200,
    responses=answers(200, LeaseBody, LEASE_EXAMPLE | {"renewal_count": 1}, 404, 409, 410),
)
async def renew(
    request: _Request,
    session: AsyncSession,
    lease_id: str,
    data: Annotated[RenewBody, Body(examples=ask_for(holder="ann", ttl=30))],
) -> LeaseBody:
    """Extend a lease from now, for `ttl` seconds or its own TTL again."""
    request.scope[LEASE] = lease_id  # type: ignore[typeddict-unknown-key]
    (outcome,) = await _renewed(session, (lease_id,), data)
    if isinstance(outcome, Refusal):
        raise error_of(outcome)
    return granted_body(outcome.lease, outcome.expires_in_ns)


@post(
    "/v1/renewals",
    summary="Renew many leases of one holder",
    status_code=200,
    responses=answers(200, RenewedBody, {"outcomes": [{"lease": LEASE_EXAMPLE, "problem": None}]}),
)
async def renew_many(
    session: AsyncSession,
    data: Annotated[
        RenewalsBody, Body(examples=ask_for(holder="ann", lease_ids=[LEASE_EXAMPLE["lease_id"]], ttl=30))
    ],
) -> RenewedBody:
    """Extend up to 1,000 leases in one step; say of each how it stands, or why it was not extended."""
    outcomes = await _renewed(session, tuple(data.lease_ids), data)
    return RenewedBody(
        outcomes=[
            RenewalBody(problem=told(error_of(outcome)))
            if isinstance(outcome, Refusal)
            else RenewalBody(lease=granted_body(outcome.lease, outcome.expires_in_ns))
            for outcome in outcomes
        ]
    )


async def _renewed(session: AsyncSession, lease_ids: tuple[str, ...], data: RenewBody) -> tuple[Any, ...]:
    command = Renew(
        tenant=session.tenant,
        lease_ids=lease_ids,
        holder=data.holder,
        ttl_ns=None if data.ttl is None else duration_ns("ttl", data.ttl),
        request_id=session.ids.new(),
    )
    return answer_of(await session.send(command), Renewed).outcomes


@post(
    "/v1/leases/{lease_id:str}/release",
    summary="Release a lease",
    status_code=200,
    responses=answers(200, LeaseBody, _ENDED_EXAMPLE, 404, 409, 410),
)
async def release(
    request: _Request,
    session: AsyncSession,
    lease_id: str,
    data: Annotated[ReleaseBody, Body(examples=ask_for(holder="ann"))],
) -> LeaseBody:
    """Give a lease back, or take back a claim that waits. To release what is over already is fine."""
    request.scope[LEASE] = lease_id  # type: ignore[typeddict-unknown-key]
    command = Release(
        tenant=session.tenant,
        lease_ids=(lease_id,),
        holder=data.holder,
        reason=data.reason,
        request_id=session.ids.new(),
    )
    (outcome,) = answer_of(await session.send(command), Released).outcomes
    if isinstance(outcome, Refusal):
        raise error_of(outcome)
    return granted_body(outcome.lease, 0)


@post(
    "/v1/leases/{lease_id:str}/revoke",
    summary="Revoke a lease",
    status_code=200,
    responses=answers(
        200,
        LeaseBody,
        LEASE_EXAMPLE | {"state": "revoked", "expires_in": 0.0, "ended_by": "olga", "end_reason": "stuck"},
        404,
        409,
        410,
    ),
)
async def revoke(
    request: _Request,
    session: AsyncSession,
    lease_id: str,
    data: Annotated[RevokeBody, Body(examples=ask_for(operator="olga", reason="stuck since noon"))],
) -> LeaseBody:
    """Forcibly end a lease: for operators."""
    request.scope[LEASE] = lease_id  # type: ignore[typeddict-unknown-key]
    command = Revoke(
        tenant=session.tenant,
        lease_id=lease_id,
        operator=data.operator,
        reason=data.reason,
        request_id=session.ids.new(),
    )
    return granted_body(answer_of(await session.send(command), Ended).lease, 0)


@post(
    "/v1/leases/{lease_id:str}/transfer",
    summary="Transfer a lease",
    status_code=200,
    responses=answers(200, LeaseBody, LEASE_EXAMPLE | {"holder": "bob"}, 404, 409, 410),
)
async def transfer(
    request: _Request,
    session: AsyncSession,
    lease_id: str,
    data: Annotated[TransferBody, Body(examples=ask_for(holder="ann", to="bob"))],
) -> LeaseBody:
    """Hand a lease to another holder, under a new id and a higher token. The old one ends with it."""
    new = session.ids.new()
    command = Transfer(
        tenant=session.tenant,
        lease_id=lease_id,
        holder=data.holder,
        to=data.to,
        new_lease_id=new,
        ttl_ns=None if data.ttl is None else duration_ns("ttl", data.ttl),
        request_id=new,
    )
    request.scope[LEASE] = lease_id  # type: ignore[typeddict-unknown-key]
    granted = answer_of(await session.send(command), Granted)
    return granted_body(granted.lease, granted.expires_in_ns)


@get(
    "/v1/queue",
    summary="Look at a queue",
    responses=answers(200, QueueBody, {"resource": "report-42", "held_by": [LEASE_EXAMPLE], "waiters": []}),
)
async def get_queue(session: AsyncSession, resource: str) -> QueueBody:
    """Return who holds a resource, and who waits for it, first in line first."""
    reader = AsyncReader(session)
    held, waiters = await reader.inspect(resource), await reader.queue(resource)
    return QueueBody(
        resource=resource, held_by=[lease_body(one) for one in held], waiters=list(map(waiter_body, waiters))
    )


@get(
    "/v1/leases/{lease_id:str}/certificate",
    summary="Get a certificate of a lease",
    responses=answers(200, CertificateBody, {"certificate": "eyJhbGciOiJFZERTQSIs…"}, 404, 409, 410),
)
async def get_certificate(session: AsyncSession, lease_id: str) -> CertificateBody:
    """Return the registrar's signed word that a lease stands, for those who cannot ask it themselves."""
    return CertificateBody(certificate=await AsyncReader(session).certificate(lease_id))


router = Router(
    path="/",
    route_handlers=[
        acquire,
        list_leases,
        get_lease,
        renew,
        renew_many,
        release,
        revoke,
        transfer,
        get_queue,
        get_certificate,
    ],
    tags=["leases"],
)

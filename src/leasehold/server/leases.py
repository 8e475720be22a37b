"""Plain REST for leases: for people, and for programs in any language.

Each request is one command or question at the desk of its caller; nothing goes around it. A lease that was
acquired here is bound to nothing on this machine, and nobody renews it but its holder.
"""

from typing import Annotated

from litestar import Router, get, post
from litestar.params import Body, FromPath, FromQuery, QueryParameter
from msgspec.structs import asdict

from leasehold.client.aio.reader import AsyncReader
from leasehold.client.inputs import duration_ns
from leasehold.errors import error_of
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import Acquire, Wanted
from leasehold.kernel.lease.decision import not_found
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.server import terms
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
from leasehold.server.routing import PAGE_MAXIMUM, Asking, JsonRequest, Serving, answers, ask_for, told

_ENDED_EXAMPLE = LEASE_EXAMPLE | {"state": "released", "expires_in": 0.0, "release_reason": "voluntary"}


@post(
    "/v1/leases",
    summary="Acquire a resource",
    responses=answers(201, GrantBody, {"lease": LEASE_EXAMPLE, "also": [], "repeated": False}, 404, 409, 410),
)
async def acquire(
    request: JsonRequest,
    service: Serving,
    session: Asking,
    data: Annotated[AcquireBody, Body(examples=ask_for(resource="report-42", holder="ann", ttl=30, wait=10))],
) -> GrantBody:
    """Own a resource for `ttl` seconds; with `wait`, after waiting for it if need be."""
    patience = terms.patience_ns(service, data.wait)
    # Never an id of the caller's choosing: that it is taken would tell of another tenant's lease.
    lease_id = session.ids.new()
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
        scope=None if data.scope is None else Scope(**asdict(data.scope)),
        budget=None if data.budget is None else Budget(**asdict(data.budget)),
        also=tuple(Wanted(resource=one.resource, mode=one.mode) for one in data.also),
        wait=patience > 0,
        gives_up=patience > 0,
        priority=data.priority,
        lock_delay_ns=duration_ns("lock_delay", data.lock_delay),
        request_id=lease_id if data.request_id is None else data.request_id,
    )
    granted = await terms.claim(request, service, session, command, patience)
    return GrantBody(
        lease=granted_body(granted.lease, granted.expires_in_ns),
        also=[granted_body(lease, granted.expires_in_ns) for lease in granted.also],
        repeated=granted.repeated,
    )


@get(
    "/v1/leases",
    summary="List and search leases",
    responses=answers(200, PageBody, {"leases": [LEASE_EXAMPLE], "next": None}),
)
async def list_leases(
    *,
    session: Asking,
    resource: FromQuery[str | None] = None,
    prefix: Annotated[str | None, QueryParameter(description="Resources that begin with this.")] = None,
    holder: FromQuery[str | None] = None,
    states: Annotated[
        list[str] | None,
        QueryParameter(name="state", description="In these states; `any` for all. Default: active."),
    ] = None,
    after: Annotated[str | None, QueryParameter(description="`next` of the page before.")] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=PAGE_MAXIMUM)] = 100,
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
async def get_lease(session: Asking, lease_id: FromPath[str]) -> LeaseBody:
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
    request: JsonRequest,
    session: Asking,
    lease_id: FromPath[str],
    data: Annotated[RenewBody, Body(examples=ask_for(holder="ann", ttl=30))],
) -> LeaseBody:
    """Extend a lease from now, for `ttl` seconds or its own TTL again."""
    terms.about(request, lease_id)
    renewal = await terms.renew(session, lease_id, data.holder, data.ttl)
    return granted_body(renewal.lease, renewal.expires_in_ns)


@post(
    "/v1/renewals",
    summary="Renew many leases of one holder",
    status_code=200,
    responses=answers(200, RenewedBody, {"outcomes": [{"lease": LEASE_EXAMPLE, "problem": None}]}),
)
async def renew_many(
    session: Asking,
    data: Annotated[
        RenewalsBody, Body(examples=ask_for(holder="ann", lease_ids=[LEASE_EXAMPLE["lease_id"]], ttl=30))
    ],
) -> RenewedBody:
    """Extend up to 1,000 leases in one step; say of each how it stands, or why it was not extended."""
    outcomes = await terms.renew_many(session, tuple(data.lease_ids), data.holder, data.ttl)
    return RenewedBody(
        outcomes=[
            RenewalBody(problem=told(error_of(outcome)))
            if isinstance(outcome, Refusal)
            else RenewalBody(lease=granted_body(outcome.lease, outcome.expires_in_ns))
            for outcome in outcomes
        ]
    )


@post(
    "/v1/leases/{lease_id:str}/release",
    summary="Release a lease",
    status_code=200,
    responses=answers(200, LeaseBody, _ENDED_EXAMPLE, 404, 409, 410),
)
async def release(
    request: JsonRequest,
    session: Asking,
    lease_id: FromPath[str],
    data: Annotated[ReleaseBody, Body(examples=ask_for(holder="ann"))],
) -> LeaseBody:
    """Give a lease back, or take back a claim that waits. To release what is over already is fine."""
    terms.about(request, lease_id)
    ended = await terms.release(session, lease_id, data.holder, data.reason)
    return granted_body(ended.lease, 0)


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
    request: JsonRequest,
    session: Asking,
    lease_id: FromPath[str],
    data: Annotated[RevokeBody, Body(examples=ask_for(operator="olga", reason="stuck since noon"))],
) -> LeaseBody:
    """Forcibly end a lease: for operators."""
    terms.about(request, lease_id)
    ended = await terms.revoke(session, lease_id, data.operator, data.reason)
    return granted_body(ended.lease, 0)


@post(
    "/v1/leases/{lease_id:str}/transfer",
    summary="Transfer a lease",
    status_code=200,
    responses=answers(200, LeaseBody, LEASE_EXAMPLE | {"holder": "bob"}, 404, 409, 410),
)
async def transfer(
    request: JsonRequest,
    session: Asking,
    lease_id: FromPath[str],
    data: Annotated[TransferBody, Body(examples=ask_for(holder="ann", to="bob"))],
) -> LeaseBody:
    """Hand a lease to another holder, under a new id and a higher token. The old one ends with it."""
    terms.about(request, lease_id)
    granted = await terms.transfer(session, lease_id, data.holder, data.to, data.ttl)
    return granted_body(granted.lease, granted.expires_in_ns)


@get(
    "/v1/queue",
    summary="Look at a queue",
    responses=answers(200, QueueBody, {"resource": "report-42", "held_by": [LEASE_EXAMPLE], "waiters": []}),
)
async def get_queue(session: Asking, resource: FromQuery[str]) -> QueueBody:
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
async def get_certificate(
    session: Asking,
    lease_id: FromPath[str],
    holder: Annotated[
        str, QueryParameter(description="Who has to hold it: needed with a key that is bound to holders.")
    ] = "",
) -> CertificateBody:
    """Return the registrar's signed word that a lease stands, for those who cannot ask it themselves."""
    return CertificateBody(certificate=await AsyncReader(session).certificate(lease_id, holder=holder))


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

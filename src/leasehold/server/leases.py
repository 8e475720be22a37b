"""Plain REST for leases: for people, and for programs in any language.

Each request is one command or question at the desk of its caller; nothing goes around it. A lease that was
acquired here is bound to nothing on this machine, and nobody renews it but its holder.
"""

from typing import Annotated

from litestar import Router
from litestar.params import FromPath, FromQuery, QueryParameter
from msgspec.structs import asdict

from leasehold.client.aio.reader import AsyncReader
from leasehold.client.inputs import duration_ns, facts_of
from leasehold.errors import error_of
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import Acquire, Wanted
from leasehold.kernel.lease.decision import not_found
from leasehold.kernel.lease.scope import Scope
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
from leasehold.server.routing import GONE, Asking, Limit, get, post, told
from leasehold.server.terms import Holding

_ENDED_EXAMPLE = LEASE_EXAMPLE | {"state": "released", "expires_in": 0.0, "release_reason": "voluntary"}


@post(
    "/v1/leases",
    "Acquire a resource",
    *GONE,
    body={"resource": "report-42", "holder": "ann", "ttl": 30, "wait": 10},
    answer={"lease": LEASE_EXAMPLE, "also": [], "repeated": False},
    status=201,
)
async def acquire(terms: Holding, data: AcquireBody) -> GrantBody:
    """Own a resource for `ttl` seconds; with `wait`, after waiting for it if need be."""
    patience = terms.patience_ns(data.wait)
    # Never an id of the caller's choosing: that it is taken would tell of another tenant's lease.
    lease_id = terms.session.ids.new()
    command = Acquire(
        tenant=terms.session.tenant,
        lease_id=lease_id,
        resource=data.resource,
        holder=data.holder,
        ttl_ns=duration_ns("ttl", data.ttl),
        mode=data.mode,
        adopt=data.adopt,
        max_renewals=data.max_renewals,
        bound_to_boot=False,
        metadata=facts_of(data.metadata, data.reason),
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
    granted = await terms.claim(command, patience)
    return GrantBody(
        lease=granted_body(granted.lease, granted.expires_in_ns),
        also=[granted_body(lease, granted.expires_in_ns) for lease in granted.also],
        repeated=granted.repeated,
    )


@get("/v1/leases", "List and search leases", answer={"leases": [LEASE_EXAMPLE], "next": None})
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
    limit: Limit = 100,
) -> PageBody:
    """Return a page of leases, in the order of their ids."""
    wanted = ["active"] if states is None else [] if states == ["any"] else states
    page = await AsyncReader(session).list(
        resource=resource, prefix=prefix, holder=holder, states=wanted, after=after, limit=limit
    )
    return PageBody(leases=[lease_body(status) for status in page.statuses], next=page.next)


@get("/v1/leases/{lease_id:str}", "Look at a lease", 404, answer=LEASE_EXAMPLE)
async def get_lease(session: Asking, lease_id: FromPath[str]) -> LeaseBody:
    """Return a lease by its id, also one that has ended."""
    status = await AsyncReader(session).get(lease_id)
    if status is None:
        raise error_of(not_found(lease_id))
    return lease_body(status)


@post(
    "/v1/leases/{lease_id:str}/renew",
    "Renew a lease",
    *GONE,
    body={"holder": "ann", "ttl": 30},
    answer=LEASE_EXAMPLE | {"renewal_count": 1},
)
async def renew(terms: Holding, lease_id: FromPath[str], data: RenewBody) -> LeaseBody:
    """Extend a lease from now, for `ttl` seconds or its own TTL again."""
    return lease_body(await terms.renew(lease_id, data.holder, data.ttl))


@post(
    "/v1/renewals",
    "Renew many leases of one holder",
    body={"holder": "ann", "lease_ids": [LEASE_EXAMPLE["lease_id"]], "ttl": 30},
    answer={"outcomes": [{"lease": LEASE_EXAMPLE, "problem": None}]},
)
async def renew_many(terms: Holding, data: RenewalsBody) -> RenewedBody:
    """Extend up to 1,000 leases in one step; say of each how it stands, or why it was not extended."""
    outcomes = await terms.renew_many(tuple(data.lease_ids), data.holder, data.ttl)
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
    "Release a lease",
    *GONE,
    body={"holder": "ann"},
    answer=_ENDED_EXAMPLE,
)
async def release(terms: Holding, lease_id: FromPath[str], data: ReleaseBody) -> LeaseBody:
    """Give a lease back, or take back a claim that waits. To release what is over already is fine."""
    return lease_body(await terms.release(lease_id, data.holder, data.reason))


@post(
    "/v1/leases/{lease_id:str}/revoke",
    "Revoke a lease",
    *GONE,
    body={"operator": "olga", "reason": "stuck since noon"},
    answer=LEASE_EXAMPLE | {"state": "revoked", "expires_in": 0.0, "ended_by": "olga", "end_reason": "stuck"},
)
async def revoke(terms: Holding, lease_id: FromPath[str], data: RevokeBody) -> LeaseBody:
    """Forcibly end a lease: for operators."""
    ended = await terms.revoke(lease_id, data.operator, data.reason)
    return granted_body(ended.lease, 0)


@post(
    "/v1/leases/{lease_id:str}/transfer",
    "Transfer a lease",
    *GONE,
    body={"holder": "ann", "to": "bob"},
    answer=LEASE_EXAMPLE | {"holder": "bob"},
)
async def transfer(terms: Holding, lease_id: FromPath[str], data: TransferBody) -> LeaseBody:
    """Hand a lease to another holder, under a new id and a higher token. The old one ends with it."""
    return lease_body(await terms.transfer(lease_id, data.holder, data.to, data.ttl))


@get(
    "/v1/queue",
    "Look at a queue",
    answer={"resource": "report-42", "held_by": [LEASE_EXAMPLE], "waiters": []},
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
    "Get a certificate of a lease",
    *GONE,
    answer={"certificate": "eyJhbGciOiJFZERTQSIs…"},
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

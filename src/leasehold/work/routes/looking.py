"""How work stands, over plain REST: nothing here changes anything."""

from typing import Annotated

from litestar.params import FromQuery, QueryParameter

from leasehold.server.bodies import entry_body
from leasehold.server.routing import Asking, Limit, get
from leasehold.work.aio.face import AsyncWork
from leasehold.work.law.model import OFFSET_MAXIMUM
from leasehold.work.routes.bodies import (
    DOMAIN_EXAMPLE,
    DomainBody,
    DomainsBody,
    FailedOffsetsBody,
    OffsetHistoryBody,
    WatermarkBody,
    domain_body,
    failed_body,
)


@get(
    "/domains",
    "List domains",
    answer={"domains": [DOMAIN_EXAMPLE | {"processed": [], "failed": []}], "next": None},
)
async def list_domains(
    session: Asking,
    after: Annotated[str, QueryParameter(description="`next` of the page before.")] = "",
    limit: Limit = 100,
) -> DomainsBody:
    """Return a page of domains in the order of their names."""
    found = await AsyncWork(session).domains(after=after, limit=limit)
    return DomainsBody(
        domains=[domain_body(one) for one in found],
        next=found[-1].domain if len(found) == limit else None,
    )


@get("/state", "Look at a domain", answer=DOMAIN_EXAMPLE)
async def get_state(
    session: Asking,
    domain: FromQuery[str],
    ranges_from: Annotated[
        int, QueryParameter(ge=0, le=OFFSET_MAXIMUM, description="Ranges from here on.")
    ] = 0,
    limit: Limit = 100,
) -> DomainBody:
    """Return how a domain stands. One that nobody has ever used is idle."""
    return domain_body(await AsyncWork(session).state(domain, ranges_from=ranges_from, limit=limit))


@get("/watermark", "Get the watermark of a domain", answer={"watermark": 41})
async def get_watermark(session: Asking, domain: FromQuery[str]) -> WatermarkBody:
    """Return below which offset everything is terminal: what to commit upstream."""
    return WatermarkBody(watermark=await AsyncWork(session).watermark(domain))


@get(
    "/failed",
    "List offsets that were given up",
    answer={
        "offsets": [
            {"offset": 40, "reason": "timeout", "retry_count": 4, "failed_at": "2026-11-17T12:00:00.000000Z"}
        ],
        "next": None,
    },
)
async def list_failed(
    session: Asking,
    domain: FromQuery[str],
    after: Annotated[
        int, QueryParameter(ge=-1, le=OFFSET_MAXIMUM, description="`next` of the page before.")
    ] = -1,
    limit: Limit = 100,
) -> FailedOffsetsBody:
    """Return a page of the offsets that were given up, lowest first, with the reason for each."""
    found = await AsyncWork(session).failed(domain, after=after, limit=limit)
    return FailedOffsetsBody(
        offsets=[failed_body(one) for one in found],
        next=found[-1].offset if len(found) == limit else None,
    )


@get(
    "/history",
    "Read what happened to an offset",
    answer={
        "entries": [
            {
                "position": 7,
                "type": "work.acquired",
                "at": "2026-11-17T12:00:00.000000Z",
                "actor": "worker-1",
                "domain": "orders",
                "offset": 41,
                "token": 229613453148161,
            }
        ],
        "next": None,
    },
)
async def get_history(
    session: Asking,
    domain: FromQuery[str],
    offset: Annotated[int, QueryParameter(ge=0, le=OFFSET_MAXIMUM)],
    after: Annotated[int, QueryParameter(ge=0, le=OFFSET_MAXIMUM, description="Continue after this.")] = 0,
    limit: Limit = 100,
) -> OffsetHistoryBody:
    """Return a page of what happened to an offset, oldest first."""
    entries = await AsyncWork(session).history(domain, offset, after=after, limit=limit)
    return OffsetHistoryBody(
        entries=[entry_body(entry) for entry in entries],
        next=entries[-1].position if len(entries) == limit else None,
    )


HANDLERS = (list_domains, get_state, get_watermark, list_failed, get_history)

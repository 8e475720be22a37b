"""What consumers do over plain REST: one command each."""

from leasehold.client.aio.session import AsyncSession
from leasehold.server.routing import Asking, post
from leasehold.work.aio.face import AsyncWork
from leasehold.work.law.answers import Acquired
from leasehold.work.routes.bodies import (
    ACQUIRED_EXAMPLE,
    AcquiredBody,
    AcquireWorkBody,
    EnqueueBody,
    EnqueuedBody,
    FailBody,
    FailedBody,
    GiveBackBody,
    GivenBackBody,
    KeepAliveBody,
    KeptBody,
    StartAtBody,
    StartedBody,
    SucceedBody,
    SucceededBody,
    acquired_body,
)

_TOKEN = ACQUIRED_EXAMPLE["token"]


def _work(session: AsyncSession, holder: str) -> AsyncWork:
    return AsyncWork(session.acting_as(holder))


@post(
    "/acquire",
    "Acquire an offset",
    409,
    410,
    body={"domain": "orders", "offset": 41, "holder": "worker-1", "ttl": 60},
    answer=ACQUIRED_EXAMPLE,
)
async def acquire(session: Asking, data: AcquireWorkBody) -> AcquiredBody:
    """Ask to work on an offset. `outcome` says whether you may: only with ACQUIRED.

    409 BACKLOG_ORDERING: the domain is idle, and another offset, `expected`, has to be acquired first.
    """
    acquired = await _work(session, data.holder).try_acquire(
        data.domain,
        data.offset,
        ttl=data.ttl,
        max_retries=data.max_retries,
        request_id=data.request_id,
    )
    return acquired_body(acquired)


@post(
    "/succeed",
    "Say that the offset in flight is processed",
    404,
    410,
    body={"domain": "orders", "token": _TOKEN, "holder": "worker-1"},
    answer={"outcome": "NEXT_HINT", "next_offset": 42, "acquired": None},
)
async def succeed(session: Asking, data: SucceedBody) -> SucceededBody:
    """End the offset in flight. `next_offset` is the head of the backlog.

    After `hand_off` that is in flight already: work on it only if `acquired` is there.

    404 NO_LEASE: nothing is in flight. 410 TOKEN_MISMATCH: somebody else works on the domain now.
    """
    succeeded = await _work(session, data.holder).succeed(
        data.domain, data.token, hand_off=data.hand_off, request_id=data.request_id
    )
    return SucceededBody(
        outcome=succeeded.outcome,
        next_offset=succeeded.next_offset,
        acquired=_handed_off(succeeded.acquired),
    )


@post(
    "/fail",
    "Say that an attempt has failed",
    404,
    410,
    body={"domain": "orders", "token": _TOKEN, "holder": "worker-1", "reason": "timeout"},
    answer={"outcome": "RETRY_SCHEDULED", "retry_count": 1, "next_offset": None, "acquired": None},
)
async def fail(session: Asking, data: FailBody) -> FailedBody:
    """Count a failed attempt. The offset stays in flight, to be tried again, or is given up in the end."""
    failed = await _work(session, data.holder).fail(
        data.domain,
        data.token,
        reason=data.reason,
        max_retries=data.max_retries,
        hand_off=data.hand_off,
        request_id=data.request_id,
    )
    return FailedBody(
        outcome=failed.outcome,
        retry_count=failed.retry_count,
        next_offset=failed.next_offset,
        acquired=_handed_off(failed.acquired),
    )


def _handed_off(acquired: Acquired | None) -> AcquiredBody | None:
    return None if acquired is None else acquired_body(acquired)


@post(
    "/give-back",
    "Give the offset in flight back",
    404,
    410,
    body={"domain": "orders", "token": _TOKEN, "holder": "worker-1"},
    answer={"offset": 41},
)
async def give_back(session: Asking, data: GiveBackBody) -> GivenBackBody:
    """Let the offset in flight go back to the head of the backlog, without counting a failed attempt."""
    offset = await _work(session, data.holder).give_back(data.domain, data.token)
    return GivenBackBody(offset=offset)


@post(
    "/keep-alive",
    "Keep the offset in flight alive",
    404,
    410,
    body={"domain": "orders", "token": _TOKEN, "holder": "worker-1", "ttl": 60},
    answer={"expires_in": 60.0},
)
async def keep_alive(session: Asking, data: KeepAliveBody) -> KeptBody:
    """Give the offset in flight more time: for `ttl` seconds from now, or its own TTL again."""
    kept = await _work(session, data.holder).keep_alive(data.domain, data.token, ttl=data.ttl)
    return KeptBody(expires_in=kept.expires_in)


@post(
    "/enqueue",
    "Put offsets into the backlog",
    409,
    body={"domain": "orders", "offsets": [42, 43, 44], "holder": "reader"},
    answer={"added": 3},
)
async def enqueue(session: Asking, data: EnqueueBody) -> EnqueuedBody:
    """Put offsets at the end of the backlog; those that are there, in flight or terminal are left out."""
    added = await _work(session, data.holder).enqueue(data.domain, data.offsets, request_id=data.request_id)
    return EnqueuedBody(added=added)


@post(
    "/start-at",
    "Let a domain start at an offset",
    409,
    body={"domain": "orders", "offset": 1000, "holder": "olga"},
    answer={"start": 1000},
)
async def start_at(session: Asking, data: StartAtBody) -> StartedBody:
    """Let every offset below count as processed. It never goes back.

    409 WORK_BELOW_START: something below is in flight or in the backlog.
    """
    return StartedBody(start=await _work(session, data.holder).start_at(data.domain, data.offset))


HANDLERS = (acquire, succeed, fail, give_back, keep_alive, enqueue, start_at)

"""Is the server alive, can it work, and what does it do: `/healthz`, `/readyz`, `/metrics`.

Anybody may ask for the first two, which tell nothing of what the store contains. Metrics are about all
tenants: they need an access key that is bound to none.
"""

import asyncio
import time
from typing import Any

import msgspec
from litestar import Router, get
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.response import Response

from leasehold.engine.port import EntryQuery, Store, WouldBlock
from leasehold.engine.questions import FindHead
from leasehold.engine.sealing import sealed_by
from leasehold.engine.signing import key_id_of
from leasehold.errors import NotPermitted
from leasehold.kernel.ledger.authority import observe
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND
from leasehold.server.identity import CALLER
from leasehold.server.meters import CONTENT_TYPE
from leasehold.server.routing import Asking, JsonRequest, Serving, answers, problems
from leasehold.stores.locate import sqlite_path
from leasehold.stores.sqlite.files import refuse_full

_GOOD_SECONDS = 1.0
"""How long a look at the store is good for: so nobody can keep it busy by asking."""
_CLOCK_BACK_NS = 60 * NANOSECONDS_PER_SECOND
"""How far the wall clock may be behind the last entry before it is called insane."""


class HealthBody(msgspec.Struct, kw_only=True):
    """The server answers."""

    status: str


class ReadyBody(msgspec.Struct, kw_only=True):
    """Whether the server can work, and what was looked at."""

    ready: bool
    checks: dict[str, str]
    """`ok`, or what is wrong, by what was looked at."""


@get(
    "/healthz",
    summary="Is the server alive?",
    security=[{}],
    responses=answers(200, HealthBody, {"status": "ok"}),
)
async def get_health() -> HealthBody:
    """Answer."""
    return HealthBody(status="ok")


_READY_EXAMPLE = {"ready": True, "checks": {"store": "ok", "ledger": "ok", "clock": "ok", "server": "ok"}}


@get(
    "/readyz",
    summary="Can the server work?",
    security=[{}],
    responses=answers(200, ReadyBody, _READY_EXAMPLE)
    | {503: ResponseSpec(ReadyBody, description="It cannot, for now.", generate_examples=False)},
)
async def get_readiness(service: Serving, readiness: NamedDependency["Readiness"]) -> Response[ReadyBody]:
    """Look whether the store can be written, the ledger is sealed, and the clock goes forward."""
    checks = dict(await readiness.checks(service.registrar.store))
    checks["server"] = "stopping" if service.stopping.is_set() else "ok"
    ready = all(said == "ok" for said in checks.values())
    headers = {} if ready else {"retry-after": "1"}
    body = ReadyBody(ready=ready, checks=checks)
    return Response(body, status_code=200 if ready else 503, headers=headers)


class Readiness:
    """Looks at the store, and remembers for a moment what it saw."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._checks: dict[str, str] = {}
        self._good_until = 0.0

    async def checks(self, store: Store) -> dict[str, str]:
        """Return what is wrong with the store, by what was looked at."""
        async with self._lock:
            if time.monotonic() >= self._good_until:
                self._checks = await asyncio.to_thread(look, store)
                self._good_until = time.monotonic() + _GOOD_SECONDS
            return self._checks


def look(store: Store) -> dict[str, str]:
    """Look at a store: can it be written, is its ledger sealed, does its clock go forward?"""
    return {
        name: _said(check, store)
        for name, check in (("store", _check_writable), ("ledger", _check_sealed), ("clock", _check_clock))
    }


def _said(check: Any, store: Store) -> str:
    try:
        return str(check(store))
    except WouldBlock:
        return "ok"  # Somebody writes at this moment.
    except Exception as error:
        return getattr(error, "code", type(error).__name__)


def _check_writable(store: Store) -> str:
    path = sqlite_path(store.url)
    if path is not None:
        refuse_full(path)  # A transaction without changes takes no space.
    with store.write(blocking=False):
        return "ok"


def _check_sealed(store: Store) -> str:
    with store.snapshot() as snapshot:
        last = snapshot.entries(EntryQuery(after=snapshot.head.position - 1, limit=1))
        if not last or last[0].seal is None:
            return "the last entry is not sealed"
        # The entry that retires a key is the last one that it seals.
        admitted = {
            key_id_of(key.public_key)
            for key in snapshot.signing_keys()
            if key.retired_at_ns is None or key.retired_at_ns >= last[0].event.at_ns
        }
        return (
            "ok" if sealed_by(last[0].seal) in admitted else "the last seal is of a key that is not admitted"
        )


def _check_clock(store: Store) -> str:
    with store.snapshot() as snapshot:
        reading = snapshot.reading()
        if observe(snapshot.authority, reading) is not None:
            return "the store's clock or place is not what it was"
        authority = snapshot.authority
        if authority is not None and reading.wall_ns < authority.wall_ns - _CLOCK_BACK_NS:
            return "the wall clock was set back"
        return "ok"


@get(
    "/metrics",
    summary="Read metrics",
    responses={
        200: ResponseSpec(
            str,
            media_type="text/plain",
            description="Metrics, in the text format of Prometheus.",
            generate_examples=False,
            examples=[Example(summary="A gauge", value="leasehold_live_leases 42.0\n")],
        ),
        **problems(),
    },
)
async def get_metrics(request: JsonRequest, service: Serving, session: Asking) -> Response[bytes]:
    """Return what this server has done, and what stands, in the text format of Prometheus."""
    if request.notes[CALLER].tenant is not None:
        raise NotPermitted("metrics are about all tenants; use an access key that is bound to none")
    await session.ask(FindHead())  # Whoever may not look any more is refused here.
    text = await asyncio.to_thread(service.meters.text, service.registrar.store)
    return Response(text, media_type=CONTENT_TYPE)


router = Router(path="/", route_handlers=[get_health, get_readiness, get_metrics], tags=["health"])

"""`GET /v1/events`: what happens, as it happens, as server-sent events.

No gap, no repeat, in order. Each event's id is its position in the ledger; whoever was cut off goes on with
`Last-Event-ID` (or `after`), from any position that was not pruned. Where entries are gone, that is refused
with status 410, and told where history goes on. A sign of life comes every 15 seconds. It moves the id along,
so that whoever waits for something rare does not start far behind.

A stream ends when the client has left, when it does not take what it is sent, when its access key is not good
any more, when what comes next was pruned, and when the server stops. In the last three cases the last event
is `end`, and says why.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from litestar import Router, get
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import FromQuery, HeaderParameter, QueryParameter
from litestar.types import ASGIApp

from leasehold.client.aio.session import AsyncSession
from leasehold.client.inputs import event_type, sought, whole_number
from leasehold.enforcing.asgi import Receive, Scope, Send
from leasehold.engine.port import EntryQuery
from leasehold.engine.questions import FindHead, FollowLedger
from leasehold.errors import InvalidInput, LeaseholdError
from leasehold.server.identity import CALLER
from leasehold.server.problems import ServerBusy, ServerStopping, problem
from leasehold.server.recent import Notice
from leasehold.server.routing import Asking, JsonRequest, Serving, problems
from leasehold.server.service import Service

_PAGE = 100
"""How much is read at once for who is behind: each such watcher has as much of its own, until it takes it."""
_CHUNK_BYTES = 64 << 10
_ALL = "*"
_POSITION_MAXIMUM = (1 << 63) - 1
_HEADERS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """What a watcher wants to see."""

    tenant: str | None
    """None: of every tenant, which is for operators."""
    resource: str | None
    holder: str | None
    types: tuple[str, ...]

    def takes(self, notice: Notice) -> bool:
        """Say whether an entry is among it."""
        event = notice.entry.event
        tenant, _, resource, holder, _ = event.filing
        return (
            self.tenant in (None, tenant)
            and self.resource in (None, resource)
            and self.holder in (None, holder)
            and (not self.types or event.type in self.types)
        )

    def question(self, after: int) -> FollowLedger:
        """Return the question for the next page of it."""
        query = EntryQuery(
            after=after,
            limit=_PAGE,
            tenant=self.tenant,
            resource=self.resource,
            holder=self.holder,
            types=self.types,
        )
        return FollowLedger(tenant=self.tenant, query=query)


class Stream:
    """One watcher."""

    def __init__(self, service: Service, session: AsyncSession, wanted: Filter, position: int) -> None:
        self._service = service
        self._recent = service.recent
        self._session = session
        self._filter = wanted
        self._position = position
        self._admitted_at = 0
        """The change of access keys up to which the desk was asked."""
        self._admitted_until = 0.0
        """When to ask it again all the same: a key expires, and its old secret with it, without any event."""

    async def open(self, position: int | None) -> None:
        """Find out whether, and from where, this watcher may watch; raise why not."""
        self._note_admission(self._recent.access_changed)
        head = await self._session.ask(FindHead())
        self._position = head.position if position is None else position
        await self._session.ask(self._filter.question(self._position))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what happens, until there is a reason to end."""
        del scope
        self._service.meters.streams += 1
        left = asyncio.create_task(_departure(receive))
        stopped = asyncio.create_task(self._service.stopping.wait())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            # So that whoever opened it knows that nothing is missed from now on.
            await send(_part(self._sign_of_life()))
            await self._follow(left, stopped, send)
            if stopped.done() and not left.done():
                await send(
                    _part(_ending(ServerStopping("this server is being stopped; open another stream")))
                )
        except LeaseholdError as error:
            await send(_part(_ending(error)))
        finally:
            self._service.meters.streams -= 1
            left.cancel()
            stopped.cancel()
            await asyncio.gather(left, stopped, return_exceptions=True)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _follow(self, left: asyncio.Task[Any], stopped: asyncio.Task[Any], send: Send) -> None:
        ping_seconds = self._service.configuration.ping_seconds
        while not (left.done() or stopped.done()):
            if self._position < self._recent.end:
                for chunk in _chunks(await self._next()):
                    await send(_part(chunk))
                continue
            grown = asyncio.create_task(self._recent.beyond(self._position, ping_seconds))
            await asyncio.wait({left, stopped, grown}, return_when=asyncio.FIRST_COMPLETED)
            if not grown.done():
                grown.cancel()
            elif not grown.result():
                await self._session.ask(FindHead())  # Still admitted?
                await send(_part(self._sign_of_life()))

    async def _next(self) -> list[Notice]:
        """Return what comes next, and move on behind it."""
        recent = self._recent
        if self._admitted_at >= recent.access_changed and time.monotonic() < self._admitted_until:
            known = recent.behind(self._position)
            if known is not None:
                self._position = known[-1].entry.position
                return list(filter(self._filter.takes, known))
        admitted_at = recent.access_changed
        followed = await self._session.ask(self._filter.question(self._position))
        self._note_admission(admitted_at)
        if followed.entries:
            self._position = followed.entries[-1].position
        else:
            self._position = max(self._position, followed.end)  # There is nothing of interest before.
        return [Notice(entry) for entry in followed.entries]

    def _note_admission(self, admitted_at: int) -> None:
        self._admitted_at = admitted_at
        self._admitted_until = time.monotonic() + self._service.configuration.ping_seconds

    def _sign_of_life(self) -> bytes:
        # Without data nothing is dispatched, but the id is taken over.
        return f": alive\nid: {self._position}\n\n".encode()


def _chunks(notices: list[Notice]) -> Iterator[bytes]:
    """Yield events together, so that many small ones do not take a message each."""
    chunk: list[bytes] = []
    size = 0
    for notice in notices:
        chunk.append(notice.spelled)
        size += len(notice.spelled)
        if size >= _CHUNK_BYTES:
            yield b"".join(chunk)
            chunk, size = [], 0
    if chunk:
        yield b"".join(chunk)


def _part(body: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": True}


def _ending(error: LeaseholdError) -> bytes:
    return b"event: end\ndata: %b\n\n" % problem(error).body


async def _departure(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _position(after: int | None, last_event_id: str | None) -> int | None:
    """Return where to go on; what a client saw last counts more than where it once began."""
    if last_event_id:
        if not last_event_id.isdecimal() or len(last_event_id) > 19:
            raise InvalidInput("Last-Event-ID must be the position of an event", field="Last-Event-ID")
        after = int(last_event_id)
    if after is None:
        return None
    if whole_number("after", after, minimum=0) > _POSITION_MAXIMUM:
        raise InvalidInput("after is beyond every position; choose an earlier one", field="after")
    return after


_EXAMPLE = """\
id: 7
event: lease.issued
data: {"position":7,"type":"lease.issued","resource":"report-42","holder":"ann","token":229613453148161}
"""


@get(
    "/v1/events",
    summary="Follow what happens",
    responses={
        200: ResponseSpec(
            str,
            media_type="text/event-stream",
            description="Server-sent events, for ever.",
            generate_examples=False,
            examples=[Example(summary="An event", value=_EXAMPLE)],
        ),
        **problems(410),
    },
)
async def follow_events(
    *,
    request: JsonRequest,
    service: Serving,
    session: Asking,
    after: Annotated[
        int | None, QueryParameter(description="Start after this position; from now on.")
    ] = None,
    last_event_id: Annotated[
        str | None, HeaderParameter(name="Last-Event-ID", description="The position that was seen last.")
    ] = None,
    tenant: Annotated[
        str | None, QueryParameter(description="Whose events; `*`: of all tenants, for keys that may.")
    ] = None,
    resource: FromQuery[str | None] = None,
    holder: FromQuery[str | None] = None,
    type: Annotated[
        list[str] | None, QueryParameter(description="Only of these types: `issued` means `lease.issued`.")
    ] = None,
) -> ASGIApp:
    """Follow the ledger from any position: no gap, no repeat, in order."""
    if service.meters.streams >= service.configuration.streams_maximum:
        raise ServerBusy("this server has as many streams open as it takes; try again later")
    bound_to: str | None = request.notes[CALLER].tenant
    wanted = Filter(
        # For a key that is bound to a tenant, everything is what that one has.
        tenant=bound_to if tenant == _ALL else session.tenant if tenant is None else sought("tenant", tenant),
        resource=None if resource is None else sought("resource", resource),
        holder=None if holder is None else sought("holder", holder),
        types=tuple(event_type("type", word) for word in type or []),
    )
    stream = Stream(service, session, wanted, 0)
    await stream.open(_position(after, last_event_id))
    return stream  # type: ignore[return-value]  # its own names for the same types


router = Router(path="/", route_handlers=[follow_events], tags=["events"])

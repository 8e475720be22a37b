"""The desk over HTTP: what a remote client speaks to. Plain ASGI, in front of the router.

| | |
|---|---|
| `POST /v1/desk` | 1 to 1,000 items: commands, questions, calls about jobs; answered one by one, in order |
| `POST /v1/desk/wait` | a position of the ledger; answered once the ledger goes beyond it, or time is up |
| `GET /v1/desk/bells?name=…` | a stream of what is rung for the waiting claims of one client |

How it is spelled, `engine.wire` says. A request that is answered with any other status than 200 has run none
of its items, except where that status is 500.

A line of the bells' stream names waiters that should ask again, by the number of their bell and their own,
with `?` for those that need not hurry: `0001.17 0001.18?`; or `*` for all. An empty line says that nothing
was rung. `doorbells` tells more.

Whoever has an access key that was revoked gets nothing any more: it is looked at for every item, when a wait
ends, and before each line of a stream. A stream also ends by itself soon after its key was.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any
from urllib.parse import parse_qs

import msgspec

from leasehold.access.law.model import ACCESS
from leasehold.enforcing.asgi import Message, Receive, Scope, Send
from leasehold.engine.desk import Desk
from leasehold.engine.port import EntryQuery
from leasehold.engine.questions import FindHead, Followed, FollowLedger
from leasehold.engine.wire import Garbled, Wire, read_request, spell_reply
from leasehold.errors import InvalidInput, LeaseholdError
from leasehold.kernel.ledger.commands import LOCAL, Caller
from leasehold.server.answers import Answers
from leasehold.server.carried import Carried
from leasehold.server.clerk import Clerk
from leasehold.server.doorbells import Doorbells
from leasehold.server.follower import Follower
from leasehold.server.problems import (
    BadRequest,
    BodyTooLarge,
    MethodNotAllowed,
    PathNotFound,
    ServerBusy,
    TooSlow,
    WrongMediaType,
    problem,
)

BODY_BYTES_MAXIMUM = 8 << 20
_BODY_SECONDS = 30.0
_WAIT_SECONDS = 60.0
_PING_SECONDS = 15.0
_DOUBT_SECONDS = 0.1
"""How long changes of access keys are gathered before streams are looked at."""
_WAITING_MAXIMUM = 4_096
"""How many streams, and requests that wait, are open at once."""

_logger = logging.getLogger(__name__)


class Wait(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which position to wait for, and how long."""

    position: int
    timeout: float = _WAIT_SECONDS


class Grown(msgspec.Struct, frozen=True, kw_only=True):
    """Where the ledger ends now."""

    position: int


class DeskRoute:
    """Answers everything under `/v1/desk`."""

    def __init__(
        self,
        desk: Desk,
        wire: Wire,
        *,
        caller_of: Callable[[Scope], Caller],
        desk_for: Callable[[Caller], Desk],
        answers: Answers,
        ping_seconds: float = _PING_SECONDS,
    ) -> None:
        """`desk` is the server's own, `desk_for` gives each caller its own; closing those is up to others.

        `caller_of` raises why a request is not let in.
        """
        self._caller_of = caller_of
        self._desk_for = desk_for
        self._ping_seconds = ping_seconds
        self._doorbells = Doorbells(desk.bells)
        self._clerk = Clerk(wire, self._doorbells, answers)
        self.follower = Follower(desk)
        """Where routes wait for the ledger to grow."""
        self._desk = desk
        self._waiting = 0
        self._doubting: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        begun = False

        async def send_noting(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            answer = self._route_of(scope)
            await answer(scope, receive, send_noting, self._caller_of(scope))
        except Exception as error:
            if not isinstance(error, LeaseholdError):
                _logger.exception("a defect answered %s %s", scope["method"], scope["path"])
            if begun:
                raise  # Half an answer cannot be taken back: the server cuts the connection.
            await _refuse(send, error)

    def stop(self) -> None:
        """End all streams and waits. In the event loop; requests under way are still answered."""
        self._doorbells.stop()
        self.follower.stop()

    def close(self) -> None:
        """Let go of what answers questions, once nobody asks any more."""
        self._clerk.close()

    def _route_of(self, scope: Scope) -> "_Answer":
        routes: dict[str, tuple[str, _Answer]] = {
            "/v1/desk": ("POST", self._answer_items),
            "/v1/desk/wait": ("POST", self._answer_wait),
            "/v1/desk/bells": ("GET", self._answer_bells),
        }
        found = routes.get(scope["path"])
        if found is None:
            raise PathNotFound(f"there is nothing under {scope['path']!r}; see /docs")
        method, answer = found
        if scope["method"] != method:
            raise MethodNotAllowed(f"{scope['path']} takes {method} only")
        return answer

    async def _answer_items(self, scope: Scope, receive: Receive, send: Send, caller: Caller) -> None:
        body = await _body_of(scope, receive)
        try:
            request_id, items = read_request(body)
        except Garbled as error:
            raise InvalidInput(str(error), field="items") from error
        carried = Carried(caller)
        try:
            outcomes = await self._clerk.carry_out(caller, self._desk_for(caller), items, carried.take_in)
        finally:
            carried.note(scope)
        await _reply(send, spell_reply(request_id, outcomes))

    async def _answer_wait(self, scope: Scope, receive: Receive, send: Send, caller: Caller) -> None:
        body = await _body_of(scope, receive)
        try:
            wait = msgspec.json.decode(body, type=Wait)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"the request cannot be read: {error}") from error
        desk = self._desk_for(caller)
        await self._head(desk)  # Whoever may not even look does not get to wait.
        timeout = min(max(wait.timeout, 0.0), _WAIT_SECONDS)
        with self._room():
            beyond = asyncio.ensure_future(self.follower.beyond(wait.position, timeout))
            if not await _unless_gone(receive, beyond):
                return
        await _reply(send, msgspec.json.encode(Grown(position=await self._head(desk))))

    async def _answer_bells(self, scope: Scope, receive: Receive, send: Send, caller: Caller) -> None:
        name = parse_qs(scope["query_string"].decode("latin-1")).get("name", [""])[0]
        desk = self._desk_for(caller)
        await self._head(desk)
        with self._room():
            if caller != LOCAL and (self._doubting is None or self._doubting.done()):
                self._doubting = asyncio.ensure_future(self._doubt_at_changes())
            await _unless_gone(receive, asyncio.ensure_future(self._stream(send, caller, desk, name)))

    async def _stream(self, send: Send, caller: Caller, desk: Desk, name: str) -> None:
        async with aclosing(self._doorbells.rings(caller, name, self._ping_seconds)) as rings:
            await send(_start(200, {"content-type": "text/plain", "cache-control": "no-store"}))
            with suppress(LeaseholdError):  # The key was revoked, or the store is gone: the stream ends.
                async for words in rings:
                    await self._head(desk)
                    await send(_part(f"{words}\n".encode(), more=True))
            await send(_part(b"", more=False))

    async def _doubt_at_changes(self) -> None:
        """Have all streams looked at when access keys have changed, while there are any."""
        with suppress(LeaseholdError):  # The store cannot be looked at: the streams meet that themselves.
            position = await self._head(self._desk)
            while self._waiting and not self.follower.is_stopped:
                if not await self.follower.beyond(position, _WAIT_SECONDS):
                    continue
                await asyncio.sleep(_DOUBT_SECONDS)
                query = EntryQuery(after=position, limit=1, family=ACCESS)
                changed: Followed = await self._clerk.aside(self._desk.ask, FollowLedger(query=query))
                position = max(position, changed.end)
                if changed.entries:
                    self._doorbells.doubt()

    async def _head(self, desk: Desk) -> int:
        """Return where the ledger ends, as far as this caller may know; that is looked up at this moment."""
        head = await self._clerk.aside(desk.ask, FindHead())
        position: int = head.position
        return position

    @contextmanager
    def _room(self) -> Iterator[None]:
        """Take the room of one who waits."""
        if self._waiting >= _WAITING_MAXIMUM:
            raise ServerBusy("the server has as many streams open as it takes; try again later")
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1


_Answer = Callable[[Scope, Receive, Send, Caller], Awaitable[None]]


async def _body_of(scope: Scope, receive: Receive) -> bytes:
    """Return the body of a request, which has to be JSON, complete, in time, and not too large."""
    headers = dict(scope["headers"])
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
        raise WrongMediaType("send the body as `Content-Type: application/json`")
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise BadRequest("the connection was closed before the request was complete")
                body += message.get("body", b"")
                if len(body) > BODY_BYTES_MAXIMUM:
                    raise BodyTooLarge(
                        f"a request has at most {BODY_BYTES_MAXIMUM} bytes; put less into one",
                        limit=BODY_BYTES_MAXIMUM,
                    )
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise TooSlow(f"the request was not complete after {_BODY_SECONDS:g} s; send it again") from None


async def _unless_gone(receive: Receive, work: "asyncio.Future[Any]") -> bool:
    """Wait for work, unless the client goes away; return whether it was finished."""
    gone = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            return False
        work.result()
        return True
    finally:
        for one in (work, gone):
            one.cancel()
        await asyncio.gather(work, gone, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _reply(send: Send, body: bytes) -> None:
    await send(_start(200, {"content-type": "application/json", "content-length": str(len(body))}))
    await send(_part(body, more=False))


async def _refuse(send: Send, error: Exception) -> None:
    refused = problem(error)
    await send(_start(refused.status, refused.headers | {"content-length": str(len(refused.body))}))
    await send(_part(refused.body, more=False))


def _start(status: int, headers: dict[str, str]) -> dict[str, Any]:
    encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    return {"type": "http.response.start", "status": status, "headers": encoded}


def _part(body: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}

"""What every request passes: its id, its limits, and what is noted of it.

- A request gets an id, or keeps the one that it came with (`X-Request-Id`), and the answer carries it.
- Who has no good access key is refused before its body is read. A body has to be JSON, no larger than the
  server takes, and here in time.
- A client that does not take what it is sent is cut off, and large answers are counted until they are taken
  (``answers``): nobody can fill the server's memory by that.
- When the server stops, whoever comes is told to come back, and what is under way is finished, or ended.

Whatever happens behind it, a request gets an answer: a defect is logged, and answered with status 500.
"""

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from leasehold.enforcing.asgi import Application, Message, Receive, Scope, Send
from leasehold.engine.clock import Ids
from leasehold.errors import LeaseholdError, RateLimited
from leasehold.server.answers import Answers
from leasehold.server.configuration import Configuration
from leasehold.server.identity import CALLER, Identity
from leasehold.server.logs import FIELDS, RequestLog
from leasehold.server.meters import Meters
from leasehold.server.problems import (
    BadRequest,
    BodyTooLarge,
    ServerStopping,
    TooSlow,
    WrongMediaType,
    problem,
)
from leasehold.server.sessions import TENANT

REQUEST_ID = "leasehold.request_id"
LEASE = "leasehold.lease"
OPERATIONS = "leasehold.operations"
CODE = "leasehold.code"
"""Which lease a request is about, and why it was refused, for the log: under these names in its scope."""

_GUARDED = "v1/"
_SHARES = 10
_SHARE_LEAST = 100
"""One access key has at most a tenth of all requests under way, or so many."""
_PART_BYTES = 256 << 10
"""How much of an answer is sent at once: a client has to take it before there is more."""
_SANE_ID = re.compile(rb"[0-9A-Za-z._:-]{1,128}")
_logger = logging.getLogger(__name__)


class _Gone(BaseException):
    """The client has left, or does not take what it is sent: there is nobody to answer.

    Not an `Exception`: nothing on its way here may take it for something to answer with.
    """


class Front:
    """Goes around the application."""

    def __init__(
        self,
        application: Application,
        identity: Identity,
        configuration: Configuration,
        meters: Meters,
        answers: Answers,
    ) -> None:
        self._application = application
        self._identity = identity
        self._configuration = configuration
        self._meters = meters
        self._answers = answers
        self._log = RequestLog()
        self._ids = Ids()
        self._under_way: set[asyncio.Task[Any]] = set()
        self._of_key: Counter[str] = Counter()
        """How many of these are of each access key."""
        self._is_stopping = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        began = time.perf_counter()
        task = asyncio.current_task()
        assert task is not None, "a server runs its application in tasks"
        self._under_way.add(task)
        self._meters.under_way = len(self._under_way)
        self._idle.clear()
        answer = _Answer(send, _request_id(scope, self._ids), self._configuration.send_timeout)
        scope[REQUEST_ID] = answer.request_id
        try:
            await self._answer(scope, receive, answer)
        except _Gone as error:
            answer.note = str(error)
        finally:
            self._under_way.discard(task)
            self._meters.under_way = len(self._under_way)
            if not self._under_way:
                self._idle.set()
            self._note(scope, answer, time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        try:
            if self._is_stopping:
                answer.closes = True
                raise ServerStopping("this server is being stopped; ask again in a moment")
            if not scope["path"].lstrip("/").startswith(_GUARDED):  # The router takes // for /, too.
                await self._application(scope, _Replay(b"", receive), answer)  # It takes no body.
                return
            with self._share_of(self._identity.caller_of(scope).access):
                body = await self._body(scope, receive)
                with self._answers.of(scope[CALLER].access) as answer.hold:
                    await self._application(scope, _Replay(body, receive), answer)
        except LeaseholdError as error:
            answer.closes = answer.closes or isinstance(error, BodyTooLarge | TooSlow)
            await answer.tell(error)
        except asyncio.CancelledError:
            if not self._is_stopping:
                raise
            answer.closes = True
            await answer.tell(ServerStopping("this server was stopped before it could answer; ask again"))
        except Exception as error:
            _logger.exception("a defect", extra={FIELDS: {"request_id": answer.request_id}})
            await answer.tell(error)

    @contextmanager
    def _share_of(self, access: str) -> Iterator[None]:
        """See to it that the streams and waits of one access key leave room for others."""
        maximum = max(_SHARE_LEAST, self._configuration.connections_maximum // _SHARES)
        if access and self._of_key[access] >= maximum:
            raise RateLimited(
                f"this access key has {maximum} requests under way; wait until some are answered",
                retry_after=1.0,
                limit=maximum,
            )
        self._of_key[access] += 1
        try:
            yield
        finally:
            self._of_key[access] -= 1
            if not self._of_key[access]:
                del self._of_key[access]

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """Return the whole body of a request; refuse one that is too large, too slow, or no JSON."""
        headers = {name: value for name, value in scope["headers"] if name in _BODY_HEADERS}
        length = headers.get(b"content-length")
        if length is None and b"transfer-encoding" not in headers:
            return b""
        if length is not None and not length.isdigit():
            raise BadRequest("Content-Length must be a number")
        maximum = self._configuration.body_maximum
        if length is not None and int(length) > maximum:
            raise _too_large(maximum)
        try:
            async with asyncio.timeout(self._configuration.body_timeout):
                body = await _whole(receive, maximum, None if length is None else int(length))
        except TimeoutError:
            raise TooSlow(
                f"the body was not here within {self._configuration.body_timeout:g} s; send it at once"
            ) from None
        media_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if body and media_type != b"application/json":
            raise WrongMediaType("send the body as JSON, with `Content-Type: application/json`")
        return body

    def stop(self) -> None:
        """Take nothing new."""
        self._is_stopping = True

    async def finish(self, timeout: float) -> bool:
        """Wait until nothing is under way, or for so long; return whether nothing is."""
        try:
            async with asyncio.timeout(timeout):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Write the rest of the log."""
        self._log.flush()

    def hurry(self) -> None:
        """End what is under way: who waits is told to ask again."""
        for task in list(self._under_way):
            task.cancel()

    def _note(self, scope: Scope, answer: "_Answer", seconds: float) -> None:
        status = answer.status or 499
        method = str(scope["method"])
        self._meters.request(method, status)
        if not (self._configuration.log_requests or status >= 500):
            return
        fields: dict[str, Any] = {
            "request_id": answer.request_id,
            "method": method,
            "path": scope["path"],
            "status": status,
            "milliseconds": round(seconds * 1000, 3),
        }
        if scope.get("client"):
            fields["client"] = scope["client"][0]
        caller = scope.get(CALLER)
        if caller is not None and caller.access:
            fields["access_key"] = caller.access
        lease = scope.get("path_params", {}).get("lease_id")  # As the router has read it.
        known = {"operations": scope.get(OPERATIONS), "tenant": scope.get(TENANT)}
        known |= {"lease": scope.get(LEASE) or lease, "code": scope.get(CODE)}
        fields |= {name: value for name, value in known.items() if value}
        if answer.code:
            fields["code"] = answer.code
        if answer.note:
            fields["note"] = answer.note
        self._log.note(fields)


_BODY_HEADERS = frozenset({b"content-length", b"content-type", b"transfer-encoding"})


def _request_id(scope: Scope, ids: Ids) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _SANE_ID.fullmatch(value):
            return str(value.decode())
    return ids.new()


async def _whole(receive: Receive, maximum: int, length: int | None) -> bytes:
    """Return a body; if its length is known, without waiting to be told that this was all."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone("the client left before its request was whole")
        part = message.get("body", b"")
        size += len(part)
        if size > maximum:
            raise _too_large(maximum)
        parts.append(part)
        if size == length or not message.get("more_body"):
            return b"".join(parts)


def _too_large(maximum: int) -> BodyTooLarge:
    return BodyTooLarge(f"a body may have {maximum:,} bytes; send less at once", limit=maximum)


class _Replay:
    """Gives the body that was read already, and then whatever else comes: that the client has left."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


class _Answer:
    """Sends an answer under the request's id, and remembers what it was."""

    def __init__(self, send: Send, request_id: str, timeout: float) -> None:
        self._send = send
        self._timeout = timeout
        self.request_id = request_id
        self.status = 0
        """0: nothing was sent yet."""
        self._is_stream = False
        self.closes = False
        """Whether the connection ends with this answer."""
        self.code = ""
        self.note = ""
        self.hold: Callable[[int], None] = lambda size: None
        """Is told the size of a large answer, before it is sent."""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", ()), (b"x-request-id", self.request_id.encode())]
            if self.closes:
                headers.append((b"connection", b"close"))
            message = {**message, "headers": headers}
        body = memoryview(message.get("body", b""))  # Not copied again for every part of it.
        self._is_stream = self._is_stream or message.get("more_body", False) or len(body) > _PART_BYTES
        if not self._is_stream:
            await self._send(message)  # A small answer in one piece is taken off our hands at once.
            return
        if len(body) > _PART_BYTES and not message.get("more_body"):
            self.hold(len(body))
        # A large one would be kept for a client that takes nothing of it, for as long as that one stays.
        while len(body) > _PART_BYTES:
            await self._pass_on({**message, "body": bytes(body[:_PART_BYTES]), "more_body": True})
            body = body[_PART_BYTES:]
        await self._pass_on({**message, "body": bytes(body)})

    async def _pass_on(self, message: Message) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await self._send(message)
        except TimeoutError:
            raise _Gone(f"the client took nothing for {self._timeout:g} s, and was cut off") from None

    async def tell(self, error: Exception) -> None:
        """Answer with an error, unless an answer has begun already."""
        if self.status:
            self.note = "the answer was broken off"
            return
        told = problem(error)
        self.code = getattr(error, "code", "DEFECT")
        headers = [(name.encode(), value.encode()) for name, value in told.headers.items()]
        headers.append((b"content-length", str(len(told.body)).encode()))
        await self({"type": "http.response.start", "status": told.status, "headers": headers})
        await self({"type": "http.response.body", "body": told.body})

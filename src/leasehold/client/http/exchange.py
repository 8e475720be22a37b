"""One request and its reply, and what it means when there is none.

There are four ways for a request to end. It is answered. It never left, because there was no connection: then
nothing has happened. It was refused by the server as a whole: then none of its items was run. Or its reply
was lost, on the way or in time: then nobody can tell, and it has to be asked again, which the request ids of
its commands make safe.

Nothing here is believed because of where it came from: a reply that is not what a leasehold server sends, or
is too large, or goes to another place, is an error that says so.
"""

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from leasehold.errors import (
    LeaseholdError,
    NotAuthenticated,
    NotPermitted,
    RateLimited,
    Refused,
    ReplyLost,
    ServerUnreachable,
    StoreError,
    StoreUnusable,
    error_with,
)

REPLY_BYTES_MAXIMUM = 256 << 20
_LINE_BYTES_MAXIMUM = 64 << 10
_CONNECT_SECONDS = 5.0
_DETAIL_CHARACTERS = 1_000
_JSON = "application/json"
_PATH_NOT_FOUND = "PATH_NOT_FOUND"
"""What a server says under an address that is not its own, such as one with a path."""
_FACTS = LeaseholdError.__annotations__.keys() - {"code", "http_status", "exit_code"}
"""What an error may say about itself."""


class NotAnswered(Exception):
    """A request was refused as a whole, or not answered as a leasehold server would."""

    def __init__(self, error: LeaseholdError, *, is_passing: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.is_passing = is_passing
        """Whether it makes sense to send the same request again, after a while."""

    @property
    def may_have_run(self) -> bool:
        """Say whether items of the request may have been run all the same."""
        return isinstance(self.error, StoreError) and self.error.outcome_unknown


class Exchange:
    """Connections to one server, which are kept and used again. For one event loop, in one process."""

    def __init__(self, base: str, api_key: str | None) -> None:
        """To be made in the event loop."""
        self._base = base
        self.sockets: set[socket.socket] = set()
        """What a forked child has to let go of."""
        headers = {"Accept-Encoding": "identity", "User-Agent": "leasehold"}
        if api_key is not None:
            headers["Authorization"] = f"Bearer {api_key}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, resolver=_RememberingResolver(), socket_factory=self._new_socket
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        )

    async def post(self, path: str, body: bytes, *, timeout: float) -> bytes:
        """Send a request; return the body of the reply, or raise NotAnswered."""
        async with self._answered("POST", path, timeout, None, body) as reply:
            return await _whole(reply)

    async def lines(self, path: str, *, silence: float) -> AsyncIterator[bytes]:
        """Yield the lines of a stream until it ends; raise NotAnswered, also if it is silent for so long."""
        async with self._answered("GET", path, None, silence, None) as reply:
            while True:
                line = await reply.content.readline()
                if len(line) > _LINE_BYTES_MAXIMUM:
                    raise NotAnswered(self._strange("sent a line that never ends"), is_passing=True)
                if not line.endswith(b"\n"):
                    return
                yield line

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    @asynccontextmanager
    async def _answered(
        self, method: str, path: str, total: float | None, silence: float | None, body: bytes | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request, and let its body be read; raise NotAnswered whatever goes wrong in that."""
        try:
            async with self._session.request(
                method,
                URL(f"{self._base}{path}", encoded=True),
                data=body,
                headers=None if body is None else {"Content-Type": _JSON},
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(
                    total=total, sock_read=silence, sock_connect=_CONNECT_SECONDS, ceil_threshold=60
                ),
            ) as reply:
                if reply.status != 200:
                    raise await self._refusal(reply)
                yield reply
        except (
            aiohttp.ClientConnectorCertificateError,
            aiohttp.ClientConnectorSSLError,
            ssl.SSLError,
        ) as error:
            raise NotAnswered(
                StoreUnusable(
                    f"{self._base} cannot be trusted: {error}; nothing was sent. An authority of your own is "
                    "named with $SSL_CERT_FILE, and a server without TLS with http://"
                ),
                is_passing=False,
            ) from error
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotAnswered(self._unreachable(error), is_passing=True) from error
        except (aiohttp.ClientResponseError, aiohttp.InvalidURL, ValueError) as error:
            raise NotAnswered(self._strange(f"sent no HTTP: {error}"), is_passing=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            why = str(error) or type(error).__name__
            raise NotAnswered(
                ReplyLost(f"the reply of {self._base} was lost: {why}; ask again to find out what happened"),
                is_passing=True,
            ) from error

    async def _refusal(self, reply: aiohttp.ClientResponse) -> NotAnswered:
        """Return what a reply with another status than 200 says."""
        body = await _whole(reply)
        retry_after = _retry_after(reply)
        error = None
        if reply.content_type == _JSON:
            error = _problem(body, reply.status, retry_after)
        if error is None:
            error = self._foreign(reply, retry_after)
        is_passing = reply.status in (408, 425, 429, 502, 503, 504)
        return NotAnswered(error, is_passing=is_passing)

    def _foreign(self, reply: aiohttp.ClientResponse, retry_after: float | None) -> LeaseholdError:
        """Return what a status means that something else than a leasehold server has answered with."""
        status, base = reply.status, self._base
        match status:
            case 401:
                return NotAuthenticated(f"{base} wants an access key, or another one; give it as api_key")
            case 403:
                return NotPermitted(f"{base} does not let this client in; ask whoever runs it")
            case 429:
                return RateLimited(f"{base} is asked too often; ask less often", retry_after=retry_after)
            case _ if status < 400:
                return StoreUnusable(
                    f"{base} answers with status {status}, and redirects are not followed, because an access "
                    "key is shown to nobody else; use the address that it means"
                )
            case _ if status < 500:
                return StoreUnusable(
                    f"no leasehold server answers at {base}: status {status}; check the address"
                )
            case 502 | 503 | 504:
                return ReplyLost(
                    f"{base} answers with status {status}; ask again to find out what happened",
                    retry_after=retry_after,
                )
            case _:
                return ReplyLost(
                    f"{base} answers with status {status}, and not as a leasehold server does; check the "
                    "address, and if it is right, ask again to find out what happened",
                    retry_after=retry_after,
                )

    def _strange(self, what: str) -> ReplyLost:
        return ReplyLost(
            f"{self._base} {what[:_DETAIL_CHARACTERS]}; is that a leasehold server, and not one with https://?"
        )

    def _unreachable(self, error: Exception) -> ServerUnreachable:
        why = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
        return ServerUnreachable(
            f"{self._base} cannot be reached ({why}); nothing was changed. Check that the server runs, "
            "and the address"
        )

    def _new_socket(self, address: Any) -> socket.socket:
        family, kind, protocol, _, _ = address
        made = socket.socket(family=family, type=kind, proto=protocol)
        self.sockets = {one for one in self.sockets if one.fileno() != -1} | {made}
        return made


async def _whole(reply: aiohttp.ClientResponse) -> bytes:
    """Return the body of a reply, unless it is too large, or packed, which nobody asked for."""
    if reply.headers.get("Content-Encoding", "identity") != "identity":
        raise NotAnswered(
            ReplyLost("the server sent a packed reply, which nobody asked for"), is_passing=False
        )
    body = bytearray()
    async for chunk in reply.content.iter_any():
        body += chunk
        if len(body) > REPLY_BYTES_MAXIMUM:
            raise NotAnswered(
                ReplyLost(f"the reply has more than {REPLY_BYTES_MAXIMUM} bytes; ask for less"),
                is_passing=False,
            )
    return bytes(body)


def _problem(body: bytes, status: int, retry_after: float | None) -> LeaseholdError | None:
    """Return the error that a body tells of; None if it is not one of ours."""
    try:
        shape = msgspec.json.decode(body, type=dict[str, Any])
    except (ValueError, RecursionError):
        return None
    code, detail = shape.pop("code", None), shape.pop("detail", None)
    if not isinstance(code, str) or not isinstance(detail, str) or code == _PATH_NOT_FOUND:
        return None
    known = error_with(code)
    if known.code != code or (status >= 500 and not issubclass(known, StoreError)):
        known = _by_status(status)
    facts = {name: fact for name, fact in shape.items() if name in _FACTS}
    said = facts.pop("retry_after", retry_after)
    if (
        isinstance(said, int | float) and not isinstance(said, bool) and said > 0
    ):  # Who is told anything else chooses for itself.
        facts["retry_after"] = float(said)
    return known(detail[:_DETAIL_CHARACTERS], **facts)


def _by_status(status: int) -> type[LeaseholdError]:
    """Return the error for a code that is not known here: the server's own, or of another release."""
    if status == 500:
        return ReplyLost  # A defect: nobody can tell what had happened before it.
    return StoreError if status > 500 or status in (404, 408) else Refused


def _retry_after(reply: aiohttp.ClientResponse) -> float | None:
    """Return after how many seconds to ask again; a date, which needs two wall clocks, does not count."""
    said = reply.headers.get("Retry-After", "")
    return float(said) if said.isascii() and said.isdigit() and len(said) < 7 else None


class _RememberingResolver(AbstractResolver):
    """Looks hosts up, and goes on with what it knew where that fails.

    It does when a name server is down, and at the end of a program, when no thread can be had for it any more
    and leases are still to be given back.
    """

    def __init__(self) -> None:
        self._resolver = aiohttp.ThreadedResolver()
        self._known: dict[tuple[str, int, int], list[ResolveResult]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        key = (host, port, int(family))
        try:
            self._known[key] = await self._resolver.resolve(host, port, family)
        except (OSError, RuntimeError):
            if key not in self._known:
                raise
        return self._known[key]

    async def close(self) -> None:
        await self._resolver.close()

"""An ASGI application that only the holder of a lease can change.

Pure ASGI: it goes around any application of that standard. A request has to carry the certificate of a
lease on the resource that it wants to use; which resource that is, a function of the scope says. Requests
that only look may go through without. The application finds the certificate as
`scope["leasehold.certificate"]`.

A request that is refused never reaches the application. Its answer is JSON: the stable code, and what to do
next. A path that is not UTF-8 names no resource and is refused. Besides requests, only the server's
`lifespan` events reach the application: a connection of any other type cannot be checked, and raises
UnknownScope.
"""

from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

from leasehold.certificates.certificate import Certificate
from leasehold.certificates.errors import CertificateMalformed, NotProven, RequestMalformed
from leasehold.enforcing.enforcer import Enforcer
from leasehold.enforcing.fence import Fence, is_utf8
from leasehold.errors import LeaseholdError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADER = b"lease-certificate"
STATE = "leasehold.certificate"
LOOKING = frozenset({"GET", "HEAD", "OPTIONS"})
_POLICY_VIOLATION = 1008


class UnknownScope(LeaseholdError, code="UNKNOWN_SCOPE"):
    """A server has opened a connection of a type that cannot be checked."""


def path_of(scope: Scope) -> str:
    """Return the path of a request, which by default names the resource.

    Servers put replacement characters or surrogates for bytes that are not UTF-8. With the former, different
    paths would name one resource, so the path as it was sent is looked at where the server tells it.
    """
    raw = scope.get("raw_path")
    if raw is not None and not is_utf8(unquote_to_bytes(bytes(raw)).decode(errors="surrogateescape")):
        raise _not_utf8()
    return str(scope["path"])


class LeaseMiddleware:
    """Goes around an ASGI application, and lets through who holds the lease."""

    def __init__(
        self,
        application: Application,
        *,
        enforcer: Enforcer,
        resource: Callable[[Scope], str | None] = path_of,
        open_methods: Collection[str] = LOOKING,
    ) -> None:
        self._application = application
        self._enforcer = enforcer
        self._resource = resource
        """Returns which resource a request is about; None for one that nobody has to hold."""
        self._open_methods = frozenset(open_methods)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        if scope["type"] not in ("http", "websocket"):
            raise UnknownScope(
                f"cannot check a connection of type {scope['type']!r}; "
                "handle it outside LeaseMiddleware, which knows http, websocket and lifespan"
            )
        try:
            resource = self._protected(scope)
            proven = {} if resource is None else {STATE: await self._admit(_certificate_in(scope), resource)}
        except NotProven as error:
            await _refuse(scope, send, error)
            return
        await self._application({**scope, **proven} if proven else scope, receive, send)

    async def _admit(self, text: str | None, resource: str) -> Certificate:
        """Ask the enforcer; from a thread, if its fence may have to wait for a disk or another process."""
        if isinstance(self._enforcer.fence, Fence):
            return self._enforcer.admit(text, resource)
        import asyncio

        return await asyncio.to_thread(self._enforcer.admit, text, resource)

    def _protected(self, scope: Scope) -> str | None:
        if scope["type"] == "http" and scope["method"] in self._open_methods:
            return None
        resource = self._resource(scope)
        if resource is not None and not is_utf8(resource):
            raise _not_utf8()
        return resource


def _not_utf8() -> RequestMalformed:
    return RequestMalformed(
        "the path of the request is not UTF-8, so it names no resource; encode it as UTF-8"
    )


def _certificate_in(scope: Scope) -> str | None:
    found = [bytes(value) for name, value in scope["headers"] if bytes(name).lower() == HEADER]
    if len(found) > 1:
        raise CertificateMalformed("a request can carry one certificate; send the one of this resource")
    return found[0].decode("latin-1").strip() if found else None


async def _refuse(scope: Scope, send: Send, error: NotProven) -> None:
    if scope["type"] == "websocket":
        # Closing before accepting makes the server answer the handshake with 403.
        await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": error.code})
        return
    body = msgspec.json.encode({"error": {"code": error.code, "message": str(error)} | error.facts})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": error.http_status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

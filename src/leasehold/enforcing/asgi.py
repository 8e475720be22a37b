"""An ASGI application that only the holder of a lease can change.

Pure ASGI: it goes around any application of that standard. A request has to carry the certificate of a
lease on the resource that it wants to use; which resource that is, a function of the scope says. Requests
that only look may go through without. The application finds the certificate as
`scope["leasehold.certificate"]`.

A request that is refused never reaches the application. Its answer is JSON: the stable code, and what to do
next.
"""

from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any

import msgspec

from leasehold.certificates.certificate import Certificate
from leasehold.certificates.errors import CertificateMalformed, NotProven
from leasehold.enforcing.enforcer import Enforcer
from leasehold.enforcing.fence import Fence

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADER = b"lease-certificate"
STATE = "leasehold.certificate"
LOOKING = frozenset({"GET", "HEAD", "OPTIONS"})
_POLICY_VIOLATION = 1008


def path_of(scope: Scope) -> str:
    """Return the path of a request, which by default names the resource."""
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
        resource = self._protected(scope)
        if resource is None:
            await self._application(scope, receive, send)
            return
        try:
            certificate = await self._admit(_certificate_in(scope), resource)
        except NotProven as error:
            await _refuse(scope, send, error)
            return
        await self._application({**scope, STATE: certificate}, receive, send)

    async def _admit(self, text: str | None, resource: str) -> Certificate:
        """Ask the enforcer; from a thread, if its fence may have to wait for a disk or another process."""
        if isinstance(self._enforcer.fence, Fence):
            return self._enforcer.admit(text, resource)
        import asyncio

        return await asyncio.to_thread(self._enforcer.admit, text, resource)

    def _protected(self, scope: Scope) -> str | None:
        if scope["type"] not in ("http", "websocket"):
            return None
        if scope["type"] == "http" and scope["method"] in self._open_methods:
            return None
        return self._resource(scope)


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

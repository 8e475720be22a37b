"""A real server on a real socket, for as many desks as a test wants: one for each process that runs tests.

Each desk is mounted under a path of its own, so that a test gets its own in a moment.
"""

import asyncio
import atexit
import itertools
import socket
import threading
from collections.abc import Callable
from typing import Any

import uvicorn

from leasehold.enforcing.asgi import Receive, Scope, Send
from leasehold.engine.desk import Desk
from leasehold.kernel.ledger.commands import LOCAL, Caller
from leasehold.registry import wire
from leasehold.server.answers import Answers
from leasehold.server.desk_route import DeskRoute

_STOP_SECONDS = 30.0


class _Server(uvicorn.Server):
    """A server that says when it is up."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_up.set()


class DeskServer:
    """Serves desks over HTTP, in a thread of this process."""

    def __init__(self) -> None:
        self._routes: dict[str, DeskRoute] = {}
        self._numbers = itertools.count(1)
        self._loop: asyncio.AbstractEventLoop | None = None
        config = uvicorn.Config(
            self._answer,
            port=0,
            log_level="error",
            lifespan="off",
            ws="none",
            interface="asgi3",
            proxy_headers=False,
        )
        self._server = _Server(config)
        self._thread = threading.Thread(target=self._run, name="desk-server", daemon=True)
        self._thread.start()
        assert self._server.is_up.wait(_STOP_SECONDS)
        self.port: int = self._server.servers[0].sockets[0].getsockname()[1]

    def mount(self, desk: Desk, caller_of: Callable[[Scope], Caller] | None = None) -> str:
        """Serve a desk; return its address."""
        path = f"/{next(self._numbers)}"
        self._call(lambda: self._mount(path, desk, caller_of or (lambda scope: LOCAL)))
        return f"http://127.0.0.1:{self.port}{path}"

    def unmount(self, url: str) -> None:
        """Serve a desk no more, and end what its clients have open."""
        path = "/" + url.rpartition("/")[2]
        self._call(lambda: self._unmount(path))

    def stop(self) -> None:
        for path in list(self._routes):
            self._call(lambda path=path: self._unmount(path))  # type: ignore[misc]
        self._server.should_exit = True
        self._thread.join(_STOP_SECONDS)

    def _mount(self, path: str, desk: Desk, caller_of: Callable[[Scope], Caller]) -> None:
        self._routes[path] = DeskRoute(
            desk, wire(), caller_of=caller_of, desk_for=lambda caller: desk, answers=Answers(1 << 30)
        )

    def _unmount(self, path: str) -> None:
        route = self._routes.pop(path)
        route.stop()
        route.close()

    def _call(self, function: Callable[[], None]) -> None:
        """Do something in the event loop of the server."""
        assert self._loop is not None
        done = threading.Event()

        def do() -> None:
            function()
            done.set()

        self._loop.call_soon_threadsafe(do)
        assert done.wait(_STOP_SECONDS)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._server.serve()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        mounted, slash, path = scope["path"][1:].partition("/")
        route = self._routes.get(f"/{mounted}")
        if route is None:
            gone: list[dict[str, Any]] = [
                {"type": "http.response.start", "status": 503, "headers": []},
                {"type": "http.response.body", "body": b""},
            ]
            for message in gone:
                await send(message)
            return
        await route({**scope, "path": f"{slash}{path}"}, receive, send)


class _Shared:
    server: DeskServer | None = None


def desk_server() -> DeskServer:
    """Return the server of this process."""
    if _Shared.server is None:
        _Shared.server = DeskServer()
        atexit.register(_Shared.server.stop)
    return _Shared.server

"""The store of a server: opened when a tool first needs it, and again after it could not be used.

So a server starts where its store is damaged, tells whoever calls a tool what is wrong with it, and goes on
once that is mended.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from leasehold.client.aio.client import AsyncClient
from leasehold.errors import LeaseholdError

_PATIENCE_SECONDS = 1.0
"""How long the end may take: clients kill a server that lingers for two seconds."""


class Connection:
    """At most one client at a time."""

    def __init__(self, connect: Callable[[], Coroutine[Any, Any, AsyncClient]]) -> None:
        self._connect = connect
        self._opened: asyncio.Task[AsyncClient] | None = None

    async def client(self) -> AsyncClient:
        """Return the client, connected."""
        if self._opened is None:
            self._opened = asyncio.create_task(self._connect())
        opened = self._opened
        try:
            # A call that is cancelled meanwhile must not leave behind a store that is half open.
            return await asyncio.shield(opened)
        except Exception:
            self._forget(opened)
            raise

    async def drop(self, client: AsyncClient) -> None:
        """Forget a client whose store cannot be used any more, so that the next call connects again."""
        if self._opened is not None and self._opened.done() and self._opened.result() is client:
            await self.close()

    async def close(self, leaving: str | None = None) -> bool:
        """Let go of the store; return whether that was possible in time.

        `leaving` is an agent that ends with us: what it has is given back.
        """
        opened = self._opened
        if opened is None:
            return True
        self._forget(opened)
        ending = asyncio.create_task(_end(opened, leaving))
        done, _ = await asyncio.wait((ending,), timeout=_PATIENCE_SECONDS)
        return bool(done)

    def _forget(self, opened: asyncio.Task[AsyncClient]) -> None:
        if self._opened is opened:
            self._opened = None


async def _end(opened: asyncio.Task[AsyncClient], leaving: str | None) -> None:
    with suppress(LeaseholdError):  # What could not be given back ends by itself.
        client = await opened
        try:
            if leaving is not None:
                await client.release_all(leaving)
        finally:
            await client.close()

"""The store of a server: opened when a tool first needs it, and again after it could not be used.

So a server starts where its store is damaged, tells whoever calls a tool what is wrong with it, and goes on
once that is mended.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from leasehold.client.aio.client import AsyncClient
from leasehold.errors import LeaseholdError

_PATIENCE_SECONDS = 1.0
"""How long the end may take: clients kill a server that lingers for two seconds."""


class Connection:
    """At most one client at a time."""

    def __init__(self, connect: Callable[[], Awaitable[AsyncClient]]) -> None:
        self._connect = connect
        self._client: AsyncClient | None = None
        self._opening = asyncio.Lock()

    async def client(self) -> AsyncClient:
        """Return the client, connected."""
        async with self._opening:
            if self._client is None:
                self._client = await self._connect()
            return self._client

    async def drop(self, client: AsyncClient) -> None:
        """Forget a client whose store cannot be used any more, so that the next call connects again."""
        if self._client is client:
            await self.close()

    async def close(self, leaving: str | None = None) -> bool:
        """Let go of the store; return whether that was possible in time.

        `leaving` is an agent that ends with us: what it has is given back.
        """
        client, self._client = self._client, None
        if client is None:
            return True
        ending = asyncio.create_task(_end(client, leaving))
        done, _ = await asyncio.wait((ending,), timeout=_PATIENCE_SECONDS)
        return bool(done)


async def _end(client: AsyncClient, leaving: str | None) -> None:
    with suppress(LeaseholdError):  # What could not be given back ends by itself.
        if leaving is not None:
            await client.release_all(leaving)
    with suppress(LeaseholdError):
        await client.close()

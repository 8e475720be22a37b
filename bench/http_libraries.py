"""HTTP libraries for the remote desk, side by side: what one request costs, and what loading them costs.

Not part of `make bench`: run it by itself, in an environment that has all three.

    python -m venv libraries && libraries/bin/pip install aiohttp httpx niquests
    libraries/bin/python bench/http_libraries.py

The server at the other end does nothing but answer, in a process of its own. A request is the size of a
command, a reply the size of a grant.
"""

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

SECONDS = 1.5
ROUNDS = 3
BODY = b"x" * 300
REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 600\r\n\r\n" + b"y" * 600

Post = Callable[[], Awaitable[bytes]]


async def serve() -> None:
    """Answer everything, and say on which port."""

    class Answering(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self._transport = transport
            self._received = b""

        def data_received(self, data: bytes) -> None:
            self._received += data
            while True:
                head, found, rest = self._received.partition(b"\r\n\r\n")
                if not found or len(rest) < len(BODY):
                    return
                del head
                self._received = rest[len(BODY) :]
                self._transport.write(REPLY)

    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def with_aiohttp(url: str, measure: Callable[[Post], Awaitable[None]]) -> None:
    import aiohttp

    async with aiohttp.ClientSession() as session:

        async def post() -> bytes:
            async with session.post(url, data=BODY) as reply:
                return await reply.read()

        await measure(post)


async def with_httpx(url: str, measure: Callable[[Post], Awaitable[None]]) -> None:
    import httpx

    async with httpx.AsyncClient() as session:

        async def post() -> bytes:
            return (await session.post(url, content=BODY)).content

        await measure(post)


async def with_niquests(url: str, measure: Callable[[Post], Awaitable[None]]) -> None:
    import niquests  # type: ignore[import-not-found, unused-ignore]

    async with niquests.AsyncSession() as session:

        async def post() -> bytes:
            reply: bytes = (await session.post(url, data=BODY)).content
            return reply

        await measure(post)


LIBRARIES = {"aiohttp": with_aiohttp, "httpx": with_httpx, "niquests": with_niquests}


async def rate(post: Post, tasks: int) -> float:
    """Return how many requests so many tasks get answered in a second."""
    deadline = time.perf_counter() + SECONDS

    async def ask() -> int:
        count = 0
        while time.perf_counter() < deadline:
            assert len(await post()) == 600
            count += 1
        return count

    return float(sum(await asyncio.gather(*(ask() for _ in range(tasks))))) / SECONDS


def loading_ms(library: str) -> float:
    """Return how long a fresh interpreter takes to import a library, beyond asyncio."""
    times = []
    for imports in ("asyncio", f"asyncio, {library}"):
        began = time.perf_counter()
        for _ in range(5):
            subprocess.run([sys.executable, "-c", f"import {imports}"], check=True)
        times.append((time.perf_counter() - began) / 5)
    return (times[1] - times[0]) * 1000


def main() -> None:
    server = subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1/desk"
    found: dict[str, dict[int, list[float]]] = {name: {1: [], 4: []} for name in LIBRARIES}
    try:
        for _ in range(ROUNDS):
            for name, ask in LIBRARIES.items():

                async def measure(post: Post, rates: dict[int, list[float]] = found[name]) -> None:
                    for tasks, seen in rates.items():
                        seen.append(await rate(post, tasks))

                asyncio.run(ask(url, measure))
    finally:
        server.terminate()
        server.wait()
    for name, rates in found.items():
        one, four = (statistics.median(seen) for seen in rates.values())
        loading = loading_ms(name)
        print(
            f"{name}: {one:,.0f} requests/s one by one, {four:,.0f} four at a time; {loading:.0f} ms to load"
        )


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve())
    else:
        main()

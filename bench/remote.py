"""A client over HTTP beside redis-py: 64 callers in one process, and renewing 1,000 leases at once.

Redis runs without persistence, on loopback, as the peer does best: `apt install redis-server`. Ours is
`leasehold serve` on SQLite with full durability, and a history.
"""

import asyncio
import shutil
import socket
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import redis.asyncio

import leasehold
from bench.measuring import Report
from bench.serving import served

CALLERS = 64
SLICES = 3
SLICE_SECONDS = 1.0
RENEWED = 1_000
RENEWALS = 10

Pair = Callable[[int], Awaitable[None]]


def run(report: Report, folder: Path) -> None:
    """Measure both."""
    if shutil.which("redis-server") is None:
        report.show(
            "  redis-server is missing, so there is nothing to compare with: apt install redis-server"
        )
        return
    with served(folder / "store") as (port, key), redis_server() as redis_port:
        pairs, renewed = asyncio.run(_measure(port, key, redis_port))
    report.show(f"  redis    {pairs['redis']:8,.0f} pairs/s, {CALLERS} callers in one process")
    report.show(f"  ours     {pairs['ours']:8,.0f} pairs/s")
    report.ratio("pairs over HTTP / redis-py's Lock", pairs["ours"] / pairs["redis"], at_least=0.9)
    report.ratio(f"leases/s, renew_many of {RENEWED:,} over HTTP", renewed, at_least=50_000)


@contextmanager
def redis_server() -> Iterator[int]:
    """Give the port of a Redis that keeps nothing."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    time.sleep(0.02)
            yield port
        finally:
            server.terminate()


async def _measure(port: int, key: str, redis_port: int) -> tuple[dict[str, float], float]:
    """Return pairs per second of each, and how many leases are renewed in a second."""
    peer = redis.asyncio.Redis(port=redis_port)
    async with leasehold.connect_async(f"http://127.0.0.1:{port}", api_key=key) as leases:

        async def ours(number: int) -> None:
            lease = await leases.acquire(f"resource-{number}")
            await lease.release()

        async def theirs(number: int) -> None:
            lock = peer.lock(f"resource-{number}", timeout=60)
            assert await lock.acquire(blocking=False)
            await lock.release()

        found: dict[str, list[float]] = {"redis": [], "ours": []}
        for _ in range(SLICES):
            found["redis"].append(await _rate(theirs))
            found["ours"].append(await _rate(ours))
        renewed = await _renewed(leases)
    await peer.aclose()
    return {name: statistics.median(rates) for name, rates in found.items()}, renewed


async def _rate(pair: Pair) -> float:
    """Keep all callers busy for a slice; return how many pairs that were in a second."""
    end = time.monotonic() + SLICE_SECONDS

    async def keep_busy(number: int) -> int:
        count = 0
        while time.monotonic() < end:
            await pair(number)
            count += 1
        return count

    return float(sum(await asyncio.gather(*map(keep_busy, range(CALLERS))))) / SLICE_SECONDS


async def _renewed(leases: leasehold.AsyncClient) -> float:
    """Return how many leases are renewed in a second, 1,000 at a time."""
    held = await asyncio.gather(
        *(leases.acquire(f"renewed-{number}", holder="bench", ttl=3600) for number in range(RENEWED))
    )
    began = time.monotonic()
    for _ in range(RENEWALS):
        await leases.renew_many([lease.lease_id for lease in held], holder="bench")
    return RENEWED * RENEWALS / (time.monotonic() - began)

"""A client over HTTP beside redis-py and etcd: 64 callers in one process, and renewing 1,000 leases at once.

Redis runs without persistence, on loopback, as the peer does best: `apt install redis-server`. etcd is
measured where it is there, with its client: `apt install etcd-server`, `pip install aetcd`. Ours is
`leasehold serve` on SQLite with full durability, and a history.
"""

import asyncio
import shutil
import socket
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import redis.asyncio

import leasehold
from bench.measuring import Report
from bench.serving import served

CALLERS = 64
SLICES = 3
SLICE_SECONDS = 1.0
RENEWED = 1_000
RENEWALS = 20

Pair = Callable[[int], Awaitable[None]]


def run(report: Report, folder: Path) -> None:
    """Measure both."""
    if shutil.which("redis-server") is None:
        report.show(
            "  redis-server is missing, so there is nothing to compare with: apt install redis-server"
        )
        return
    has_etcd = shutil.which("etcd") is not None and find_spec("aetcd") is not None
    with ExitStack() as running:
        port, key = running.enter_context(served(folder / "store"))
        redis_port = running.enter_context(redis_server())
        etcd_port = running.enter_context(etcd_server(folder / "etcd")) if has_etcd else None
        pairs, renewed = asyncio.run(_measure(port, key, redis_port, etcd_port))
    report.show(f"  redis    {pairs['redis']:8,.0f} pairs/s, {CALLERS} callers in one process")
    report.show(f"  ours     {pairs['ours']:8,.0f} pairs/s")
    report.ratio("pairs over HTTP / redis-py's Lock", pairs["ours"] / pairs["redis"], at_least=0.9)
    if has_etcd:
        report.show(f"  etcd     {pairs['etcd']:8,.0f} pairs/s")
        report.ratio("pairs over HTTP / etcd's lock", pairs["ours"] / pairs["etcd"], at_least=2)
    else:
        report.show("  etcd is left out: apt install etcd-server, pip install aetcd")
    report.ratio(f"leases/s, renew_many of {RENEWED:,} over HTTP", renewed, at_least=50_000)


@contextmanager
def redis_server() -> Iterator[int]:
    """Give the port of a Redis that keeps nothing."""
    port = _free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    with _listening(command, port):
        yield port


@contextmanager
def etcd_server(folder: Path) -> Iterator[int]:
    """Give the port of an etcd of its own, on the same disk as ours."""
    port, peers = _free_port(), _free_port()
    url, peer_url = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peers}"
    command = ["etcd", "--data-dir", str(folder)]
    command += ["--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", peer_url]
    command += ["--initial-advertise-peer-urls", peer_url, "--initial-cluster", f"default={peer_url}"]
    with _listening(command, port):
        yield port


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


@contextmanager
def _listening(command: list[str], port: int) -> Iterator[None]:
    """Run a server, from when it listens until the block is left."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as server:
        try:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    time.sleep(0.02)
            yield
        finally:
            server.terminate()


async def _measure(
    port: int, key: str, redis_port: int, etcd_port: int | None
) -> tuple[dict[str, float], float]:
    """Return pairs per second of each, and how many leases are renewed in a second."""
    peer = redis.asyncio.Redis(port=redis_port)
    etcd: Any = None if etcd_port is None else import_module("aetcd").Client(port=etcd_port)
    async with leasehold.connect_async(f"http://127.0.0.1:{port}", api_key=key) as leases:

        async def ours(number: int) -> None:
            lease = await leases.acquire(f"resource-{number}")
            await lease.release()

        async def theirs(number: int) -> None:
            lock = peer.lock(f"resource-{number}", timeout=60)
            assert await lock.acquire(blocking=False)
            await lock.release()

        async def of_etcd(number: int) -> None:
            lock = etcd.lock(b"resource-%d" % number, 60)
            assert await lock.acquire(timeout=0)
            await lock.release()

        pairs = {"redis": theirs, "ours": ours} | ({} if etcd is None else {"etcd": of_etcd})
        found: dict[str, list[float]] = {name: [] for name in pairs}
        for _ in range(SLICES):
            for name, pair in pairs.items():
                found[name].append(await _rate(pair))
        renewed = await _renewed(leases)
    await peer.aclose()
    if etcd is not None:
        await etcd.close()
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
    """Return how many leases are renewed in a second, 1,000 at a time, where nothing gets into the way."""
    held = await asyncio.gather(
        *(leases.acquire(f"renewed-{number}", holder="bench", ttl=3600) for number in range(RENEWED))
    )
    times = []
    for _ in range(RENEWALS):
        began = time.monotonic()
        await leases.renew_many([lease.lease_id for lease in held], holder="bench")
        times.append(time.monotonic() - began)
    return RENEWED / min(times)

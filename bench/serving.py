"""A server beside a bare one: single operations at 64 connections, 500 watchers, what 100,000 leases weigh.

The bare one is an ASGI application that echoes its body, on the same HTTP server.
"""

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import leasehold
from bench.measuring import Report
from leasehold.engine.wire import spell_request
from leasehold.kernel.lease.commands import Acquire, Release
from leasehold.registry import wire

CONNECTIONS = 64
SLICES = 3
SLICE_SECONDS = 1.0
WATCHERS = 500
EVENTS = 20
LEASES = 100_000

_ECHO = """
import asyncio, signal, sys

async def echo(scope, receive, send):
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    length = str(len(body)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", length)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})

if sys.argv[1] == "uvicorn":
    import uvicorn
    uvicorn.run(echo, port=int(sys.argv[2]), log_level="error", access_log=False, lifespan="off")
else:
    from granian.constants import Interfaces
    from granian.server.embed import Server

    async def main():
        server = Server(
            echo, port=int(sys.argv[2]), interface=Interfaces.ASGINL, log_enabled=False, backpressure=1000
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.stop)
        await server.serve()

    asyncio.run(main())
"""


def run(report: Report, folder: Path) -> None:
    """Measure all three."""
    with served(folder / "store") as (port, key), echoing("granian") as echo_port:
        operations = {
            "echo": (echo_port, lambda number: _post("/", b'{"resource":"report-42"}', key)),
            "desk": (port, _desk_pairs(key)),
            "rest": (port, _rest_pairs(key)),
        }
        rates = _rates(operations)
        for name, rate in rates.items():
            report.show(f"  {name:<6} {rate:8.0f} requests/s at {CONNECTIONS} connections")
        report.ratio("desk, single operations / bare echo", rates["desk"] / rates["echo"], at_least=0.25)
        report.ratio("plain REST, single operations / bare echo", rates["rest"] / rates["echo"], at_least=0.1)
    with served(folder / "watched") as (port, key):
        delays = sorted(asyncio.run(_watch(port, key, folder / "watched")))
        report.show(f"  {WATCHERS} watchers: median {statistics.median(delays) * 1000:.0f} ms")
        p99 = delays[int(len(delays) * 0.99)]
        report.ratio(f"{WATCHERS} watchers, p99 in ms", p99 * 1000, at_most=500)
    _fill(folder / "filled")
    with served(folder / "filled") as (port, key):
        report.ratio(f"idle server with {LEASES:,} live leases, MiB", _resident_mib(port), at_most=150)


def servers(report: Report, folder: Path) -> None:
    """Measure the HTTP servers that there are to choose from, each with a bare echo."""
    del folder
    for kind in ("granian", "uvicorn"):
        with echoing(kind) as port:
            rate = _rates({"echo": (port, lambda number: _post("/", b'{"resource":"report-42"}', ""))})
            report.show(f"  {kind:<8} {rate['echo']:8.0f} requests/s at {CONNECTIONS} connections")


@contextmanager
def served(store: Path) -> Iterator[tuple[int, str]]:
    """Give the port and an access key of a server that runs in a process of its own."""
    settings = ("--port", "0", "--requests-per-second", "1000000", "--requests-burst", "1000000")
    command = [sys.executable, "-m", "leasehold", "serve", "--store", str(store), *settings]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        key = server.stdout.readline().strip()
        for line in server.stderr:
            if '"listening"' in line:
                break
        drain = subprocess.Popen(["cat"], stdin=server.stderr, stdout=subprocess.DEVNULL)
        _processes[port := int(json.loads(line)["url"].rpartition(":")[2])] = server.pid
        try:
            yield port, key
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
            drain.wait()


_processes: dict[int, int] = {}
"""Which process serves which port."""


@contextmanager
def echoing(kind: str) -> Iterator[int]:
    """Give the port of a bare ASGI application that echoes."""
    port = 18_000 + os.getpid() % 1000
    with subprocess.Popen([sys.executable, "-c", _ECHO, kind, str(port)]) as server:
        try:
            asyncio.run(_until_listening(port))
            yield port
        finally:
            server.terminate()


async def _until_listening(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.02)
        else:
            writer.close()
            return


_Requests = Callable[[int], bytes]


def _post(path: str, body: bytes, key: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _desk_pairs(key: str) -> _Requests:
    """Return a claim and its release in turns, each in a request of its own."""
    spell = wire().spell

    def request(number: int) -> bytes:
        name = f"bench-{number // 2}"
        command = (
            Acquire(lease_id=name, request_id=name, resource=name, holder="bench", ttl_ns=60 * 10**9)
            if number % 2 == 0
            else Release(lease_ids=(name,), request_id=f"{name}-end", holder="bench")
        )
        return _post("/v1/desk", spell_request(f"r{number}", [spell(command)]), key)

    return request


def _rest_pairs(key: str) -> _Requests:
    """Return claims, each for a resource of its own: who releases would have to read the answers."""

    def request(number: int) -> bytes:
        body = json.dumps({"resource": f"rest-{number}", "holder": "bench", "ttl": 60}).encode()
        return _post("/v1/leases", body, key)

    return request


def _rates(operations: dict[str, tuple[int, _Requests]]) -> dict[str, float]:
    """Return requests per second of each, in slices taken in turns."""
    found: dict[str, list[float]] = {name: [] for name in operations}
    counters = dict.fromkeys(operations, 0)
    for _ in range(SLICES):
        for name, (port, request) in operations.items():
            count = asyncio.run(_load(port, request, counters[name]))
            counters[name] += 4 * count + 4 * CONNECTIONS
            found[name].append(count / SLICE_SECONDS)
    return {name: statistics.median(rates) for name, rates in found.items()}


async def _load(port: int, request: _Requests, start: int) -> int:
    """Keep 64 connections busy for a slice; return how many requests were answered."""
    end = time.monotonic() + SLICE_SECONDS
    count = 0

    async def keep_busy(connection: int) -> None:
        nonlocal count
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        number = start + 2 * connection
        while time.monotonic() < end:
            writer.write(request(number))
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            assert head.startswith(b"http/1.1 20"), head
            at = head.index(b"content-length:") + 15
            await reader.readexactly(int(head[at : head.index(b"\r\n", at)]))
            count += 1
            number += 1 if number % 2 == 0 else 2 * CONNECTIONS - 1
        writer.close()

    await asyncio.gather(*map(keep_busy, range(CONNECTIONS)))
    return count


async def _watch(port: int, key: str, store: Path) -> list[float]:
    """Return how long each event took to each of many watchers, from before it was asked for."""
    sent: dict[str, float] = {}
    delays: list[float] = []
    is_open = asyncio.Semaphore(0)

    async def watch() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"GET /v1/events?type=issued HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n\r\n"
        writer.write(head.encode())
        await reader.readuntil(b": alive\n")
        is_open.release()
        seen = 0
        while seen < EVENTS:
            line = await reader.readline()
            if line.startswith(b"data: "):
                delays.append(time.monotonic() - sent[json.loads(line[6:])["resource"]])
                seen += 1
        writer.close()

    watchers = [asyncio.create_task(watch()) for _ in range(WATCHERS)]
    for _ in watchers:
        await is_open.acquire()
    async with await leasehold.connect_async(store) as local:
        for number in range(EVENTS):
            sent[f"r{number}"] = time.monotonic()
            await local.acquire(f"r{number}", ttl=60)
            await asyncio.sleep(0.2)
    await asyncio.gather(*watchers)
    return delays


def _fill(store: Path) -> None:
    """Make a store with so many leases that stand."""
    from leasehold.client.connect import Opening, open_registrar
    from leasehold.engine.batch import Rules, run_batch

    registrar = open_registrar(store, Opening(durability="fast"))
    for start in range(0, LEASES, 1_000):
        names = [f"lease-{number:06}" for number in range(start, start + 1_000)]
        commands = [
            Acquire(lease_id=name, request_id=name, resource=name, holder="bench", ttl_ns=3600 * 10**9)
            for name in names
        ]
        run_batch(registrar.store, commands, Rules())
    registrar.close()


def _resident_mib(port: int) -> float:
    status = Path(f"/proc/{_processes[port]}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024

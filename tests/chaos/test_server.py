"""A server that is killed under load, and started again where it was."""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import leasehold
from leasehold.kernel.lease.events import LeaseIssued

pytestmark = pytest.mark.chaos

_KILLS = 3
_HOLDERS = 6
_PAIRS_BETWEEN_KILLS = 40
_PATIENCE_SECONDS = 60.0


class Server:
    """`leasehold serve` in a process of its own, on one port for all its lives."""

    def __init__(self, store: Path) -> None:
        self._store = store
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port: int = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self.key = ""
        self.start()

    def start(self) -> None:
        """Start it, and return when it listens."""
        command = [sys.executable, "-m", "leasehold", "serve", "--store", str(self._store)]
        # The rate of one key is for clients that mean it; this one asks as fast as it can.
        options = ["--port", str(self._port), "--requests-per-second", "100000", "--requests-burst", "100000"]
        self._process = subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None
        assert self._process.stdout is not None
        while True:
            line = self._process.stderr.readline()
            assert line, "the server has ended"
            if line.startswith("{") and json.loads(line)["message"] == "listening":
                break
        if not self.key:
            self.key = self._process.stdout.readline().strip()
        # What it says from here on must not fill the pipe.
        self._reading = threading.Thread(target=self._process.stderr.read, daemon=True)
        self._reading.start()

    def kill(self) -> None:
        """End it as a power cut would."""
        self._process.kill()
        self._process.wait()
        self._reading.join()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "leases")
    yield server
    server.kill()


class Load:
    """Holders that acquire and release, and note what they were told."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._changed = threading.Condition()
        self.granted: list[tuple[int, str]] = []
        """Token and lease id of every grant that was acknowledged."""
        self.troubles: list[str] = []
        self._is_done = False

    def hold(self, name: str) -> None:
        """Acquire and release until it is enough; whatever happens to the server, go on."""
        server = self._server
        with leasehold.connect(
            server.url, api_key=server.key, holder=name, timeout=_PATIENCE_SECONDS
        ) as leases:
            while not self._is_done:
                try:
                    lease = leases.acquire(f"door-{name}", ttl=60)
                    with self._changed:
                        self.granted.append((lease.token, lease.lease_id))
                        self._changed.notify_all()
                    lease.release()
                except leasehold.LeaseholdError as error:
                    self.troubles.append(f"{error.code}: {error}")

    def until(self, count: int) -> None:
        """Wait until so many grants were acknowledged."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.granted) >= count, _PATIENCE_SECONDS)

    def stop(self) -> None:
        self._is_done = True


@pytest.mark.timeout(300)
def test_killed_under_load_a_server_forgets_no_grant_and_repeats_no_token(
    server: Server, tmp_path: Path
) -> None:
    load = Load(server)
    holders = [threading.Thread(target=load.hold, args=(f"h{number}",)) for number in range(_HOLDERS)]
    for thread in holders:
        thread.start()
    try:
        for _ in range(_KILLS):
            load.until(len(load.granted) + _PAIRS_BETWEEN_KILLS)
            server.kill()
            server.start()
        load.until(len(load.granted) + _PAIRS_BETWEEN_KILLS)
    finally:
        load.stop()
        for thread in holders:
            thread.join(_PATIENCE_SECONDS)
    assert load.troubles == [], "every call got through by itself"
    tokens = [token for token, _ in load.granted]
    assert len(set(tokens)) == len(tokens)
    server.kill()
    with leasehold.connect(tmp_path / "leases") as leases:
        assert leases.verify().problems == []
        issued, after = dict[str, int](), 0
        while entries := leases.history(after=after, types=["lease.issued"]):
            grants = [entry.event for entry in entries if isinstance(entry.event, LeaseIssued)]
            issued.update({grant.lease_id: grant.token for grant in grants})
            after = entries[-1].position
        assert {lease_id: token for token, lease_id in load.granted}.items() <= issued.items()
        assert len(set(issued.values())) == len(issued)
        assert [status.lease for status in leases.list(states=["active"]).statuses] == []

"""A server in a process of its own, and ways to speak to it."""

import http.client
import json
import os
import queue
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode, urlsplit

from tests.cli.fork_server import ForkedProcess, fork_server

PATIENCE_SECONDS = 60.0
"""How long to wait for what has to come, on a machine that has other things to do."""


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def code(self) -> str:
        return str(self.body["code"])


class RunningServer:
    """`leasehold serve`, forked from a process that has imported it, until the block is left."""

    def __init__(
        self,
        store: Path,
        *flags: str,
        environment: Mapping[str, str] | None = None,
        under: Sequence[str] = (),
    ) -> None:
        """`under` is a command that becomes the server, such as one that sets limits."""
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.log: list[dict[str, Any]] = []
        self.raw_log: list[str] = []
        command = ["serve", "--store", str(store), "--port", "0", *flags]
        variables = {**clean_environment(), **(environment or {})}
        self.process: subprocess.Popen[str] | ForkedProcess
        if under:
            self.process = subprocess.Popen(
                [*under, sys.executable, "-m", "leasehold", *command],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=variables,
            )
        else:
            self.process = fork_server().start(command, environment=variables, folder=Path.cwd())
            self.process.stdin.close()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self._url = urlsplit(self.logged("listening")["url"])
            self.key = self._printed_key()
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.raw_log.append(line)
            if line.startswith("{"):
                self._lines.put(json.loads(line))
        self._lines.put(None)

    def _printed_key(self) -> str:
        assert self.process.stdout is not None
        if not any("access key with all rights" in line for line in self.raw_log):
            return ""
        return self.process.stdout.readline().strip()

    def logged(self, message: str) -> dict[str, Any]:
        """Return the next line of the log that says this, after those that were returned before."""
        while True:
            line = self._lines.get(timeout=PATIENCE_SECONDS)
            assert line is not None, f"the server ended:\n{''.join(self.raw_log)}"
            self.log.append(line)
            if line["message"] == message:
                return line

    @property
    def address(self) -> tuple[str, int]:
        assert self._url.hostname is not None
        assert self._url.port is not None
        return self._url.hostname, self._url.port

    @property
    def url(self) -> str:
        return str(self._url.geturl())

    def connect(self, context: ssl.SSLContext | None = None) -> http.client.HTTPConnection:
        host, port = self.address
        if context is not None:
            return http.client.HTTPSConnection("localhost", port, timeout=PATIENCE_SECONDS, context=context)
        return http.client.HTTPConnection(host, port, timeout=PATIENCE_SECONDS)

    def socket(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=PATIENCE_SECONDS)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        /,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> Reply:
        """Send one request, and return the answer."""
        connection = self.connect()
        try:
            return ask_over(
                connection, method, path, body, key=self.key if key is None else key, headers=headers, **query
            )
        finally:
            connection.close()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


def ask_over(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: Any = None,
    /,
    *,
    key: str = "",
    headers: Mapping[str, str] | None = None,
    **query: Any,
) -> Reply:
    sent = {"Authorization": f"Bearer {key}"} if key else {}
    if body is not None:
        sent["Content-Type"] = "application/json"
    if query:
        path = f"{path}?{urlencode(query, doseq=True)}"
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    connection.request(method, path, data, {**sent, **(headers or {})})
    response = connection.getresponse()
    content = response.read()
    found = {name.lower(): value for name, value in response.getheaders()}
    is_json = found.get("content-type", "").startswith("application/json")
    return Reply(response.status, found, json.loads(content) if is_json and content else content)


class Event(NamedTuple):
    id: int
    type: str
    data: Any


class Watcher:
    """A client of `/v1/events`."""

    def __init__(
        self,
        server: RunningServer,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> None:
        self._connection = server.connect()
        path = f"/v1/events?{urlencode(query, doseq=True)}"
        shown = {"Authorization": f"Bearer {server.key if key is None else key}"}
        self._connection.request("GET", path, headers={**shown, **(headers or {})})
        self.response = self._connection.getresponse()
        self.signs_of_life = 0
        self.last_id = 0

    def events(self) -> Iterator[Event]:
        """Yield what comes, until the stream ends."""
        kind, data = "", ""
        for line in self.response:
            text = line.decode().removesuffix("\n")
            if text.startswith(":"):
                self.signs_of_life += 1
            elif text.startswith("id: "):
                self.last_id = int(text[4:])
            elif text.startswith("event: "):
                kind = text[7:]
            elif text.startswith("data: "):
                data = text[6:]
            elif not text and data:
                yield Event(self.last_id, kind, json.loads(data))
                kind, data = "", ""

    def alive(self) -> "Watcher":
        """Return once the stream is open: nothing is missed from now on."""
        while self.response.readline() not in (b"\n", b""):
            pass
        return self

    def close(self) -> None:
        self.response.close()
        self._connection.close()


def clean_environment() -> dict[str, str]:
    """Return the environment without what would steer leasehold."""
    return {name: value for name, value in os.environ.items() if not name.startswith("LEASEHOLD_")}

"""A server that says what a test wants it to say, whatever it is asked."""

import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Self

Answer = Iterable[bytes]
"""What is sent, part by part; the connection is closed after it."""


def http(status: str, body: bytes = b"", **headers: str) -> bytes:
    """A whole HTTP reply."""
    named = {"content-type": "application/json"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join([*lines, f"content-length: {len(body)}", "connection: close", "", ""]).encode() + body


class Scripted:
    """Answers each request by calling `answer` with how many came before, and what was asked."""

    def __init__(self, answer: Callable[[int, bytes], Answer], port: int = 0) -> None:
        self._answer = answer
        self._listening = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.asked: list[bytes] = []
        """Every request to the desk, as it came; bells and waits are left alone."""
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for one in (self._listening, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            asked = _request(connection)
            with self._lock:
                count = len(self.asked)
                self.asked.append(asked)
            for part in self._answer(count, asked):
                connection.sendall(part)
        self._open.discard(connection)


def _request(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65_536) or _gone()
    head, _, body = received.partition(b"\r\n\r\n")
    length = next(
        (
            int(line.partition(b":")[2])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        ),
        0,
    )
    while len(body) < length:
        body += connection.recv(65_536) or _gone()
    return head + b"\r\n\r\n" + body


def _gone() -> bytes:
    raise OSError("the client is gone")

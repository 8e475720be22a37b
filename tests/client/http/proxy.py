"""A network between a client and a server that can be cut at any byte, or fall silent."""

import selectors
import socket
import threading
from contextlib import suppress
from typing import Self

_PART = 65_536


class Proxy:
    """Passes bytes on, until it is told to cut. It cuts once, at a byte, and then passes on again."""

    def __init__(self, port: int) -> None:
        self._upstream = ("127.0.0.1", port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._lock = threading.Lock()
        self._left: dict[str, int | None] = {"request": None, "reply": None}
        self.passed = {"request": 0, "reply": 0}
        """How many bytes went which way."""
        self.is_silent = False
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()

    def cut_after(self, way: str, count: int) -> None:
        """Cut the connection once so many more bytes went this way; 0: before the next one."""
        with self._lock:
            self._left[way] = count

    def cut(self) -> None:
        """Cut all connections now."""
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._upstream) as server, selectors.DefaultSelector() as ready:
            self._open |= {client, server}
            ready.register(client, selectors.EVENT_READ, ("request", server))
            ready.register(server, selectors.EVENT_READ, ("reply", client))
            try:
                while True:
                    for key, _ in ready.select():
                        way, target = key.data
                        assert isinstance(key.fileobj, socket.socket)
                        part = key.fileobj.recv(_PART)
                        if not part or not self._goes_on(way, part, target):
                            return
            except OSError:
                return
            finally:
                self._open -= {client, server}

    def _goes_on(self, way: str, part: bytes, target: socket.socket) -> bool:
        """Pass a part on, or what is left until the cut; say whether the connection still stands."""
        if self.is_silent:
            return True
        with self._lock:
            left = self._left[way]
            if left is None or len(part) <= left:
                self._left[way] = None if left is None else left - len(part)
            else:
                part, self._left[way] = part[:left], None
                self.passed[way] += len(part)
                target.sendall(part)
                return False
        self.passed[way] += len(part)
        target.sendall(part)
        return True

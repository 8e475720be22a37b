"""A server on standard input and output, from its first line to a clean end.

It ends when its input does, and after Ctrl-C, SIGTERM or SIGHUP. Calls that are under way are cancelled, and
leave nothing behind. Nothing but the protocol is written to standard output.

The protocol's own SDK reads its input in a thread that nobody can wake, so that Ctrl-C would wait for the
next line. Here the input can be ended from inside.
"""

import asyncio
import json
import os
import select
import signal
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

if TYPE_CHECKING:
    from anyio import AsyncFile

_CHUNK_BYTES = 65_536
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Input:
    """Standard input, line by line, for nobody but us: what is started from here finds an empty one."""

    def __init__(self) -> None:
        self._source = os.dup(0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        self._is_ending, self._end = os.pipe()
        self._read = bytearray()
        self._thread = ThreadPoolExecutor(1, "input")

    async def __aiter__(self) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(self._thread, self._line):
            yield _whole(line.decode(errors="replace"))

    def _line(self) -> bytes:
        """Return the next line, or nothing at the end."""
        ready = select.poll()
        ready.register(self._source, select.POLLIN)
        ready.register(self._is_ending, select.POLLIN)
        looked = 0
        while (end := self._read.find(b"\n", looked) + 1) == 0:
            looked = len(self._read)
            descriptors = [descriptor for descriptor, _ in ready.poll()]
            chunk = b"" if self._is_ending in descriptors else os.read(self._source, _CHUNK_BYTES)
            if not chunk:
                end = looked
                break
            self._read += chunk
        line = bytes(self._read[:end])
        del self._read[:end]
        return line

    def end(self) -> None:
        """Let it be over, whatever is still to come."""
        os.write(self._end, b".")

    def close(self) -> None:
        """Let go of it."""
        self.end()
        self._thread.shutdown()
        for descriptor in (self._source, self._is_ending, self._end):
            os.close(descriptor)


def _whole(line: str) -> str:
    """Return a line in which half characters are replaced, as programs leave them that cut a text anywhere.

    The SDK passes over a line with one, and whoever has called would never be answered.
    """
    if "\\ud" not in line.lower():
        return line
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False)
    except (ValueError, RecursionError):  # It is no message anyway.
        return line
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


async def serve(server: Server[Any]) -> int:
    """Serve one client until it leaves; return the number of the signal that ended it before, or 0."""
    given, ended_by = Input(), 0
    loop = asyncio.get_running_loop()
    heard = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]

    def end(number: int) -> None:
        nonlocal ended_by
        ended_by = number
        given.end()
        for one in heard:
            loop.remove_signal_handler(one)  # The second time means: at once.

    for number in heard:
        loop.add_signal_handler(number, end, number)
    try:
        async with stdio_server(cast("AsyncFile[str]", given)) as (messages, replies):
            await server.run(messages, replies, server.create_initialization_options())
    except* BrokenPipeError:
        pass  # The client is gone, and nobody is left to be told.
    finally:
        given.close()
    return ended_by

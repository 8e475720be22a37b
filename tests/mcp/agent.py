"""A coding agent: a real client of the protocol, and a server that it has started."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from mcp import Client
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from leasehold.files.names import name_of
from tests.cli.fork_server import ForkedProcess, fork_server
from tests.cli.shell import PATIENCE, Running, Shell, until

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class Agent:
    """An agent that calls tools, and takes answers for what they are."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        """Call a tool; return its answer, which the client has compared with the tool's schema."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        (text,) = result.content
        assert text.type == "text"
        assert json.loads(text.text) == result.structured_content
        return result.structured_content

    async def next(self, answer: Any) -> Any:
        """Make the call that a refusal says to make."""
        return await self(answer["next"]["tool"], **answer["next"]["arguments"])

    async def error(self, tool: str, **arguments: Any) -> str:
        """Call a tool in a way that cannot be right; return what it says about that."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, result.structured_content
        (text,) = result.content
        assert text.type == "text"
        return text.text


@asynccontextmanager
async def agent(shell: Shell, name: str | None = None, *, mode: str = "auto") -> AsyncIterator[Agent]:
    """Start a server for an agent in the shell's folder, and end it as clients do: by closing its input."""
    arguments = ["mcp", *([] if name is None else ["--as", name])]
    said = shell.folder / f"stderr of {name or 'nobody'}"
    with said.open("w") as stderr:
        process = fork_server().start(
            arguments, environment=shell.environment, folder=shell.folder, stderr=stderr
        )
        async with Client(pipes_to(process), mode=mode) as client:
            yield Agent(client)
        assert process.wait(PATIENCE) == 0
    assert said.read_text() == ""


@asynccontextmanager
async def pipes_to(process: ForkedProcess) -> AsyncIterator[tuple[Any, Any]]:
    """Yield what a client receives from, and what it sends to; as the protocol's own client does it."""
    received, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write_stream, sent = anyio.create_memory_object_stream[SessionMessage](0)

    async def receive() -> None:
        with received:
            async for line in anyio.wrap_file(process.stdout):
                with suppress(anyio.BrokenResourceError):  # The client has ended before the server has.
                    await received.send(SessionMessage(jsonrpc_message_adapter.validate_json(line)))

    async def send() -> None:
        with process.stdin:
            async for one in sent:
                process.stdin.write(one.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n")
                process.stdin.flush()

    with process.stdout, process.stderr, read_stream, sent:
        async with anyio.create_task_group() as both:
            both.start_soon(receive)
            both.start_soon(send)
            yield read_stream, write_stream
            write_stream.close()


class Wire:
    """A server at the other end of two pipes, spoken to line by line."""

    def __init__(self, shell: Shell, *arguments: str, **environment: str) -> None:
        self.running: Running = shell.start("mcp", *arguments, **environment)
        self._number = 0
        self.ask("initialize", INITIALIZE)
        self.tell("notifications/initialized")

    def tell(self, method: str, **parameters: Any) -> None:
        self._give({"method": method, "params": parameters})

    def send(self, method: str, parameters: dict[str, Any]) -> int:
        """Ask, and go on."""
        self._number += 1
        self._give({"id": self._number, "method": method, "params": parameters})
        return self._number

    def ask(self, method: str, parameters: dict[str, Any]) -> Any:
        """Ask, and wait for the answer."""
        number = self.send(method, parameters)
        answer = json.loads(self.running.line())
        assert answer["id"] == number
        return answer["result"]

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def start(self, tool: str, **arguments: Any) -> int:
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def _give(self, message: dict[str, Any]) -> None:
        self.running.give(json.dumps({"jsonrpc": "2.0", **message}))


def waiters(shell: Shell, path: str) -> list[str]:
    """Return who waits for a path."""
    with shell.client() as client:
        return [one.lease.holder for one in client.queue(name_of(path).resource)]


def wait_until_queued(shell: Shell, path: str) -> None:
    """Wait until somebody stands in line for a path."""
    until(lambda: bool(waiters(shell, path)))


def wait_until_nobody_waits(shell: Shell, path: str) -> None:
    until(lambda: not waiters(shell, path))


def holders(shell: Shell) -> set[str]:
    """Return who holds anything."""
    return {lease.holder for lease in shell.leases()}

"""A coding agent: a real client of the protocol, and a server that it has started."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client, StdioServerParameters, stdio_client

from leasehold.files.names import name_of
from tests.cli.shell import EXECUTABLE, Running, Shell, until

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
    parameters = StdioServerParameters(
        command=EXECUTABLE,
        args=["mcp", *([] if name is None else ["--as", name])],
        env=shell.environment,
        cwd=shell.folder,
    )
    said = shell.folder / f"stderr of {name or 'nobody'}"
    with said.open("w") as stderr:
        async with Client(stdio_client(parameters, errlog=stderr), mode=mode) as client:
            yield Agent(client)
    assert said.read_text() == ""


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

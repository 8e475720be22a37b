"""The protocol: which tools there are, and calls of them.

A call is answered with a value that its tool's schema describes. One that can never be right, or that the
store could not serve, is answered as an error that says what to do about it.
"""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

import msgspec
from mcp import MCPError, types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from leasehold import __version__
from leasehold.errors import StoreUnusable
from leasehold.mcp.answers import Answer
from leasehold.mcp.arguments import Arguments, checked, with_our_names
from leasehold.mcp.connection import Connection
from leasehold.mcp.definitions import DEFINITIONS, INSTRUCTIONS, Definition, schema_of
from leasehold.mcp.tools import Tools


class Service:
    """The tools of a server, for the agent that it was started for; `explain` says what an error means."""

    def __init__(self, connection: Connection, agent: str, explain: Callable[[Exception], str]) -> None:
        self._connection = connection
        self._agent = agent
        self._explain = explain

    async def list_tools(
        self, context: ServerRequestContext[Any], parameters: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Tell which tools there are."""
        del context, parameters
        return types.ListToolsResult(tools=[tool_of(one) for one in DEFINITIONS.values()])

    async def call_tool(
        self, context: ServerRequestContext[Any], parameters: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Call one of them."""
        del context
        definition = DEFINITIONS.get(parameters.name)
        if definition is None:
            raise MCPError(types.INVALID_PARAMS, _no_tool(parameters.name))
        try:
            answer = await self._answer(definition, checked(definition.takes, parameters.arguments or {}))
        except Exception as error:
            text = with_our_names(self._explain(error))
            return types.CallToolResult(content=[_text(text)], is_error=True)
        return types.CallToolResult(
            content=[_text(msgspec.json.encode(answer).decode())],
            structured_content=msgspec.to_builtins(answer),
        )

    async def _answer(self, definition: Definition, asked: Arguments) -> Answer:
        client = await self._connection.client()
        try:
            answer: Answer = await getattr(Tools(client, self._agent), definition.name)(asked)
        except StoreUnusable:
            await self._connection.drop(client)
            raise
        return answer


def tool_of(definition: Definition) -> types.Tool:
    """Return a tool as the protocol tells of it."""
    return types.Tool(
        name=definition.name,
        description=definition.description,
        input_schema=schema_of(definition.takes),
        output_schema=schema_of(definition.answers),
        annotations=types.ToolAnnotations(
            title=definition.title,
            read_only_hint=definition.is_read_only,
            destructive_hint=definition.is_destructive,
            idempotent_hint=definition.is_idempotent,
            open_world_hint=False,
        ),
    )


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _no_tool(name: str) -> str:
    near = get_close_matches(name, DEFINITIONS, n=1)
    step = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(DEFINITIONS)}"
    return f"there is no tool {name!r:.80}; {step}"


def server_of(service: Service) -> Server[Any]:
    """Return what speaks the protocol for a service."""
    return Server(
        "leasehold",
        version=__version__,
        title="leasehold: file leases",
        instructions=INSTRUCTIONS,
        on_list_tools=service.list_tools,
        on_call_tool=service.call_tool,
    )

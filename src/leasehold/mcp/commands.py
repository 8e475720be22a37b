"""leasehold mcp: file leases as tools of a coding agent."""

import os
import secrets
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from leasehold.cli.connecting import AGENT_VARIABLE, refuse_memory, user_at_host
from leasehold.cli.entry import ExtraMissing, problem_of
from leasehold.cli.output import Output, say_on_stderr
from leasehold.cli.parser import Commands

if TYPE_CHECKING:
    from leasehold.client.aio.client import AsyncClient

_BUSY_SECONDS = 10.0
"""How long a call waits for other writers: even after a long wait in line, its client still listens."""


def add_commands(commands: Commands) -> None:
    """Add the command of this module."""
    parser = commands.add(
        "mcp",
        _mcp,
        "serve file leases as tools for a coding agent (MCP)",
        details="""\
A server of the Model Context Protocol on standard input and output, to be started by the agent's program:
claim, wait, renew, release, check, list, history, transfer. Paths that are not absolute count from the folder
that it is started in. It ends when its input does, or by Ctrl-C.

What an agent holds under a name that was given stays its own until it is released, or its time is over, also
when the server ends. Without a name the server makes one up, and gives back what it holds when it ends.

It comes with leasehold's extra `mcp`.

examples:
  leasehold mcp --as agent-7
  claude mcp add leasehold --env LEASEHOLD_AGENT=agent-7 -- leasehold mcp

exit codes: 0 the input ended · 1 error · 2 wrong usage · 130 interrupted""",
    )
    parser.add_argument(
        "--as",
        dest="agent",
        metavar="AGENT",
        help=f"the agent's id (default: ${AGENT_VARIABLE}, else one for this server)",
    )


def _mcp(arguments: Namespace, out: Output) -> int:
    try:
        import mcp  # noqa: F401 - only to see whether it is there
    except ModuleNotFoundError as error:
        raise ExtraMissing(
            f"leasehold mcp needs {error.name}, which is not installed; "
            "install leasehold with its extra `mcp`"
        ) from error
    import asyncio

    return asyncio.run(_serve(arguments))


async def _serve(arguments: Namespace) -> int:
    from leasehold.mcp.connection import Connection
    from leasehold.mcp.server import Service, server_of
    from leasehold.mcp.stdio import serve

    if sys.stdin.isatty():
        say_on_stderr(
            "leasehold: serving MCP on standard input, for a coding agent's program; Ctrl-C ends it"
        )
    own = f"{user_at_host()}/{os.getpid()}-{secrets.token_hex(2)}"
    # Not $LEASEHOLD_HOLDER: that is who started the agents, and they must not be taken for one holder.
    agent = (os.environ.get(AGENT_VARIABLE) or own) if arguments.agent is None else arguments.agent
    connection = Connection(lambda: _connect(arguments, agent))
    service = Service(connection, agent, lambda error: str(problem_of(error)))
    ended_by = await serve(server_of(service))
    code = 128 + ended_by if ended_by else 0
    if not await connection.close(own if agent == own else None):
        os._exit(code)  # A writer that has stopped must not keep us: what is under way ends as if killed.
    return code


async def _connect(arguments: Namespace, agent: str) -> "AsyncClient":
    from leasehold.client.aio.connect import connect_async

    client = await connect_async(
        arguments.store,
        tenant=arguments.tenant,
        holder=agent,
        durability=arguments.durability,
        group=arguments.group,
        timeout=_BUSY_SECONDS,
    )
    refuse_memory(client.url)
    return client

"""The chapter about the server: remote programs, what keys allow, and an orderly stop."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from leasehold.cli.demo_parts.narration import Story
from leasehold.client.blocking.client import Client
from leasehold.client.connect import connect
from leasehold.errors import Held, LeaseholdError

_NEEDED = ("aiohttp", "granian", "litestar", "prometheus_client")
_RESOURCE = "gate"
_PATIENCE_SECONDS = 30.0


def serve_others(story: Story, local: Client, store: Path, number: int) -> None:
    """Let a server serve the demo's store, and programs speak to it over HTTP."""
    story.heading(f"{number}. A server lets programs on other machines in")
    lacking = [name for name in _NEEDED if find_spec(name) is None]
    if lacking:
        story.say(f"Left out: it needs {', '.join(lacking)}, from leasehold's extras `server` and `http`.")
        return
    with _serving(store) as (url, key, server):
        story.say(f"It listens on {url}, and has printed an access key once.")
        with connect(url, api_key=key, holder="remote") as remote:
            lease = remote.acquire(_RESOURCE, ttl=30)
            told = _who_holds(local)
            story.claim("a local program is told that a remote one holds the gate", told == "remote")
            viewer = remote.access.create("viewer")
            with connect(url, api_key=viewer.text) as looking:
                seen = [status.lease.token for status in looking.inspect(_RESOURCE)]
                refused = _refusal(looking)
            story.claim(
                f"a viewer's key can look, and is refused to acquire: {refused}",
                seen == [lease.token] and refused == "NOT_PERMITTED",
            )
            lease.release()
        server.send_signal(signal.SIGTERM)
        story.claim("the server stops in order when it is told to", server.wait(_PATIENCE_SECONDS) == 0)


@contextmanager
def _serving(store: Path) -> Iterator[tuple[str, str, "subprocess.Popen[str]"]]:
    command = [sys.executable, "-m", "leasehold", "serve", "--store", str(store), "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    ) as server:
        try:
            assert server.stdout is not None
            assert server.stderr is not None
            key = server.stdout.readline().strip()
            listening = next(line for line in server.stderr if '"listening"' in line)
            yield json.loads(listening)["url"], key, server
        finally:
            server.kill()


def _who_holds(client: Client) -> str:
    try:
        client.acquire(_RESOURCE).release()
    except Held as error:
        return str(error.holder)
    return "nobody"


def _refusal(client: Client) -> str:
    try:
        client.acquire(_RESOURCE).release()
    except LeaseholdError as error:
        return error.code
    return "nobody refused"

"""What a coding agent is about to do, as Claude Code tells its hooks: JSON on stdin.

Tools that are not known write nothing, as far as a guard can tell; a known tool that does not say what
it writes is malformed.
"""

import os
from typing import Any, NamedTuple

import msgspec

_PATH_FIELDS = {
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "Write": "file_path",
    "NotebookEdit": "notebook_path",
}
TOOLS = (*_PATH_FIELDS, "Bash")
"""The tools that a hook is asked about."""


class Malformed(ValueError):
    """This is not what Claude Code tells a hook."""


class Told(NamedTuple):
    """What a hook was told."""

    event: str
    session: str
    subagent: str
    """Empty: it is the session itself."""
    folder: str
    """Where the agent is."""
    tool: str
    tool_input: dict[str, Any]

    @property
    def agent(self) -> str:
        """Return the name of the agent, by which it differs from all others."""
        return f"{self.session}/{self.subagent}" if self.subagent else self.session


def read(text: bytes) -> Told:
    """Read what a hook is told; raise Malformed if it makes no sense."""
    try:
        told = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"stdin is not JSON: {error}") from None
    if not isinstance(told, dict):
        raise Malformed("stdin is not a JSON object")
    tool_input = told.get("tool_input", {})
    if not isinstance(tool_input, dict):
        raise Malformed("tool_input is not an object")
    found = Told(
        event=_text(told, "hook_event_name"),
        session=_text(told, "session_id"),
        subagent=_text(told, "agent_id", optional=True),
        folder=_text(told, "cwd"),
        tool=_text(told, "tool_name", optional=True),
        tool_input=tool_input,
    )
    if not found.folder.startswith("/"):
        raise Malformed("cwd is not an absolute path")
    return found


def paths_written(told: Told) -> list[str]:
    """Return the absolute paths that a tool is about to write; raise Malformed if it does not say which."""
    if told.tool == "Bash":
        from leasehold.guards.shell import written

        return written(_text(told.tool_input, "command"), told.folder, os.path.isdir)
    field = _PATH_FIELDS.get(told.tool)
    if field is None:
        return []
    return [os.path.join(told.folder, _text(told.tool_input, field))]


def _text(told: dict[str, Any], field: str, *, optional: bool = False) -> str:
    value = told.get(field)
    if value is None and optional:
        return ""
    if not isinstance(value, str) or (not value and not optional):
        raise Malformed(f"{field} is {'missing' if value is None else 'not a text'}")
    return value

"""What the server logs: one JSON object per line, on stderr.

Promised: no access key's secret is ever in it, whatever a client sends, and wherever that ends up.
"""

import asyncio
import logging
import re
import sys
import time
from typing import Any, TextIO

import msgspec

from leasehold.shapes import utc

_SECRET = re.compile(r"(lh_[0-9A-Za-z-]{1,64})_[0-9A-Za-z_~+/=.-]+")
"""A whole access key: its id may be told, its secret may not."""

_MOMENT_SECONDS = 0.05

FIELDS = "leasehold_fields"
"""The attribute of a log record with what is told beside the message."""


def without_secrets(text: str) -> str:
    """Return a text in which the secret of every access key is left out."""
    return _SECRET.sub(r"\1_…", text) if "lh_" in text else text


class JsonLines(logging.Formatter):
    """Writes a log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "at": utc(int(record.created * 1e9)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, FIELDS, {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return _spelled(line)


def _spelled(line: dict[str, Any]) -> str:
    try:
        spelled = msgspec.json.encode(line, enc_hook=str).decode()
    except UnicodeEncodeError:
        spelled = msgspec.json.encode({"message": repr(line)}).decode()
    return without_secrets(spelled)


class RequestLog:
    """One line for each request, in the same form; written together, for there may be thousands a second."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._lines: list[str] = []

    def note(self, fields: dict[str, Any]) -> None:
        """Write a line, within a moment. In the event loop."""
        moment = utc(time.time_ns())
        head = {"at": moment, "level": "info", "logger": "leasehold.server.requests", "message": "request"}
        if not self._lines:
            asyncio.get_running_loop().call_later(_MOMENT_SECONDS, self.flush)
        self._lines.append(_spelled(head | fields))

    def flush(self) -> None:
        """Write what was not written yet."""
        lines, self._lines = self._lines, []
        if lines:
            self._stream.write("\n".join(lines) + "\n")
            self._stream.flush()


def log_as_json(level: str) -> None:
    """Let everything that is logged in this process go to stderr as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())

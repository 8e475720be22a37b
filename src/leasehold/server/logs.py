"""What the server logs: one JSON object per line, on stderr.

Promised: no access key's secret is ever in it, whatever a client sends, and wherever that ends up.
"""

import logging
import re
import sys
from typing import Any

import msgspec

from leasehold.shapes import utc

_SECRET = re.compile(r"(lh_[0-9A-Za-z-]{1,64})_[0-9A-Za-z_~+/=.-]+")
"""A whole access key: its id may be told, its secret may not."""

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
        try:
            spelled = msgspec.json.encode(line, enc_hook=str).decode()
        except UnicodeEncodeError:
            spelled = msgspec.json.encode({"message": repr(line)}).decode()
        return without_secrets(spelled)


def log_as_json(level: str) -> None:
    """Let everything that is logged in this process go to stderr as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())

"""What an error looks like over HTTP.

Its body is JSON: the stable `code`, in `detail` what happened and what to do next, and the facts by name. The
status is the one that the error carries. What nobody has foreseen says nothing of the server's inside, and
what names a path on its disk is told without it; the server's log has both.
"""

import logging
import math
from typing import Any

import msgspec

from leasehold.errors import LeaseholdError, NotAuthenticated, StoreError
from leasehold.shapes import facts_shape

_RETRY_SECONDS = 1
"""After how long to try again where the store could not be used, and nobody knows for how long."""


_PASSING = (503, 507)
"""What may be otherwise in a moment: the store cannot be used, or has no space left."""


_logger = logging.getLogger(__name__)


class BadRequest(LeaseholdError, code="BAD_REQUEST", http_status=400):
    """The request cannot be read."""


class PathNotFound(LeaseholdError, code="PATH_NOT_FOUND", http_status=404):
    """The server has nothing under this path."""


class MethodNotAllowed(LeaseholdError, code="METHOD_NOT_ALLOWED", http_status=405):
    """The path exists, and does not take this method."""


class TooSlow(LeaseholdError, code="TOO_SLOW", http_status=408):
    """The request did not arrive in time."""


class BodyTooLarge(LeaseholdError, code="BODY_TOO_LARGE", http_status=413):
    """The body is larger than the server takes."""


class WrongMediaType(LeaseholdError, code="WRONG_MEDIA_TYPE", http_status=415):
    """The body is not JSON, or does not say so."""


class ServerStopping(LeaseholdError, code="SERVER_STOPPING", http_status=503):
    """The server is being stopped, and takes no new work. Nothing was changed."""


class ServerBusy(LeaseholdError, code="SERVER_BUSY", http_status=503):
    """The server has as many open streams, or waiting requests, as it takes."""


class ServerDefect(LeaseholdError, code="DEFECT"):
    """Something happened that nobody thought of."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that says what went wrong."""

    status: int
    headers: dict[str, str]
    body: bytes


def problem(error: Exception) -> Problem:
    """Return what a caller is told about an error."""
    known = discreet(error) if isinstance(error, LeaseholdError) else _defect()
    headers = {"content-type": "application/json"}
    if isinstance(known, NotAuthenticated):
        headers["www-authenticate"] = 'Bearer realm="leasehold"'
    retry_after = known.retry_after
    if retry_after is None and known.http_status in _PASSING:
        retry_after = _RETRY_SECONDS
    if retry_after is not None:
        headers["retry-after"] = str(max(1, math.ceil(retry_after)))
    return Problem(status=known.http_status, headers=headers, body=_body(known))


def discreet(error: LeaseholdError) -> LeaseholdError:
    """Return an error as it is told to callers elsewhere; one that names a path of this machine is logged."""
    if error.path is None:
        return error
    _logger.warning("what a caller was not told in full: %s: %s", error.code, error)
    changed = "nothing was changed"
    if isinstance(error, StoreError) and error.outcome_unknown:
        changed = "whether anything was changed is unknown: ask again with the same request id"
    return type(error)(
        f"the server could not use its store ({error.code}); {changed}. Try again later, or tell whoever "
        "runs the server: its log says why"
    )


def _defect() -> ServerDefect:
    return ServerDefect("the server hit a defect; its log says more, under the request id of this answer")


def _body(error: LeaseholdError) -> bytes:
    shape: dict[str, Any] = facts_shape(error) | {"code": error.code, "detail": str(error)}
    try:
        return msgspec.json.encode(shape, enc_hook=str)
    except UnicodeEncodeError:  # What was asked for was not text, and the message quotes it.
        spelled = str(error).encode("utf-8", "backslashreplace").decode()
        return msgspec.json.encode({"code": error.code, "detail": spelled})

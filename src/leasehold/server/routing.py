"""What the route modules of all faces have in common.

A module of routes has a `router`, and one line in `app`. `get`, `post` or `put` declare a handler, with an
example of what it takes and gives. If it asks for `session`, it gets that of the caller, whose desk admits or
refuses every command and question; without a good access key it is never called. Names of resources travel in
the query or the body: a `/` inside a path parameter would be another path.
"""

import re
from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, cast

import litestar
import msgspec
from litestar import Request
from litestar.di import NamedDependency
from litestar.exceptions import (
    ClientException,
    HTTPException,
    MethodNotAllowedException,
    NotFoundException,
    ValidationException,
)
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import Body, QueryParameter
from litestar.response import Response

from leasehold.client.aio.session import AsyncSession
from leasehold.enforcing.asgi import Scope
from leasehold.errors import InvalidInput, LeaseholdError
from leasehold.server.problems import BadRequest, MethodNotAllowed, PathNotFound, WrongMediaType, problem
from leasehold.server.service import Service

Asking = NamedDependency[AsyncSession]
"""The session of who sends a request: what a handler asks for as `session`."""
Serving = NamedDependency[Service]
"""What all routes of a server share: what a handler asks for as `service`."""

_PAGE_MAXIMUM = 1_000

Limit = Annotated[int, QueryParameter(ge=1, le=_PAGE_MAXIMUM)]
"""How much of anything one answer of plain REST has."""

Handler = Callable[..., Awaitable[Any]]
Declaration = Callable[[Handler], HTTPRouteHandler]

GONE = (404, 409, 410)
"""How whoever acts under a lease can be refused: it is unknown, another's, or over."""


class ProblemBody(msgspec.Struct, kw_only=True):
    """What went wrong, and what to do next. The facts that are known stand beside these, by name."""

    code: str
    """Stable: programs may rely on it."""
    detail: str


class JsonRequest(Request[Any, Any, Any]):
    """A request whose body may be anything, and is refused if it is not JSON."""

    @property
    def notes(self) -> Scope:
        """Return the scope as plain ASGI has it: where what is known of the request is noted."""
        return cast(Scope, self.scope)

    async def json(self) -> Any:
        """Return the body; raise BadRequest if it cannot be read, and InvalidInput if it is something else.

        The router itself would take the text "30" for a number, as it has to in a query.
        """
        try:
            body = await super().json()
        except UnicodeDecodeError:
            raise BadRequest("the body is not UTF-8; send JSON in UTF-8") from None
        except RecursionError:
            raise BadRequest("the body is nested too deeply; send less in one") from None
        taken = self.route_handler.parsed_fn_signature.parameters.get("data")
        if taken is not None:
            try:
                msgspec.convert(body, taken.annotation)
            except msgspec.ValidationError as error:
                raise _unlike(error, taken.annotation) from None
        return body


def problems(*statuses: int) -> dict[int, ResponseSpec]:
    """Return what the OpenAPI document says about the refusals of a route, beside the usual ones."""
    return {
        status: ResponseSpec(
            data_container=ProblemBody,
            description=_DESCRIPTIONS[status],
            generate_examples=False,
            examples=[Example(summary="A refusal", value=_EXAMPLES[status])],
        )
        for status in sorted({*_USUAL, *statuses})
    }


def answers(status: int, body: Any, example: dict[str, Any], *refusals: int) -> dict[int, ResponseSpec]:
    """Return what the OpenAPI document says about the answers of a route: the good one, and refusals."""
    good = ResponseSpec(
        data_container=body,
        description="Done.",
        generate_examples=False,
        examples=[Example(summary="An answer", value=example)],
    )
    return {status: good, **problems(*refusals)}


def get(path: str, summary: str, *refusals: int, answer: dict[str, Any]) -> Declaration:
    """Declare what answers a question, by an example of the answer and the refusals beside the usual ones."""
    return _route(litestar.get, path, summary, refusals, answer=answer)


def post(
    path: str, summary: str, *refusals: int, body: dict[str, Any], answer: dict[str, Any], status: int = 200
) -> Declaration:
    """Declare what carries out a command, by an example of its body too."""
    return _route(litestar.post, path, summary, refusals, answer=answer, body=body, status=status)


def put(path: str, summary: str, *refusals: int, body: dict[str, Any], answer: dict[str, Any]) -> Declaration:
    """Declare what sets something, by an example of its body too."""
    return _route(litestar.put, path, summary, refusals, answer=answer, body=body)


def _route(
    method: Callable[..., Declaration],
    path: str,
    summary: str,
    refusals: tuple[int, ...],
    *,
    answer: dict[str, Any],
    body: dict[str, Any] | None = None,
    status: int = 200,
) -> Declaration:
    """Return what makes a route of a handler, whose annotations say what it takes, as `data`, and gives."""

    def declare(handler: Handler) -> HTTPRouteHandler:
        types = handler.__annotations__
        if body is not None:
            taken, example = types["data"], Example(summary="A request", value=body)
            types["data"] = Annotated[taken, Body(examples=[example])]
        responses = answers(status, types["return"], answer, *refusals)
        return method(path, summary=summary, status_code=status, responses=responses)(handler)

    return declare


def told(error: LeaseholdError) -> dict[str, Any]:
    """Return what a caller is told about an error that is one of several outcomes."""
    body: dict[str, Any] = msgspec.json.decode(problem(error).body)
    return body


_USUAL = (400, 401, 403, 422, 429, 503)

_DESCRIPTIONS = {
    400: "The request cannot be read.",
    401: "No access key, or none that is good.",
    403: "The caller may not do this.",
    404: "There is no such thing, or the caller may not know of it.",
    409: "Refused; nothing was changed. `code` says why.",
    410: "The lease is not the caller's any more, or what was asked for is gone.",
    422: "A value can never be right; `field` says which.",
    429: "Too many requests, or past a limit. `Retry-After` says when to ask again.",
    503: "The store cannot be used, or the server is stopping. `Retry-After` says when to ask again.",
}

_EXAMPLES: dict[int, dict[str, Any]] = {
    400: {"code": "BAD_REQUEST", "detail": "the body is not JSON: unexpected end; send a JSON object"},
    401: {"code": "NOT_AUTHENTICATED", "detail": "show an access key: `Authorization: Bearer lh_…`"},
    403: {"code": "NOT_PERMITTED", "detail": "the key is a viewer's, and cannot change anything"},
    404: {
        "code": "LEASE_NOT_FOUND",
        "detail": "there is no lease 019…; list the leases to find the right id",
    },
    409: {
        "code": "HELD",
        "detail": "report-42 is held by ann for at most 21.5 s more unless renewed; try again then",
        "resource": "report-42",
        "holder": "ann",
        "expires_in": 21.5,
    },
    410: {
        "code": "LEASE_EXPIRED",
        "detail": "lease 019… on report-42 has expired; acquire the resource again",
    },
    422: {"code": "INVALID_INPUT", "detail": "ttl must be at least 0.001 s", "field": "ttl"},
    429: {"code": "RATE_LIMITED", "detail": "this access key may ask 100 times a second; ask less often"},
    503: {"code": "STORE_BUSY", "detail": "process 4711 has kept the store's write lock for more than 30 s"},
}


def refuse_unknown_query(request: Request[Any, Any, Any]) -> None:
    """Refuse a query parameter that a route does not have: left out in silence, it would widen a search."""
    if not request.scope["query_string"]:
        return
    known = _query_of(request.route_handler)
    for name in request.query_params:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            step = f"did you mean {near[0]!r}?" if near else "/openapi.json lists what it takes"
            raise InvalidInput(f"this path takes no query parameter {name!r:.80}; {step}", field=name)


@cache
def _query_of(handler: Any) -> frozenset[str]:
    return frozenset(
        getattr(field.kwarg_definition, "name", None) or name
        for name, field in handler.parsed_fn_signature.parameters.items()
    )


def answer_problem(error: Exception) -> Response[bytes]:
    """Return an error as the answer to a request."""
    told = problem(_ours(error))
    return Response(
        told.body, status_code=told.status, headers=told.headers, media_type=told.headers["content-type"]
    )


def _ours(error: Exception) -> Exception:
    """Return what the router's own refusals are called here."""
    match error:
        case NotFoundException():
            return PathNotFound("there is nothing under this path; /openapi.json lists what there is")
        case MethodNotAllowedException():
            return MethodNotAllowed("this path does not take that method; /openapi.json lists what it takes")
        case ValidationException():
            return _invalid(error)
        case ClientException() if error.status_code == WrongMediaType.http_status:
            return WrongMediaType("send the body as JSON, with `Content-Type: application/json`")
        case HTTPException() if error.status_code < 500:
            return BadRequest(f"{error.detail}; send what /openapi.json says")
        case _:
            return error


_FIELD_PROBLEM = re.compile("Object (missing required|contains unknown) field (.+)")


def _unlike(error: msgspec.ValidationError, taken: Any) -> InvalidInput:
    """Return what is said about a body that is not like the type that the document has for it."""
    said, _, place = str(error).replace("`", "").partition(" - at $")
    place = place.lstrip(".")
    problem = _FIELD_PROBLEM.fullmatch(said)
    if problem is None:
        return InvalidInput(f"{place}: {said}" if place else said, field=place or None)
    name = problem[2]
    field = f"{place}.{name}" if place else name
    if problem[1] == "missing required":
        return InvalidInput(f"the body lacks the field {field!r:.80}, which is required", field=field)
    near = [] if place else get_close_matches(name, getattr(taken, "__struct_encode_fields__", ()), n=1)
    step = f"did you mean {near[0]!r}?" if near else "/openapi.json lists what it takes"
    return InvalidInput(f"the body takes no field {field!r:.80}; {step}", field=field[:80])


def _invalid(error: ValidationException) -> InvalidInput:
    extra = error.extra if isinstance(error.extra, list) else []
    for one in extra:
        if isinstance(one, dict) and "message" in one:
            field = one.get("key")
            said = one["message"] if field is None else f"{field}: {one['message']}"
            return InvalidInput(str(said), field=field)
    return InvalidInput(str(error.detail))

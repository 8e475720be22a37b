"""One ASGI application: the desk route in front, and behind it a router for everything else.

A face adds its routes with one line in `_routers`.
"""

import logging
from collections.abc import Callable
from typing import Any, cast

from litestar import Litestar, Request, Router
from litestar.di import Provide
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, SwaggerRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.response import Response

from leasehold import __version__
from leasehold.access import routes as access
from leasehold.client.aio.session import AsyncSession
from leasehold.enforcing.asgi import Application, Receive, Scope, Send
from leasehold.errors import LeaseholdError
from leasehold.files import routes as files
from leasehold.server import events, health, leases, ledger
from leasehold.server.front import CODE
from leasehold.server.routing import JsonRequest, answer_problem, refuse_unknown_query
from leasehold.server.service import Service
from leasehold.server.terms import Terms
from leasehold.settings import routes as settings
from leasehold.work import routes as work
from leasehold.workflows import routes as workflows

_DESK = "/v1/desk"
_logger = logging.getLogger(__name__)


def _routers() -> tuple[Router, ...]:
    """Return the routes of every face."""
    return (
        leases.router,
        files.router,
        work.router,
        workflows.router,
        settings.router,
        ledger.router,
        events.router,
        access.router,
        health.router,
    )


def application(service: Service) -> Application:
    """Return the routes of a server as an ASGI application; the desk route has all of `/v1/desk`."""
    desk, router = service.desk_route, _router(lambda: service)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path == _DESK or path.startswith(f"{_DESK}/"):
            await desk(scope, receive, send)
        else:
            await router(scope, receive, send)  # type: ignore[arg-type]  # its own names for the same types

    return answer


def document() -> dict[str, Any]:
    """Return the OpenAPI document, without a server."""

    def nobody() -> Service:
        raise AssertionError("routes that are only described are not called")

    return _router(nobody).openapi_schema.to_schema()


def _router(service: Callable[[], Service]) -> Litestar:
    readiness = health.Readiness()

    def session_of(request: JsonRequest) -> AsyncSession:
        return service().sessions.of(request.notes)

    def refuse(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
        answer = answer_problem(error)
        cast(Scope, request.scope)[CODE] = getattr(error, "code", "")
        if answer.status_code == 500 and not isinstance(error, LeaseholdError):
            _logger.error("a defect answered %s %s", request.method, request.url.path, exc_info=error)
        return answer

    return Litestar(
        route_handlers=_routers(),
        dependencies={
            "session": Provide(session_of, sync_to_thread=False),
            "service": Provide(service, sync_to_thread=False),
            "terms": Provide(Terms, sync_to_thread=False),
            "readiness": Provide(lambda: readiness, sync_to_thread=False),
        },
        request_class=JsonRequest,
        before_request=refuse_unknown_query,
        exception_handlers={Exception: refuse},
        openapi_config=_openapi(),
        logging_config=None,
        request_max_body_size=None,  # What goes in front of this has a limit.
    )


def _openapi() -> OpenAPIConfig:
    key = SecurityScheme(type="http", scheme="bearer", description="The text of an access key: lh_…")
    return OpenAPIConfig(
        title="leasehold",
        version=__version__,
        description="Who owns this right now, until when, and can they prove it?",
        path="/",
        render_plugins=[SwaggerRenderPlugin(path="/docs"), JsonRenderPlugin()],
        components=Components(security_schemes={"access_key": key}),
        security=[{"access_key": []}],
        use_handler_docstrings=True,
    )

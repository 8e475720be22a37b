"""The middleware around a small application: in a real server over a socket, and message by message."""

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from leasehold.certificates.errors import CertificateMissing
from leasehold.enforcing import Enforcer, LeaseMiddleware, SqliteFence
from leasehold.enforcing.asgi import Message, Receive, Scope, Send, UnknownScope
from leasehold.kernel.lease.model import Mode
from tests.certificates.statements import KEY, OTHER_KEY
from tests.enforcing.test_enforcer import fresh


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with who was let in."""
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    certificate = scope.get("leasehold.certificate")
    body = (certificate.holder if certificate else "nobody").encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def protected() -> LeaseMiddleware:
    return LeaseMiddleware(application, enforcer=Enforcer(keys=[KEY.public_key]))


@pytest.fixture
def server() -> Iterator[int]:
    """Serve the application on a port of its own; return that."""
    listener = socket.create_server(("127.0.0.1", 0))
    running = uvicorn.Server(uvicorn.Config(protected(), log_level="warning", lifespan="on"))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    yield listener.getsockname()[1]
    running.should_exit = True
    thread.join(30)
    listener.close()
    assert not thread.is_alive()


def ask(port: int, method: str, path: str, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


def code_in(answer: tuple[int, str]) -> tuple[int, str]:
    status, body = answer
    return status, json.loads(body)["error"]["code"]


def test_over_a_socket_only_the_holder_of_the_lease_gets_through(server: int) -> None:
    old, new = (fresh(resource="/door", token=token) for token in (7, 8))
    assert ask(server, "GET", "/door") == (200, "nobody")
    assert ask(server, "PUT", "/door", lease_certificate=old) == (200, "ann")
    assert ask(server, "PUT", "/door", Lease_Certificate=new) == (200, "ann")
    assert code_in(ask(server, "PUT", "/door", lease_certificate=old)) == (409, "STALE_TOKEN")
    assert code_in(ask(server, "PUT", "/door")) == (401, "CERTIFICATE_MISSING")
    assert code_in(ask(server, "DELETE", "/door", lease_certificate="x")) == (401, "CERTIFICATE_MALFORMED")
    assert code_in(ask(server, "POST", "/safe", lease_certificate=new)) == (403, "CERTIFICATE_RESOURCE")
    forged = fresh(resource="/door", token=9, key=OTHER_KEY)
    assert code_in(ask(server, "PUT", "/door", lease_certificate=forged)) == (401, "CERTIFICATE_KEY_UNKNOWN")


def talk(middleware: LeaseMiddleware, scope: Scope) -> list[Message]:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(middleware(scope, receive, send))
    return sent


def http_scope(method: str = "PUT", *certificates: str, path: str = "/door") -> dict[str, Any]:
    headers = [(b"Lease-Certificate", text.encode()) for text in certificates]
    return {"type": "http", "method": method, "path": path, "headers": headers}


def test_two_certificates_in_one_request_are_one_too_many() -> None:
    certificate = fresh(resource="/door")
    start, body = talk(protected(), http_scope("PUT", certificate, certificate))
    assert start["status"] == 401
    assert b"CERTIFICATE_MALFORMED" in body["body"]


def test_a_refusal_says_why_and_what_to_do_next_and_how_long_it_is() -> None:
    start, body = talk(protected(), http_scope())
    told = json.loads(body["body"])["error"]
    assert told["code"] == "CERTIFICATE_MISSING"
    assert told["resource"] == "/door"
    assert "lease.certificate()" in told["message"]
    assert (b"content-length", str(len(body["body"])).encode()) in start["headers"]


@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH", "DELETE", "PROPFIND", "get"])
def test_whatever_is_not_known_to_only_look_has_to_be_proven(method: str) -> None:
    assert talk(protected(), http_scope(method))[0]["status"] == 401


def test_which_methods_are_open_can_be_chosen() -> None:
    strict = LeaseMiddleware(application, enforcer=Enforcer(keys=[KEY.public_key]), open_methods=())
    assert talk(strict, http_scope("GET"))[0]["status"] == 401


def test_which_resource_a_request_is_about_can_be_chosen() -> None:
    def report(scope: Scope) -> str | None:
        path = str(scope["path"])
        return f"report-{path.removeprefix('/reports/')}" if path.startswith("/reports/") else None

    chosen = LeaseMiddleware(application, enforcer=Enforcer(keys=[KEY.public_key]), resource=report)
    certificate = fresh(resource="report-42")
    assert talk(chosen, http_scope("PUT", certificate, path="/reports/42"))[1]["body"] == b"ann"
    assert talk(chosen, http_scope("PUT", certificate, path="/reports/43"))[0]["status"] == 403
    assert talk(chosen, http_scope("PUT", path="/health"))[1]["body"] == b"nobody"


def test_a_websocket_has_to_be_proven_before_it_is_accepted() -> None:
    scope = {"type": "websocket", "path": "/door", "headers": []}
    assert talk(protected(), scope) == [
        {"type": "websocket.close", "code": 1008, "reason": "CERTIFICATE_MISSING"}
    ]
    proven = scope | {"headers": [(b"lease-certificate", fresh(resource="/door").encode())]}
    assert talk(protected(), proven)[1]["body"] == b"ann"


@pytest.mark.parametrize(
    "path",
    [
        {"path": "/door\udcff"},  # as a server hands it on that keeps the byte
        {"path": "/door\ufffd", "raw_path": b"/door%FF"},  # as one does that replaces it
    ],
)
@pytest.mark.parametrize("certified", [False, True])
def test_a_path_that_is_not_utf_8_names_no_resource(path: dict[str, Any], certified: bool) -> None:
    certificates = [fresh(resource="/door\ufffd")] if certified else []
    scope = http_scope("PUT", *certificates) | path
    start, body = talk(protected(), scope)
    assert start["status"] == 400
    assert json.loads(body["body"])["error"]["code"] == "REQUEST_MALFORMED"
    closed = {"type": "websocket.close", "code": 1008, "reason": "REQUEST_MALFORMED"}
    assert talk(protected(), scope | {"type": "websocket"}) == [closed]
    assert talk(protected(), scope | {"method": "GET"})[1]["body"] == b"nobody"


def test_a_path_in_utf_8_names_what_it_says(server: int) -> None:
    certificate = fresh(resource="/tür")
    assert ask(server, "PUT", "/t%C3%BCr", lease_certificate=certificate) == (200, "ann")
    assert code_in(ask(server, "PUT", "/t%FCr", lease_certificate=certificate)) == (400, "REQUEST_MALFORMED")


@pytest.mark.parametrize("kind", ["webtransport", "http2", "", "HTTP"])
def test_a_connection_of_a_type_that_cannot_be_checked_never_reaches_the_application(kind: str) -> None:
    with pytest.raises(UnknownScope, match="outside LeaseMiddleware"):
        talk(protected(), http_scope("GET") | {"type": kind})


def test_a_refusal_of_the_application_s_own_is_not_answered_for_it() -> None:
    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        raise CertificateMissing("of another resource")

    with pytest.raises(CertificateMissing):
        talk(LeaseMiddleware(fails, enforcer=Enforcer(keys=[KEY.public_key])), http_scope("GET"))


def test_a_fence_that_may_have_to_wait_does_not_hold_up_the_event_loop(tmp_path: Path) -> None:
    threads: list[int] = []

    class Slow(SqliteFence):
        def admit(self, resource: str, token: int, mode: Mode = Mode.EXCLUSIVE) -> None:
            threads.append(threading.get_ident())
            super().admit(resource, token, mode)

    fence = Slow(tmp_path / "fence.db")
    durable = LeaseMiddleware(application, enforcer=Enforcer(keys=[KEY.public_key], fence=fence))
    assert talk(durable, http_scope("PUT", fresh(resource="/door", token=8)))[1]["body"] == b"ann"
    assert talk(durable, http_scope("PUT", fresh(resource="/door", token=7)))[0]["status"] == 409
    assert threading.get_ident() not in threads
    assert len(threads) == 2
    fence.close()


def test_the_application_s_own_scope_is_left_as_it_was() -> None:
    scope = http_scope("PUT", fresh(resource="/door"))
    talk(protected(), scope)
    assert "leasehold.certificate" not in scope

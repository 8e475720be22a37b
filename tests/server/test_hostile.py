"""Whatever is sent: a clear answer, or a cut connection; and nothing changed."""

import json
import socket
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.server.running import Reply, RunningServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    flags = ("--body-maximum", "100000", "--body-timeout", "0.5", "--header-timeout", "1")
    with RunningServer(tmp_path_factory.mktemp("served") / "store", *flags) as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_is_changed(server: RunningServer) -> Iterator[None]:
    before = server.ask("GET", "/v1/history", limit=1000).body["entries"]
    yield
    assert server.ask("GET", "/v1/history", limit=1000).body["entries"] == before
    assert server.ask("GET", "/readyz").body["ready"]
    assert not [line for line in server.raw_log if "Traceback" in line]


GOOD = {"resource": "door", "holder": "ann"}


@pytest.mark.parametrize(
    "change",
    [
        {"ttl": 2**31},
        {"ttl": 2**63},
        {"ttl": 1e300},
        {"ttl": -1},
        {"ttl": 0},
        {"ttl": "soon"},
        {"ttl": None},
        {"ttl": True},
        {"ttl": [30]},
        {"wait": -1},
        {"wait": "long"},
        {"priority": 0},
        {"priority": 11},
        {"max_renewals": 10**30},
        {"mode": "greedy"},
        {"resource": ""},
        {"resource": "x" * 513},
        {"resource": 7},
        {"resource": "a\u0000b"},
        {"holder": ""},
        {"holder": "x" * 129},
        {"holder": "registrar"},
        {"metadata": "text"},
        {"metadata": {"filler": "x" * 20_000}},
        {"also": [GOOD]},
        {"also": [{"resource": str(number)} for number in range(2000)]},
        {"request_id": ""},
        {"unheard_of": 1},
        {"scope": {"nonsense": 1}},
        {"budget": {"tokens": -5}},
    ],
    ids=lambda change: str(change)[:40],
)
def test_a_claim_that_can_never_be_right_is_refused(server: RunningServer, change: dict[str, Any]) -> None:
    refused = server.ask("POST", "/v1/leases", GOOD | change)

    assert refused.status in (400, 422, 429), refused.body
    assert refused.body["detail"]
    assert set(refused.body) >= {"code", "detail"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"resource": "door", "holder": "ann"',
        b"null",
        b"[]",
        b'"text"',
        b'{"resource": "door", "holder": "ann", "ttl": NaN}',
        b'{"resource": "door", "holder": "ann", "ttl": Infinity}',
        b'{"resource": "door", "holder": "ann", "ttl": 1e999}',
        b'{"resource": "\xff\xfe", "holder": "ann"}',
        b'{"resource": "\\ud800", "holder": "ann"}',
        b'{"resource": "door", "holder": "ann", "metadata": ' + b'{"a":' * 9_000 + b"1" + b"}" * 9_000 + b"}",
        b'{"resource": "door", "holder": "ann", "metadata": {"a": ' + b"[" * 30_000 + b"]" * 30_000 + b"}}",
        b"\x00" * 50,
        b"resource=door&holder=ann",
    ],
    ids=lambda body: repr(body[:40]),
)
def test_a_body_that_is_no_claim_is_refused(server: RunningServer, body: bytes) -> None:
    refused = server.ask("POST", "/v1/leases", body)

    assert refused.status in (400, 422), refused.body
    assert refused.body["detail"]


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
def test_a_body_has_to_say_that_it_is_json(server: RunningServer, media_type: str) -> None:
    body = json.dumps(GOOD).encode()

    for path in ("/v1/leases", "/v1/desk"):
        refused = server.ask("POST", path, body, headers={"Content-Type": media_type})
        assert (refused.status, refused.code) == (415, "WRONG_MEDIA_TYPE")


def test_a_body_that_is_too_large_is_refused_before_it_is_read(server: RunningServer) -> None:
    refused = server.ask("POST", "/v1/leases", json.dumps(GOOD | {"metadata": {"a": "x" * 200_000}}).encode())

    assert (refused.status, refused.code, refused.body["limit"]) == (413, "BODY_TOO_LARGE", 100_000)


def raw(server: RunningServer, *parts: bytes) -> bytes:
    """Send bytes as they are, and return all that comes back before the connection ends."""
    received = b""
    with server.socket() as client:
        try:
            for part in parts:
                client.sendall(part)
            while part := client.recv(1 << 16):
                received += part
        except ConnectionResetError:
            pass
    return received


def head(server: RunningServer, *headers: str, path: str = "/v1/leases") -> bytes:
    lines = (f"POST {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {server.key}", *headers, "", "")
    return "\r\n".join(lines).encode()


def test_a_chunked_body_that_is_too_large_is_refused_as_well(server: RunningServer) -> None:
    chunks = (b"%x\r\n%b\r\n" % (50_000, b"x" * 50_000)) * 3

    answer = raw(server, head(server, "Transfer-Encoding: chunked", "Content-Type: application/json"), chunks)

    assert answer.startswith(b"HTTP/1.1 413")


def test_a_body_that_does_not_come_is_not_waited_for(server: RunningServer) -> None:
    answer = raw(server, head(server, "Content-Length: 50", "Content-Type: application/json"), b'{"resource"')

    assert answer.startswith(b"HTTP/1.1 408")
    assert b"TOO_SLOW" in answer


def test_headers_that_do_not_come_are_not_waited_for(server: RunningServer) -> None:
    assert b"HTTP/1.1 2" not in raw(server, b"GET /v1/leases HTTP/1.1\r\nHost: x\r\nAuthori")


def test_a_bomb_of_headers_is_refused(server: RunningServer) -> None:
    many = [f"X-{number}: 1" for number in range(5000)]
    large = f"X-Large: {'x' * 200_000}"

    for headers in (many, [large]):
        assert b"HTTP/1.1 2" not in raw(server, head(server, *headers, path="/healthz"))


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET / HTTP/9.9",
        b"G\x00T /healthz HTTP/1.1",
        b"GET /v1/leases?resource=%ff%fe HTTP/1.1",
        b"GET /v1/leases/%ff HTTP/1.1",
        b"GET /v1/leases/../../etc/passwd HTTP/1.1",
        b"GET /" + b"x" * 5000 + b" HTTP/1.1",
        b"CONNECT evil.example:443 HTTP/1.1",
        b"BREW /v1/leases HTTP/1.1",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_a_request_that_is_none_is_refused(server: RunningServer, request_line: bytes) -> None:
    shown = f"Authorization: Bearer {server.key}".encode()

    answer = raw(server, request_line + b"\r\nHost: x\r\n" + shown + b"\r\nConnection: close\r\n\r\n")

    # Names that are not UTF-8 name nothing, which is not an error where one searches.
    is_harmless = b"resource=%ff" in request_line and b'"leases":[]' in answer
    assert is_harmless or answer[9:10] in (b"4", b""), answer


def test_a_request_that_is_broken_off_changes_nothing(server: RunningServer) -> None:
    body = json.dumps(GOOD).encode()
    whole = head(server, f"Content-Length: {len(body)}", "Content-Type: application/json") + body
    for size in range(0, len(whole), 7):
        with server.socket() as client:
            client.sendall(whole[:size])
            client.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/v1/leases", {"limit": "0"}),
        ("/v1/leases", {"limit": "1000000"}),
        ("/v1/leases", {"limit": "many"}),
        ("/v1/leases", {"state": "confused"}),
        ("/v1/history", {"after": "-1"}),
        ("/v1/history", {"after": str(2**64)}),
        ("/v1/history", {"type": "unheard_of"}),
        ("/v1/queue", {}),
        ("/v1/access", {"limit": "0"}),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(
    server: RunningServer, path: str, query: dict[str, Any]
) -> None:
    refused = server.ask("GET", path, **query)

    assert refused.status in (400, 422), refused.body
    assert refused.body["detail"]


def test_a_tenant_that_is_no_name_is_refused(server: RunningServer) -> None:
    for tenant in ("", "x" * 500, "a b\x01"):
        refused = server.ask("GET", "/v1/leases", headers={"Leasehold-Tenant": tenant})
        assert refused.status in (400, 422, 429), refused.body


def test_a_request_id_that_is_no_name_is_not_taken_over(server: RunningServer) -> None:
    given = server.ask("GET", "/healthz", headers={"X-Request-Id": "my-id.1"})
    odd = server.ask("GET", "/healthz", headers={"X-Request-Id": "{evil}" * 100})

    assert given.headers["x-request-id"] == "my-id.1"
    assert "evil" not in odd.headers["x-request-id"]


class TestUnicodeTwins:
    """Names that look alike are not the same, and none stands for another."""

    @pytest.fixture(autouse=True)
    def nothing_is_changed(self) -> None:
        """Here something is."""

    def test_twins_are_two_resources(self, server: RunningServer) -> None:
        mark = uuid4().hex
        twins = (f"caf\u00e9-{mark}", f"cafe\u0301-{mark}", f"c\u0430f\u00e9-{mark}")

        def claim(resource: str) -> Reply:
            return server.ask("POST", "/v1/leases", {"resource": resource, "holder": "ann"})

        granted = [claim(twin) for twin in twins]

        assert all(reply.status in (201, 422) for reply in granted)
        for twin, reply in zip(twins, granted, strict=True):
            if reply.status == 201:
                found = server.ask("GET", "/v1/leases", resource=twin).body["leases"]
                assert [lease["resource"] for lease in found] == [twin]

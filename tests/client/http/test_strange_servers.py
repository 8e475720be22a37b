"""What a client makes of servers that are not what they should be, and of keys and addresses that are not."""

import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import leasehold
from leasehold.client.http import exchange, line
from leasehold.client.http.desk import RemoteDesk
from leasehold.errors import (
    NotAuthenticated,
    NotPermitted,
    RateLimited,
    ReplyLost,
    ServerUnreachable,
    StoreUnusable,
)
from tests.client.http.scripted import Scripted, http

KEY = "lh_one_secretsecretsecret"


def _problem(code: str, **facts: object) -> bytes:
    return msgspec.json.encode({"code": code, "detail": "what happened", **facts})


def _acquire(url: str, timeout: float = 0.4) -> leasehold.LeaseholdError:
    """Ask for a lease, and return what is raised."""
    desk = RemoteDesk(url, api_key=KEY, timeout=timeout)
    with leasehold.Client(desk) as leases, pytest.raises(leasehold.LeaseholdError) as caught:
        leases.acquire("door")
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value.facts)
    assert KEY not in repr(desk)
    return caught.value


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (http("401 Unauthorized", _problem("NOT_AUTHENTICATED")), NotAuthenticated),
        (http("401 Unauthorized", b"<html>", content_type="text/html"), NotAuthenticated),
        (http("403 Forbidden", _problem("NOT_PERMITTED")), NotPermitted),
        (http("403 Forbidden"), NotPermitted),
        (http("404 Not Found", _problem("LEASE_NOT_FOUND")), leasehold.LeaseNotFound),
        (http("404 Not Found", b"nothing here", content_type="text/plain"), StoreUnusable),
        (http("409 Conflict", _problem("HELD", holder="bob")), leasehold.Held),
        (http("410 Gone", _problem("HISTORY_PRUNED", position=7)), leasehold.HistoryPruned),
        (http("429 Too Many Requests", _problem("RATE_LIMITED"), retry_after="60"), RateLimited),
        (http("429 Too Many Requests", retry_after="60"), RateLimited),
        (http("418 Teapot", _problem("TEAPOT")), leasehold.Refused),
        (http("500 Oops", _problem("DEFECT")), ReplyLost),
        (http("500 Oops", b"Traceback", content_type="text/plain"), ReplyLost),
        (http("502 Bad Gateway", b"<html>", content_type="text/html"), ReplyLost),
        (http("503 Busy", _problem("SERVER_STOPPING"), retry_after="60"), leasehold.StoreError),
        (http("302 Found", location="http://127.0.0.1:9/"), StoreUnusable),
        (http("204 No Content"), StoreUnusable),
        (http("200 OK", b"<html>welcome</html>", content_type="text/html"), ReplyLost),
        (http("200 OK", b'{"id":"1","outcomes":[]}'), ReplyLost),
        (http("200 OK", b'{"id":"other","outcomes":[{}]}'), ReplyLost),
        (http("200 OK", b'{"id":"1","outcomes":[{"answer":7}]}'), ReplyLost),
        (http("200 OK", b"[" * 100_000), ReplyLost),
        (http("200 OK", b"\x1f\x8b\x08", content_encoding="gzip"), ReplyLost),
        (b"SSH-2.0-OpenSSH_9\r\n", ReplyLost),
        (b"\x00\xff" * 5_000, ReplyLost),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{", ReplyLost),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000, ReplyLost),
        (b"", ReplyLost),
    ],
)
def test_each_kind_of_answer_is_an_error_of_its_own(reply: bytes, kind: type[Exception]) -> None:
    with Scripted(lambda count, asked: [reply]) as server:
        error = _acquire(server.url)
    assert type(error) is kind, repr(error)
    unknown = isinstance(error, leasehold.StoreError) and error.outcome_unknown
    assert unknown == issubclass(kind, leasehold.StoreFailed)


@pytest.mark.parametrize(
    "reply",
    [
        http("501 Unsupported method", b"<html>", content_type="text/html"),
        http("404 Not Found", _problem("PATH_NOT_FOUND")),
    ],
)
def test_what_is_not_a_server_of_ours_has_its_address_checked(reply: bytes) -> None:
    with Scripted(lambda count, asked: [reply]) as server:
        error = _acquire(f"{server.url}/somewhere")
    assert "check the address" in str(error)


def test_what_a_server_says_of_a_problem_are_facts_and_nothing_else() -> None:
    body = _problem("HELD", holder="bob", exit_code=0, with_traceback=1, message="x", self=2, _x=3)
    with Scripted(lambda count, asked: [http("409 Conflict", body)]) as server:
        error = _acquire(server.url)
    assert error.facts == {"holder": "bob"}
    assert error.exit_code == 75


@pytest.mark.parametrize("said", [0, -5, "soon", [], True])
def test_no_server_has_a_client_ask_again_without_a_pause(said: Any) -> None:
    body = _problem("SERVER_STOPPING", retry_after=said)
    with Scripted(lambda count, asked: [http("503 Busy", body)]) as server:
        error = _acquire(server.url, timeout=1.5)
        assert len(server.asked) < 20
    assert type(error) is leasehold.StoreError


def test_a_reply_that_is_too_large_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "REPLY_BYTES_MAXIMUM", 100_000)

    def flood(count: int, asked: bytes) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000000000000\r\n\r\n"
        while True:
            yield b" " * 65_536

    with Scripted(flood) as server:
        error = _acquire(server.url, timeout=20)
    assert isinstance(error, ReplyLost)
    assert "100000 bytes" in str(error)


@pytest.mark.parametrize("pace", [None, 0.02])
def test_a_server_that_never_answers_to_the_end_is_given_up_at_the_timeout(pace: float | None) -> None:
    stopped = threading.Event()

    def drip(count: int, asked: bytes) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n" if pace else b""
        while not stopped.wait(pace):
            yield b"x"

    with Scripted(drip) as server:
        began = time.monotonic()
        error = _acquire(server.url, timeout=0.5)
        stopped.set()
    assert isinstance(error, ReplyLost)
    assert time.monotonic() - began < 10


def test_a_key_is_shown_to_the_server_that_was_named_and_to_no_other() -> None:
    with Scripted(lambda count, asked: [http("200 OK", b"{}")]) as other:
        answer = http("307 Temporary Redirect", location=f"{other.url}/v1/desk")
        with Scripted(lambda count, asked: [answer]) as server:
            _acquire(server.url)
            assert f"Bearer {KEY}".encode() in server.asked[0]
        assert other.asked == []


def test_a_key_is_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with Scripted(lambda count, asked: [b"\xff"]) as server:
        _acquire(server.url)
    assert KEY not in caplog.text


@pytest.mark.parametrize("key", ["", "a\nb", "a\r\nX-Evil: 1", "a b", "schlüssel", "x" * 600, b"lh_bytes", 7])
def test_a_key_that_cannot_be_one_is_refused_and_not_repeated(key: Any) -> None:
    with pytest.raises(leasehold.InvalidInput) as caught:
        leasehold.connect("http://127.0.0.1:9", api_key=key)
    assert caught.value.field == "api_key"
    if key and isinstance(key, str):
        assert key not in str(caught.value)
    assert "bytes" not in str(caught.value)


def test_a_key_of_the_environment_is_for_servers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEASEHOLD_API_KEY", KEY)
    leasehold.connect("memory:").close()
    with pytest.raises(leasehold.InvalidInput, match="api_key is for a server"):
        leasehold.connect("memory:", api_key=KEY)
    with Scripted(lambda count, asked: [http("401 Unauthorized")]) as server:
        with leasehold.connect(server.url, timeout=1) as leases, pytest.raises(NotAuthenticated):
            leases.acquire("door")
        assert f"Bearer {KEY}".encode() in server.asked[0]
    monkeypatch.setenv("LEASEHOLD_API_KEY", "two words")
    with pytest.raises(leasehold.InvalidInput, match="LEASEHOLD_API_KEY") as caught:
        leasehold.connect("http://127.0.0.1:9")
    assert "two words" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://ann:secret@host",
        "http://secret@host:80",
        "http://",
        "http:///path",
        "http://host:0x50",
        "http://host:99999",
        "http://host/a/../b",
        "http://host?secret=1",
        "http://host#secret",
        "http://host\\@evil",
        "http://host/ secret",
        "http://host\n.evil",
        "http://höst",
        "https://[::1",
    ],
)
def test_an_address_that_cannot_be_a_servers_is_refused_and_its_secrets_are_not_repeated(url: str) -> None:
    with pytest.raises(leasehold.InvalidInput) as caught:
        leasehold.connect(url)
    assert caught.value.field == "url"
    assert "secret" not in str(caught.value)


def test_quotas_are_up_to_the_server() -> None:
    with pytest.raises(leasehold.InvalidInput, match="leasehold serve --leases-per-holder"):
        leasehold.connect("http://127.0.0.1:9", leases_per_holder=3)


def test_a_server_that_cannot_be_reached_has_changed_nothing() -> None:
    error = _acquire("http://127.0.0.1:9")
    assert isinstance(error, ServerUnreachable)
    assert not error.outcome_unknown


@pytest.mark.parametrize("host", ["127.0.0.1:9", "no-such-host.invalid:7017"])
def test_a_server_that_was_never_reached_is_given_up_long_before_the_timeout(host: str) -> None:
    began = time.monotonic()

    error = _acquire(f"http://{host}", timeout=3600)

    assert time.monotonic() - began < 600
    assert isinstance(error, ServerUnreachable)
    assert f"http://{host} cannot be reached" in str(error)
    assert "Check that the server runs, and the address" in str(error)


def test_a_server_that_was_reached_before_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "_FIRST_CONTACT_SECONDS", 0.0)
    with Scripted(lambda count, asked: [http("403 Forbidden")]) as server:
        desk = RemoteDesk(server.url, timeout=600)
        client = leasehold.Client(desk)
        with pytest.raises(NotPermitted):
            client.acquire("door")
    outcomes: list[Exception | None] = []

    def ask() -> None:
        with pytest.raises(leasehold.LeaseholdError) as caught:
            client.acquire("door")
        outcomes.append(caught.value)

    before = desk.requests
    asking = threading.Thread(target=ask)
    asking.start()
    while asking.is_alive() and desk.requests < before + 2:
        pass
    with Scripted(lambda count, asked: [http("403 Forbidden")], server.port):
        asking.join()
    client.close()
    assert [type(outcome) for outcome in outcomes] == [NotPermitted]


def test_what_was_lost_is_asked_again_with_the_same_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "_PAUSE_SECONDS", 0.001)

    def refuse_third(count: int, asked: bytes) -> list[bytes]:
        return [http("401 Unauthorized", _problem("NOT_AUTHENTICATED"))] if count >= 2 else [b""]

    with Scripted(refuse_third) as server:
        error = _acquire(server.url, timeout=10)
        bodies = [asked.partition(b"\r\n\r\n")[2] for asked in server.asked[:3]]
        commands = {msgspec.json.encode(msgspec.json.decode(body)["items"]) for body in bodies}
    assert len(commands) == 1
    # It may have been run the first time, whatever was said the third time.
    assert isinstance(error, ReplyLost)
    assert "and then: what happened" in str(error)


def test_the_server_says_when_to_come_back(registrar: Any, url: str) -> None:
    times: list[float] = []

    def busy_once(count: int, asked: bytes) -> list[bytes]:
        times.append(time.monotonic())
        if count == 0:
            return [http("503 Busy", _problem("SERVER_BUSY"), retry_after="1")]
        return [http("403 Forbidden")]

    with Scripted(busy_once) as server:
        _acquire(server.url, timeout=10)
    assert times[1] - times[0] >= 1

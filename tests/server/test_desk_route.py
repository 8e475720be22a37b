"""The desk over HTTP, as a client of any language meets it."""

import asyncio
import http.client
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from leasehold.engine.questions import FindHead
from leasehold.engine.registrar import Registrar
from leasehold.engine.wire import ITEMS_MAXIMUM
from leasehold.kernel.lease.commands import Acquire
from leasehold.kernel.ledger.commands import Caller
from leasehold.registry import REPLIES, all_families
from leasehold.server import desk_route
from leasehold.server.doorbells import Doorbells
from leasehold.server.follower import Follower
from leasehold.stores.memory import MemoryStore
from tests.client.server import desk_server
from tests.client.worlds import SIGNAL_SECONDS

ANN, BOB = Caller(access="ann"), Caller(access="bob")


@pytest.fixture
def registrar() -> Iterator[Registrar]:
    registrar = Registrar(MemoryStore(families=all_families()), also=REPLIES)
    yield registrar
    registrar.close()


@pytest.fixture
def path(registrar: Registrar) -> Iterator[str]:
    """Where a desk is mounted for whoever says in a header who it is."""
    url = desk_server().mount(registrar, lambda scope: Caller(access=_who(scope)))
    yield "/" + url.rpartition("/")[2]
    desk_server().unmount(url)


def _who(scope: Any) -> str:
    return dict(scope["headers"]).get(b"who", b"ann").decode()


def _ask(
    path: str, body: bytes | str | None, method: str = "POST", media: str = "application/json"
) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", desk_server().port, timeout=SIGNAL_SECONDS)
    try:
        connection.request(method, path, body, {"Content-Type": media})
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


def _items(path: str, *items: dict[str, Any]) -> list[dict[str, Any]]:
    status, reply = _ask(f"{path}/v1/desk", json.dumps({"id": "7", "items": items}))
    assert (status, reply["id"]) == (200, "7")
    outcomes: list[dict[str, Any]] = reply["outcomes"]
    return outcomes


def _claim(name: str, **more: Any) -> dict[str, Any]:
    command = {"command": "acquire", "resource": "door", "holder": name, "ttl_ns": 10**10}
    return {"command": command | {"lease_id": name, "request_id": name} | more}


def _release(name: str) -> dict[str, Any]:
    return {
        "command": {"command": "release", "lease_ids": [name], "holder": name, "request_id": f"{name}-end"}
    }


def test_items_are_answered_one_by_one_in_order(path: str) -> None:
    before, granted, refused, garbled, after = _items(
        path,
        {"question": {"question": "find_head"}},
        _claim("ann"),
        _claim("bob"),
        {"command": {"command": "acquire", "resource": 5}},
        {"question": {"question": "find_head"}},
    )
    assert granted["answer"]["lease"]["holder"] == "ann"
    assert refused["refusal"]["code"] == "HELD"
    assert garbled["failure"]["code"] == "INVALID_INPUT"
    assert after["answer"]["position"] == before["answer"]["position"] + 1


@pytest.mark.parametrize("count", [0, ITEMS_MAXIMUM + 1])
def test_a_request_has_from_one_to_a_thousand_items(path: str, count: int) -> None:
    status, reply = _ask(f"{path}/v1/desk", json.dumps({"id": "7", "items": [{}] * count}))
    assert (status, reply["code"]) == (422, "INVALID_INPUT")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"id":"7"}',
        b'{"id":7,"items":[{}]}',
        b'{"id":"7","items":{}}',
        b'{"id":"\xff","items":[{}]}',
        b"[" * 100_000,
        b'{"id":"7","items":[' + b"[" * 100_000,
    ],
)
def test_a_request_that_cannot_be_read_is_refused_whole(path: str, body: bytes) -> None:
    status, reply = _ask(f"{path}/v1/desk", body)
    assert (status, reply["code"]) == (422, "INVALID_INPUT")


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"command": {"command": "no_such"}},
        {"question": {"question": "find_head"}, "find_job": {"job_id": "x"}},
        {"start_job": {"job_id": "x", "job": {"job": "no_such"}}},
        {"unknown": 1},
        _claim("ann", ttl_ns="soon"),
        _claim("ann", ttl_ns=1.5),
        _claim("ann", lease_id=None),
    ],
)
def test_an_item_that_cannot_be_read_fails_by_itself(path: str, item: dict[str, Any]) -> None:
    failed, head = _items(path, item, {"question": {"question": "find_head"}})
    assert failed["failure"]["code"] == "INVALID_INPUT"
    assert "answer" in head


@pytest.mark.parametrize("ttl_ns", [2**31 * 10**9, -1, 0, 2**70])
def test_a_time_that_can_never_be_right_is_refused_and_nothing_changed(path: str, ttl_ns: int) -> None:
    before, refused, after = _items(
        path,
        {"question": {"question": "find_head"}},
        _claim("ann", ttl_ns=ttl_ns),
        {"question": {"question": "find_head"}},
    )
    assert refused["refusal"]["code"] in ("INVALID_INPUT", "LIMIT_EXCEEDED")
    assert before == after


def test_other_paths_methods_and_media_are_refused(path: str) -> None:
    assert _ask(f"{path}/v1/desk/nothing", b"{}")[0] == 404
    assert _ask(f"{path}/v1/desk", None, "GET")[0] == 405
    assert _ask(f"{path}/v1/desk", b"{}", media="text/plain")[0] == 415


def test_a_body_that_is_too_large_is_not_read_to_its_end(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_route, "BODY_BYTES_MAXIMUM", 1_000)
    status, reply = _ask(f"{path}/v1/desk", b" " * 2_000)
    assert (status, reply["code"]) == (413, "BODY_TOO_LARGE")


def test_a_body_that_does_not_come_is_not_waited_for(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_route, "_BODY_SECONDS", 0.05)
    connection = http.client.HTTPConnection("127.0.0.1", desk_server().port, timeout=SIGNAL_SECONDS)
    connection.putrequest("POST", f"{path}/v1/desk")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", "100")
    connection.endheaders(b"{")
    reply = connection.getresponse()
    assert (reply.status, json.loads(reply.read())["code"]) == (408, "TOO_SLOW")
    connection.close()


def test_waiting_ends_when_the_ledger_has_grown(path: str, registrar: Registrar) -> None:
    head = registrar.ask(FindHead()).position
    assert _ask(f"{path}/v1/desk/wait", json.dumps({"position": head, "timeout": 0.05})) == (
        200,
        {"position": head},
    )
    later = threading.Timer(0.1, lambda: _items(path, _claim("ann")))
    later.start()
    status, reply = _ask(f"{path}/v1/desk/wait", json.dumps({"position": head, "timeout": SIGNAL_SECONDS}))
    later.join()
    assert (status, reply["position"] > head) == (200, True)


class Bells:
    """The stream of a client's bells."""

    def __init__(self, path: str, name: str, who: str = "ann") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", desk_server().port, timeout=SIGNAL_SECONDS)
        self._connection.request("GET", f"{path}/v1/desk/bells?name={name}", headers={"Who": who})
        self._reply = self._connection.getresponse()
        assert self._reply.status == 200

    def line(self) -> bytes:
        return self._reply.readline()

    def close(self) -> None:
        self._connection.close()


def test_a_waiter_is_rung_for_at_its_own_client_only(path: str) -> None:
    ours, theirs = Bells(path, "0123456789ab"), Bells(path, "0123456789ab", who="bob")
    assert (ours.line(), theirs.line()) == (b"\n", b"\n")
    _items(path, _claim("ann"), _claim("bob", wait=True, wake="0123456789ab0007.42"))
    _items(path, _release("ann"))
    assert ours.line() == b"0007.42\n"
    _items(path, _release("bob"))
    theirs.close()
    ours.close()


def test_what_was_rung_before_the_stream_was_opened_is_not_lost(path: str) -> None:
    _items(path, _claim("ann"), _claim("bob", wait=True, wake="0123456789ab0001.1"))
    _items(path, _release("ann"))
    bells = Bells(path, "0123456789ab")
    assert (bells.line(), bells.line()) == (b"\n", b"0001.1\n")
    bells.close()


def test_a_second_stream_takes_over_and_the_first_ends(path: str) -> None:
    first = Bells(path, "0123456789ab")
    assert first.line() == b"\n"
    second = Bells(path, "0123456789ab")
    assert second.line() == b"\n"
    assert first.line() == b""
    first.close()
    second.close()


def test_an_address_of_a_remote_caller_is_never_passed_on_as_it_is() -> None:
    # Outside of any event loop: only streams need one.
    store = MemoryStore(families=all_families())
    doorbells = Doorbells(store.bells)
    own = store.bells.take()
    assert own is not None
    for wake in ("", "x", f"{own.name}.1?", "0123456789ab0001", "0123456789ab0001.1099511627776", "../x.1"):
        assert doorbells.address_of(ANN, wake) == ""
    anns = doorbells.address_of(ANN, f"{own.name}.1")
    bobs = doorbells.address_of(BOB, f"{own.name}.1")
    assert own.name not in (anns.partition(".")[0], bobs.partition(".")[0])
    assert anns.partition(".")[0] != bobs.partition(".")[0]
    assert doorbells.address_of(ANN, f"{own.name}.1") == anns, "a claim that is repeated is the same"
    doorbells.stop()
    assert doorbells.address_of(ANN, f"{own.name}.1") == ""
    store.close()


def test_any_number_of_tasks_follow_the_ledger_with_one_thread(registrar: Registrar) -> None:
    asyncio.run(_follow(registrar))


async def _follow(registrar: Registrar) -> None:
    follower = Follower(registrar)
    head = registrar.ask(FindHead()).position
    assert await follower.beyond(head - 1, 5)
    assert not await follower.beyond(head, 0.01)
    waiting = [asyncio.ensure_future(follower.beyond(head, SIGNAL_SECONDS)) for _ in range(200)]
    late = asyncio.ensure_future(follower.beyond(head + 1_000, SIGNAL_SECONDS))
    await asyncio.sleep(0)
    assert sum(thread.name == "leasehold-follower" for thread in threading.enumerate()) == 1
    registrar.call(Acquire(lease_id="a", request_id="a", resource="r", holder="h", ttl_ns=10**10))
    assert await asyncio.gather(*waiting) == [True] * 200
    began = time.monotonic()
    follower.stop()
    assert not await late
    assert time.monotonic() - began < 5

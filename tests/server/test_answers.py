"""How much of large answers a caller can have in the server's memory."""

import socket
from pathlib import Path

import pytest

import leasehold
from leasehold.errors import RateLimited
from leasehold.server.answers import Answers
from tests.server.running import RunningServer


def test_whoever_holds_too_much_gets_no_more_and_the_others_do() -> None:
    answers = Answers(100)
    with answers.of("ann") as hold:
        hold(100)
        answers.refuse_more("ann")
        hold(1)
        with pytest.raises(RateLimited) as refused:
            answers.refuse_more("ann")
        answers.refuse_more("bob")
    answers.refuse_more("ann")
    assert refused.value.retry_after


def test_where_all_hold_too_much_only_who_holds_nothing_gets_more() -> None:
    answers = Answers(100)
    with answers.of("ann") as of_ann, answers.of("bob") as of_bob:
        of_bob(1)
        answers.refuse_more("bob")
        of_ann(400)
        with pytest.raises(RateLimited):
            answers.refuse_more("bob")
        answers.refuse_more("cleo")


def test_a_key_that_does_not_take_its_answers_is_refused_further_pages(tmp_path: Path) -> None:
    with leasehold.connect(tmp_path / "store", holder="ann", durability="fast") as local:
        for number in range(800):
            local.acquire(f"door-{number}", ttl=3600, metadata={"note": "x" * 15_000}).detach()
    flags = ("--answers-maximum", str(1 << 20), "--send-timeout", "3000")
    with RunningServer(tmp_path / "store", *flags) as server:
        other = server.ask("POST", "/v1/access", {"role": "viewer"}).body["text"]
        slow = server.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        headers = f"Host: x\r\nAuthorization: Bearer {server.key}\r\n\r\n"
        slow.sendall(f"GET /v1/leases?limit=1000 HTTP/1.1\r\n{headers}".encode())
        slow.recv(1)  # The answer is there: 12 MB, which no buffer takes.

        refused = server.ask("GET", "/v1/leases", limit=1)
        granted = server.ask("POST", "/v1/leases", {"resource": "gate", "holder": "ann"})

        assert (refused.status, refused.code) == (429, "RATE_LIMITED")
        assert "not taken yet" in refused.body["detail"]
        assert refused.headers["retry-after"] == "1"
        with (
            leasehold.connect(server.url, api_key=server.key) as remote,
            pytest.raises(RateLimited, match="not taken yet"),
        ):
            remote.list()
        assert granted.status == 201, "what is run is answered"
        assert server.ask("GET", "/v1/leases", key=other, limit=1).status == 200
        slow.close()
        while server.ask("GET", "/v1/leases", limit=1).status != 200:
            pass

"""Who asks, and how often it may."""

import pytest

from leasehold.errors import NotAuthenticated, RateLimited
from leasehold.kernel.ledger.commands import LOCAL, Caller
from leasehold.server.configuration import is_loopback
from leasehold.server.identity import Identity

ANN = Caller(access="ann")


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def identity(*, anonymous: bool = False, clock: _Clock | None = None) -> Identity:
    def authenticate(text: str) -> Caller | None:
        return ANN if text == "lh_ann_secret" else None

    return Identity(
        authenticate, per_second=2, burst=3, is_anonymous_allowed=anonymous, clock=clock or _Clock()
    )


def scope(**headers: str) -> dict[str, object]:
    return {"headers": [(name.encode(), value.encode()) for name, value in headers.items()]}


@pytest.mark.parametrize("header", ["Bearer lh_ann_secret", "bearer lh_ann_secret", "BEARER  lh_ann_secret "])
def test_who_shows_a_good_key_is_known(header: str) -> None:
    assert identity().caller_of(scope(authorization=header)) == ANN


@pytest.mark.parametrize(
    "header", ["Bearer lh_ann_wrong", "Bearer", "Bearer ", "Basic YW5uOnNlY3JldA==", "lh_ann_secret", ""]
)
def test_who_shows_anything_else_is_not(header: str) -> None:
    for anonymous in (False, True):
        with pytest.raises(NotAuthenticated):
            identity(anonymous=anonymous).caller_of(scope(authorization=header, host="127.0.0.1"))


def test_who_shows_nothing_is_let_in_only_where_that_was_said_and_only_from_here() -> None:
    with pytest.raises(NotAuthenticated):
        identity().caller_of(scope(host="127.0.0.1:7017"))
    open_to_all = identity(anonymous=True)
    for host in ("127.0.0.1:7017", "localhost", "[::1]:7017", "127.1.2.3"):
        assert open_to_all.caller_of(scope(host=host)) == LOCAL
    for headers in (
        {"host": "evil.example"},
        {},
        {"host": "127.0.0.1", "origin": "https://evil.example"},
        {"host": "127.0.0.1", "origin": "null"},
        {"host": "localhost.evil.example"},
    ):
        with pytest.raises(NotAuthenticated):
            open_to_all.caller_of(scope(**headers))
    assert open_to_all.caller_of(scope(host="127.0.0.1", origin="http://localhost:8000")) == LOCAL


def test_a_key_may_ask_so_often_and_then_at_a_steady_rate() -> None:
    clock = _Clock()
    known = identity(clock=clock)

    def ask() -> Caller:
        return known.caller_of(scope(authorization="Bearer lh_ann_secret"))

    for _ in range(3):
        ask()

    with pytest.raises(RateLimited) as refused:
        ask()

    assert refused.value.retry_after == pytest.approx(0.5)
    with pytest.raises(RateLimited):  # To be refused costs nothing.
        ask()
    clock.now += 0.5
    ask()
    with pytest.raises(RateLimited):
        ask()


def test_who_sends_a_request_is_found_out_once() -> None:
    known, request = identity(), scope(authorization="Bearer lh_ann_secret")

    assert all(known.caller_of(request) == ANN for _ in range(10)), "it took one from the bucket, and not ten"


def test_who_shows_a_key_is_asked_of_the_store_only_now_and_then() -> None:
    clock, asked = _Clock(), list[str]()

    def authenticate(text: str) -> Caller | None:
        asked.append(text)
        return ANN

    known = Identity(authenticate, per_second=1000, burst=1000, clock=clock)
    for _ in range(5):
        known.caller_of(scope(authorization="Bearer lh_ann_secret"))
    clock.now += 11
    known.caller_of(scope(authorization="Bearer lh_ann_secret"))

    assert len(asked) == 2


def test_only_addresses_of_this_machine_are_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "::1", "localhost", "127.8.8.8")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.com", "", "127.0.0.1.evil.com")))

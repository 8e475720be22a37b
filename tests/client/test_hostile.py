"""Every public method, with each argument of a wrong type or size: an error of ours, if it is an error."""

import inspect
import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import leasehold
from leasehold.certificates.keys import TrustedKeys
from leasehold.enforcing import Enforcer, Fence, SqliteFence, check_written, fenced_update, fenced_upsert
from tests.lanes import some_of

pytestmark = pytest.mark.deep

VALUES: list[Any] = [
    None, 0, -1, 1.5, math.nan, math.inf, -math.inf, 10**400, 2**63, True, "", "\0", "\x1b", "\udcff",
    "x" * 5_000, b"x", b"\xff", [], ["\udcff"], [1], {}, {"a": 1}, {1: 2}, {"a": math.nan}, (), object(),
    timedelta(-1),
    timedelta.max, datetime(2026, 1, 1), datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC),
    Decimal("NaN"), 1j, range(3), Path("x"), leasehold.Mode.SHARED, "shared", "active",
]  # fmt: skip

IMPATIENT = {"lose", "close", "watch", "detach"}
"""What is not called here: it waits for ever, or ends what the rest is tried on."""

Given = dict[str, Any]


def arguments_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    found = inspect.signature(function).parameters.values()
    return [one for one in found if one.name != "self" and one.kind is not one.VAR_KEYWORD]


def with_one_wrong(function: Callable[..., Any], usual: Callable[[], Given]) -> Iterator[Given]:
    """Yield arguments, of which one at a time is wrong; the others are as usual, or left out."""
    arguments = arguments_of(function)
    needed = {one.name for one in arguments if one.default is one.empty}
    for number, wrong in enumerate(arguments):
        for value in some_of(VALUES, 12, offset=number):
            yield {name: one for name, one in usual().items() if name in needed} | {wrong.name: value}


def try_one(name: str, function: Callable[..., Any], given: Given) -> None:
    try:
        function(**given)
    except leasehold.LeaseholdError:
        return
    except Exception as error:
        raise AssertionError(f"{name}({given!r:.300}) raised {error!r:.300}") from error


def try_all(name: str, function: Callable[..., Any], usual: Callable[[], Given]) -> None:
    for given in with_one_wrong(function, usual):
        try_one(name, function, given)


def methods_of(kind: type) -> list[str]:
    return [
        name
        for name in dir(kind)
        if not name.startswith("_")
        and name not in IMPATIENT
        and callable(inspect.getattr_static(kind, name))
        and arguments_of(getattr(kind, name))
    ]


class Some:
    """What a caller would give who does it right: another resource each time."""

    def __init__(self, leases: leasehold.Client, folder: Path) -> None:
        self._leases = leases
        self._folder = folder
        self._number = 0

    def lease(self) -> leasehold.HeldLease:
        self._number += 1
        return self._leases.acquire(
            f"door-{self._number}",
            scope=leasehold.Scope(unlimited=True),
            budget=leasehold.Budget(tokens=10),
        )

    def usual(self) -> Given:
        lease = self.lease()
        return {
            "lease": lease, "parent": lease, "leases": [lease], "lease_id": lease.lease_id, "to": "bob",
            "resource": f"gate-{self._number}", "resources": [f"wall-{self._number}"], "reason": "test",
            "key_id": "0" * 16, "moment": 0.0, "holder": "ann", "file": self._folder / "copy",
        }  # fmt: skip


@pytest.fixture
def some(tmp_path: Path) -> Iterator[Some]:
    with leasehold.connect("memory:", holder="ann", timeout=5) as leases:
        yield Some(leases, tmp_path)


@pytest.mark.parametrize("method", methods_of(leasehold.Client))
def test_a_client_refuses_what_can_never_be_right(some: Some, method: str) -> None:
    try_all(method, getattr(some._leases, method), some.usual)


@pytest.mark.parametrize("method", methods_of(leasehold.HeldLease))
def test_a_held_lease_refuses_what_can_never_be_right(some: Some, method: str) -> None:
    for given in with_one_wrong(getattr(leasehold.HeldLease, method), some.usual):
        try_one(method, getattr(some.lease(), method), given)


def test_connecting_refuses_what_can_never_be_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def connect(**given: Any) -> None:
        leasehold.connect(**({"url": "memory:"} | given)).close()

    for given in with_one_wrong(leasehold.connect, dict):
        try_one("connect", connect, given)


def test_whoever_checks_certificates_is_told_what_can_never_be_right(some: Some, tmp_path: Path) -> None:
    lease = some.lease()
    text, keys = lease.certificate(), some._leases.certificate_keys()
    proof = {
        "text": text,
        "keys": keys,
        "resource": lease.resource,
        "document": keys.to_jwks(),
        "admitted": [],
    }
    fence = {"resource": lease.resource, "token": lease.token}
    names = {"table": "doors", "columns": ["colour"], "key": "name", "row_count": 1}
    functions: dict[str, Callable[..., Any]] = {
        "verify_certificate": leasehold.verify_certificate,
        "TrustedKeys": TrustedKeys,
        "TrustedKeys.of": TrustedKeys.of,
        "TrustedKeys.from_jwks": TrustedKeys.from_jwks,
        "Enforcer": Enforcer,
        "admit": Enforcer(keys=keys).admit,
        "trust": Enforcer(keys=keys).trust,
        "Fence.admit": Fence().admit,
        "Fence.seen": Fence().seen,
        "fenced_update": fenced_update,
        "fenced_upsert": fenced_upsert,
        "check_written": check_written,
    }
    durable = SqliteFence(tmp_path / "fence.db")
    functions |= {"SqliteFence.admit": durable.admit, "SqliteFence.seen": durable.seen}
    for name, function in functions.items():
        try_all(name, function, lambda: proof | fence | names)
    durable.close()


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1, "1", None])
def test_a_leeway_that_is_no_time_is_refused_by_name(some: Some, wrong: Any) -> None:
    lease = some.lease()
    with pytest.raises(leasehold.InvalidInput) as refused:
        leasehold.verify_certificate(
            lease.certificate(), keys=some._leases.certificate_keys(), resource=lease.resource, leeway=wrong
        )
    assert refused.value.field == "leeway"


@pytest.mark.parametrize("wrong", ["4711:00", 7, object(), ("7", b"")])
def test_a_head_that_is_none_is_refused_by_name(some: Some, wrong: Any) -> None:
    with pytest.raises(leasehold.InvalidInput, match="head must be what head") as refused:
        some._leases.verify(head=wrong)
    assert refused.value.field == "head"


def test_a_token_that_cannot_be_compared_is_not_let_in() -> None:
    fence = Fence()
    fence.admit("door", 7)
    for token in (math.nan, "9", None, -1):
        with pytest.raises(leasehold.InvalidInput):
            fence.admit("door", token)  # type: ignore[arg-type]
    assert fence.seen("door").any == 7

"""Bad input: a clear, typed error that names the argument, and nothing is changed."""

import asyncio
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import leasehold
from tests.client.worlds import World

TOO_LONG = "x" * 129
NO_TEXT: list[Any] = [None, 5, b"bytes", ["list"]]
NO_NAME: list[Any] = ["", "line\nbreak", "\ud800", *NO_TEXT[1:]]
NO_SECONDS: list[Any] = [
    0,
    -1,
    math.nan,
    math.inf,
    -math.inf,
    "5",
    None,
    [],
    1e300,
    10**400,
    31 * 86400,
    0.0001,
]


async def refused(leases: Any, call: Callable[[], Any], field: str) -> None:
    """The call raises an error that names the argument, and the ledger stays as it was."""
    before = await leases.history()
    with pytest.raises((leasehold.InvalidInput, leasehold.LimitExceeded)) as error:
        await call()
    assert error.value.field == field
    assert field in str(error.value)
    assert len(str(error.value)) < 300
    assert await leases.history() == before


ACQUIRE: dict[str, list[Any]] = {
    "resource": [*NO_NAME, None, "x" * 513],
    "ttl": NO_SECONDS,
    "mode": ["", "exclusively", 5, None, b"shared"],
    "holder": [*NO_NAME, TOO_LONG],
    "max_renewals": ["5", 1.5, None, True, 2**31],
    "metadata": [
        5,
        "text",
        ["list"],
        {1: "key is no text"},
        {"bytes": b"x"},
        {"set": {1}},
        {"nan": math.nan},
        {"tuple": (1, 2)},
        {"big": "x" * 17_000},
        {"object": object()},
    ],
    "config_version": [5, None, TOO_LONG, "line\nbreak"],
    "zone_version": [5, None, TOO_LONG, "line\nbreak"],
    "on_lost": [5, "print"],
    "request_id": [*NO_NAME, TOO_LONG],
}


@pytest.mark.parametrize(("field", "value"), [(name, one) for name, bad in ACQUIRE.items() for one in bad])
async def test_a_claim_that_can_never_be_right_is_refused(leases: Any, field: str, value: Any) -> None:
    claim = {"resource": "door"} | {field: value}

    await refused(leases, lambda: leases.acquire(**claim), field)


@pytest.mark.parametrize("ttl", [1, 0.001, Decimal("2.5"), Fraction(1, 2), 30 * 86400])
async def test_seconds_can_be_any_kind_of_number(leases: Any, ttl: Any) -> None:
    lease = await leases.acquire("door", ttl=ttl)

    assert lease.lease.ttl_ns == ttl * 10**9


async def test_names_can_be_in_any_script(leases: Any) -> None:
    lease = await leases.acquire("Tür/門/🚪", holder="Ἀθηνᾶ", metadata={"où": "là"})

    assert (await leases.inspect("Tür/門/🚪"))[0].lease == lease.lease


@pytest.mark.parametrize("ttl", NO_SECONDS[:10] + NO_SECONDS[11:])
async def test_a_renewal_for_no_time_is_refused(leases: Any, ttl: Any) -> None:
    lease = await leases.acquire("door")
    if ttl is None:
        await lease.renew(ttl)  # None means: its own TTL again.
        return

    await refused(leases, lambda: leases.renew(lease, ttl=ttl), "ttl")
    lease.ensure()


@pytest.mark.parametrize("bad", [None, 5, b"x", object(), ["x"]])
async def test_what_is_no_lease_is_refused(leases: Any, bad: Any) -> None:
    await refused(leases, lambda: leases.renew(bad), "lease")
    await refused(leases, lambda: leases.release(bad), "lease")
    await refused(leases, lambda: leases.renew_many(["fine", bad]), "lease")


@pytest.mark.parametrize("bad", ["", TOO_LONG, "line\nbreak"])
async def test_what_can_be_no_lease_id_is_refused(leases: Any, bad: str) -> None:
    await refused(leases, lambda: leases.renew(bad), "lease_id")
    await refused(leases, lambda: leases.release(bad), "lease_id")
    await refused(leases, lambda: leases.revoke(bad, reason="x"), "lease_id")


async def test_bad_arguments_of_a_release_leave_the_lease_kept(leases: Any) -> None:
    lease = await leases.acquire("door")
    for reason in ("", "because", 5, None):
        await refused(leases, partial(lease.release, reason), "reason")
        await refused(leases, partial(leases.release_all, reason=reason), "reason")
    for holder in ("", 5):
        await refused(leases, partial(leases.release, lease, holder=holder), "holder")
        await refused(leases, partial(leases.renew, lease, holder=holder), "holder")

    lease.ensure()
    assert lease.remaining == 60
    assert await lease.release() is True


async def test_an_empty_holder_is_nobody_and_not_oneself(leases: Any) -> None:
    lease = await leases.acquire("door")

    assert await leases.release_all("") == 0
    lease.ensure()


async def test_bad_arguments_of_a_revocation_are_refused(leases: Any) -> None:
    lease = await leases.acquire("door")
    for reason in ("", 5, None, "x" * 1_025):
        await refused(leases, partial(leases.revoke, lease.lease_id, reason=reason), "reason")
    for operator in ("", 5, TOO_LONG):
        revoke = partial(leases.revoke, lease.lease_id, reason="x", operator=operator)
        await refused(leases, revoke, "operator")
    await refused(leases, lambda: leases.revoke(None, reason="x"), "lease_id")


LOOKS: dict[str, dict[str, list[Any]]] = {
    "list": {
        "prefix": [5, b"x"],
        "resource": [5],
        "holder": [5],
        "states": ["active", 5, None, ["alive"], [5]],
        "limit": [0, -1, 10_001, "5", 1.5, None, True],
        "after": [5],
    },
    "history": {
        "lease_id": [5],
        "resource": [5],
        "holder": [5],
        "types": ["lease.issued", 5, None, [5]],
        "after": [-1, "5", 1.5, None],
        "limit": [0, -1, 10_001, "5", None],
    },
    "get": {"lease_id": [None, 5]},
    "inspect": {"resource": [None, 5]},
    "sweep": {"limit": [0, -1, "5", None, 1.5]},
}


@pytest.mark.parametrize(
    ("method", "field", "value"),
    [(how, name, one) for how, fields in LOOKS.items() for name, bad in fields.items() for one in bad],
)
async def test_a_look_that_can_never_be_right_is_refused(
    leases: Any, method: str, field: str, value: Any
) -> None:
    await refused(leases, lambda: getattr(leases, method)(**{field: value}), field)


@pytest.mark.parametrize(("field", "value"), [("after", -1), ("after", "5"), ("resource", 5), ("holder", 5)])
async def test_a_watch_that_can_never_be_right_is_refused(leases: Any, field: str, value: Any) -> None:
    entries = leases.watch(**({"after": 0} | {field: value}))

    await refused(leases, lambda: anext(entries), field)


async def test_a_poisoned_call_does_not_touch_its_neighbours(world: World) -> None:
    """What gets past the client all the same fails alone."""
    leases = world.connect(holder="ann")
    plain = getattr(leases, "target", leases)
    plain._session.tenant = 5

    with pytest.raises((AttributeError, TypeError)):
        await leases.acquire("door")
    plain._session.tenant = "default"
    await leases.acquire("door")


CONNECT: dict[str, list[Any]] = {
    "tenant": [*NO_NAME, TOO_LONG],
    "holder": [*NO_NAME, TOO_LONG],
    "timeout": [-1, math.nan, math.inf, "5", None],
    "leases_per_holder": [-1, "5", 1.5, True],
    "leases_per_tenant": [-1, "5", 1.5],
    "url": [5, b"x", "http://user@localhost", "https://", "postgresql://localhost/x", "ftp://x"],
}


@pytest.mark.parametrize(("field", "value"), [(name, one) for name, bad in CONNECT.items() for one in bad])
def test_a_connection_that_can_never_be_right_is_refused_before_anything_is_made(
    tmp_path: Path, field: str, value: Any
) -> None:
    options = {"url": tmp_path / "leases"} | {field: value}
    for connect in (leasehold.connect, _connect_async):
        with pytest.raises((leasehold.InvalidInput, leasehold.LimitExceeded)) as error:
            connect(**options)
        assert error.value.field == field

    assert list(tmp_path.iterdir()) == []


def _connect_async(**options: Any) -> None:
    async def connect() -> None:
        await leasehold.connect_async(**options)

    asyncio.run(connect())


def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(leasehold.InvalidInput, match="durability must be one of full, fast"):
        leasehold.connect(tmp_path / "leases", durability="careless")


def test_a_timeout_of_any_length_is_fine() -> None:
    with leasehold.connect("memory:", timeout=1e18) as leases:
        leases.acquire("door")

"""How long it may take until somebody's turn comes."""

import pytest
from msgspec.structs import replace

from leasehold.engine.questions import FindWaiters
from leasehold.engine.registrar import Registrar
from leasehold.kernel.lease.model import Mode
from leasehold.stores.memory import MemoryStore
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import claim

SECOND = 1_000_000_000


@pytest.fixture
def registrar() -> Registrar:
    return Registrar(MemoryStore(FakeClock()))


def join(
    registrar: Registrar, holder: str, ttl: int, mode: Mode = Mode.EXCLUSIVE, resource: str = "door"
) -> None:
    registrar.call(replace(claim(resource, holder, ttl_ns=ttl * SECOND), mode=mode, wait=True))


def estimates(registrar: Registrar, resource: str = "door") -> dict[str, float]:
    found = registrar.ask(FindWaiters(tenant="default", resource=resource))
    return {one.lease.holder: one.estimate for one in found}


def test_those_who_want_it_alone_come_one_after_the_other(registrar: Registrar) -> None:
    for holder, ttl in (("ann", 10), ("bob", 20), ("cem", 30)):
        join(registrar, holder, ttl)
    assert estimates(registrar) == {"bob": 10, "cem": 30}


def test_sharers_have_their_turn_side_by_side(registrar: Registrar) -> None:
    join(registrar, "ann", 10)
    for holder, ttl in (("bob", 20), ("cem", 5), ("dia", 7)):
        join(registrar, holder, ttl, Mode.SHARED)
    join(registrar, "eva", 1)
    join(registrar, "fay", 1, Mode.SHARED)
    assert estimates(registrar) == {"bob": 10, "cem": 10, "dia": 10, "eva": 30, "fay": 31}


def test_who_shares_it_already_is_in_no_sharers_way(registrar: Registrar) -> None:
    join(registrar, "ann", 10, Mode.SHARED)
    join(registrar, "bob", 5)
    join(registrar, "cem", 5, Mode.SHARED)
    assert estimates(registrar) == {"bob": 10, "cem": 15}


def test_what_is_held_or_awaited_elsewhere_in_the_tree_counts_where_it_is_in_the_way(
    registrar: Registrar,
) -> None:
    join(registrar, "ann", 10, resource="/a/b")
    join(registrar, "bob", 20, resource="/a/c")
    join(registrar, "cem", 5, resource="/a")
    join(registrar, "dia", 5, resource="/a/b")
    assert estimates(registrar, "/a") == {"cem": 20, "dia": 25}

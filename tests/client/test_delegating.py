"""Handing on a part of a lease, and spending it."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import leasehold
from leasehold import Budget, Scope
from leasehold.engine.audit import audit
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock
from tests.client.processes import Python
from tests.client.worlds import World

SCOPE = Scope(tools=("read", "write"), namespaces=("data",))


async def test_a_child_is_held_like_any_lease_and_gives_back_what_it_did_not_spend(leases: Any) -> None:
    parent = await leases.acquire("crawl", scope=SCOPE, budget=Budget(tokens=100))

    async with parent.derive("crawl/1", scope=Scope(tools=("read",)), budget=Budget(tokens=40)) as child:
        assert child.holder == "ann"
        assert await child.spend(tokens=15) == Budget(tokens=25)
        assert await parent.remaining_budget() == Budget(tokens=60)

    assert await parent.remaining_budget() == Budget(tokens=85)
    assert await leases.remaining_budget(parent.lease_id) == Budget(tokens=85)


async def test_a_child_is_lost_with_its_parent(leases: Any, strangers: Any, clock: FakeClock) -> None:
    parent = await leases.acquire("crawl", scope=SCOPE)
    child = await parent.derive("crawl/1", scope=SCOPE, holder="worker")
    assert (await leases.get(child.lease_id)).is_live
    assert await strangers.revoke(parent.lease_id, reason="enough")

    assert await strangers.inspect("crawl/1") == []
    assert not await leases.allows(child, tool="read")
    with pytest.raises(leasehold.LeaseTerminal, match="is over"):
        await child.renew()
    assert child.lost
    assert not child.allows(tool="read")
    async with strangers.acquire("crawl/1"):
        pass


async def test_what_is_allowed_can_be_asked_without_and_with_the_registrar(leases: Any) -> None:
    lease = await leases.acquire("crawl", scope=SCOPE)

    assert lease.allows(tool="read", namespace="data/raw")
    assert not lease.allows(namespace="database")
    assert not lease.allows(namespace="data/../etc")
    assert await leases.allows(lease, tool="write")
    assert not await leases.allows(lease.lease_id, tool="delete")
    lease.ensure_allowed(tool="read")
    with pytest.raises(leasehold.ScopeDenied, match="does not allow tool 'delete'"):
        lease.ensure_allowed(tool="delete")
    await lease.release()
    assert not lease.allows(tool="read")
    assert not await leases.allows(lease.lease_id, tool="read")
    with pytest.raises(leasehold.LeaseLost):
        lease.ensure_allowed(tool="read")


async def test_more_than_there_is_is_refused_with_the_next_step(leases: Any) -> None:
    parent = await leases.acquire("crawl", ttl=60, scope=SCOPE, budget=Budget(tokens=10))
    few = {"scope": Scope(), "budget": Budget(tokens=1)}

    with pytest.raises(leasehold.ScopeExceeded, match="does not allow tool 'rm'; ask for less"):
        await parent.derive("a", scope=Scope(tools=("rm",)), budget=Budget(tokens=1))
    with pytest.raises(leasehold.BudgetExceeded, match=r"10 left, 11 asked for; ask for less"):
        await parent.derive("a", budget=Budget(tokens=11))
    with pytest.raises(leasehold.OutlivesParent, match=r"stands for at most 60\.0 s more; ask for less time"):
        await parent.derive("a", ttl=61, **few)
    with pytest.raises(leasehold.BudgetExceeded, match="ask for less, or end children first"):
        await parent.spend(tokens=11)
    assert await parent.spend(tokens=10) == Budget(tokens=0)
    with pytest.raises(leasehold.BudgetExhausted, match="is exhausted: no tokens left"):
        await parent.spend(tool_calls=1)


async def test_a_plain_lease_has_nothing_to_spend(leases: Any) -> None:
    lease = await leases.acquire("door")

    for use in (lease.spend(tokens=1), lease.remaining_budget(), lease.derive("a")):
        with pytest.raises(leasehold.NothingGranted, match="acquired without scope and budget"):
            await use
    assert not lease.allows(tool="read")


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        ({"scope": "read"}, "scope must be a Scope, not 'read'"),
        ({"scope": Scope(tools="read")}, "scope is not a Scope: Expected `array`, got `str`"),  # type: ignore[arg-type]
        ({"budget": 7}, "budget must be a Budget, not 7"),
        ({"budget": {"token": 7, "tokens": True}}, "budget is not a Budget: Expected `int"),
        ({"budget": Budget(tokens=0)}, "budget must grant at least 1 of tokens"),
    ],
)
async def test_a_scope_or_budget_that_is_none_is_refused(leases: Any, claim: Any, problem: str) -> None:
    with pytest.raises(leasehold.InvalidInput, match=problem):
        await leases.acquire("door", **claim)


async def test_lists_and_mappings_will_do(leases: Any) -> None:
    lease = await leases.acquire("door", scope={"tools": ["write", "read"]}, budget={"tokens": 5})

    assert lease.lease.delegation.scope == Scope(tools=("read", "write"))
    assert await lease.remaining_budget() == Budget(tokens=5)


async def test_asking_about_a_lease_that_is_not_there_says_so(leases: Any) -> None:
    for ask in (leases.remaining_budget("nobodys"), leases.allows("nobodys", tool="read")):
        with pytest.raises(leasehold.LeaseNotFound, match="there is no lease nobodys"):
            await ask


async def test_a_retried_spending_and_derivation_happen_once(leases: Any) -> None:
    lease = await leases.acquire("door", scope=SCOPE, budget=Budget(tokens=10))
    for _ in range(2):
        await lease.spend(tokens=3, request_id="page-1")
        await lease.derive("part", budget=Budget(tokens=2), request_id="part-1")

    assert await leases.remaining_budget(lease) == Budget(tokens=5)


async def test_another_process_goes_on_with_a_child_that_was_detached(world: World, leases: Any) -> None:
    parent = await leases.acquire("crawl", scope=SCOPE, budget=Budget(tokens=10))
    child = await parent.derive("crawl/1", scope=SCOPE, budget=Budget(tokens=6), holder="worker")
    await child.spend(tokens=1)
    child.detach()
    worker = world.connect(holder="worker")

    adopted = await worker.adopt(child.lease_id, holder="worker")

    assert adopted.token > child.token
    assert await adopted.spend(tokens=5) == Budget(tokens=0)
    assert await parent.remaining_budget() == Budget(tokens=4)
    await adopted.release()
    assert await parent.remaining_budget() == Budget(tokens=4)


SPENDER = """
import sys
import leasehold

url, lease_id = sys.argv[1:]
with leasehold.connect(url, holder="team") as leases:
    print("ready", flush=True)
    sys.stdin.readline()
    spent = 0
    try:
        while True:
            leases.spend(lease_id, tokens=7, tool_calls=1)
            spent += 7
    except leasehold.BudgetExceeded as error:
        print(spent, error.limit, flush=True)
"""


def test_eight_processes_spend_one_budget_to_the_last_and_not_one_more(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'leases'}"
    with leasehold.connect(url, holder="team") as leases:
        lease = leases.acquire("budget", ttl=600, budget=Budget(tokens=2_000))
        with ExitStack() as stack:
            spenders = [stack.enter_context(Python(SPENDER, url, lease.lease_id)) for _ in range(8)]
            for spender in spenders:
                assert spender.read_line() == "ready"
            for spender in spenders:
                spender.write_line("go")
            told = [spender.read_line().split() for spender in spenders]
        spent = [int(one) for one, _ in told]
        assert sum(spent) == 2_000 // 7 * 7
        assert {left for _, left in told} == {str(2_000 % 7)}
        assert sum(one > 0 for one in spent) > 1, "they must have competed"
        assert leases.remaining_budget(lease) == Budget(tokens=2_000 % 7)
        assert leases.spend(lease, tokens=2_000 % 7) == Budget(tokens=0)
    store = SqliteStore(tmp_path / "leases")
    try:
        assert audit(store).problems == []
    finally:
        store.close()

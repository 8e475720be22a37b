"""Old history goes, for every kind of client and store; whoever followed it is told."""

from typing import Any

import pytest

from leasehold import HistoryPruned, InvalidInput
from leasehold.testing.clock import FakeClock

DAY = 24 * 3600


async def test_a_client_prunes_and_goes_on(leases: Any, clock: FakeClock) -> None:
    old = await leases.acquire("door")
    await old.release()
    clock.advance(31 * DAY)
    planned = await leases.prune(dry_run=True)
    assert (planned.entries, planned.records, planned.checkpoint) == (3, 1, None)
    done = await leases.prune()
    assert (done.entries, done.records, done.through, done.checkpoint) == (3, 1, 3, 4)
    assert await leases.get(old.lease_id) is None
    assert await leases.history() == []
    assert (await leases.acquire("door")).token > old.token
    found = await leases.verify()
    assert (found.problems, found.pruned, found.entries) == ([], 3, 5)


async def test_how_much_is_kept_is_said_in_seconds(leases: Any, clock: FakeClock) -> None:
    await (await leases.acquire("door")).release()
    clock.advance(2 * DAY)
    assert (await leases.prune(keep=2 * DAY + 1)).entries == 0
    assert (await leases.prune(keep=2 * DAY - 1)).entries == 3
    for wrong in (-1, 60, "soon"):
        with pytest.raises(InvalidInput):
            await leases.prune(keep=wrong)


async def test_history_begins_with_what_is_left_and_a_watcher_that_fell_behind_is_told(
    leases: Any, clock: FakeClock
) -> None:
    await (await leases.acquire("door")).release()
    clock.advance(31 * DAY)
    await leases.acquire("gate")
    await leases.prune()
    assert [entry.position for entry in await leases.history(after=1)] == [4]
    entries = leases.watch(after=2)
    with pytest.raises(HistoryPruned) as caught:
        await anext(entries)
    assert caught.value.position == 3
    for after in (0, 3):
        entries = leases.watch(after=after)
        assert (await anext(entries)).position == 4
        await entries.aclose()

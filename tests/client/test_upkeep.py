"""What an operator has done to the ledger, for every kind of client and store, and over a bad line."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from leasehold import (
    ClientClosed,
    InvalidInput,
    JobCancelled,
    JobUnknown,
    LedgerBroken,
    StoreFailed,
    StoreUnusable,
)
from leasehold.engine.jobs import CARRIERS, Job, RotateKey, Verify
from leasehold.engine.port import Progress, Store
from leasehold.engine.signing import key_id_of
from leasehold.kernel.ledger.authority import COUNTER_BITS
from leasehold.testing.clock import FakeClock
from tests.client.worlds import SIGNAL_SECONDS, World
from tests.engine.doubles import registrar_of


async def test_tables_are_rebuilt_from_the_ledger(leases: Any) -> None:
    await leases.acquire("door")
    assert await leases.rebuild() == {"lease": 1, "settings": 0, "work": 0, "workflow": 0}
    assert (await leases.verify()).problems == []


async def test_keys_are_rotated_retired_and_vouched_for(leases: Any) -> None:
    (first,) = await leases.keys()
    second = await leases.rotate_key(reason="yearly")
    assert (second.vouched_by, second.reason, second.enrolled_by) == (first.public_key, "yearly", "ann")
    assert [key.is_admitted for key in await leases.keys()] == [False, True]
    with pytest.raises(InvalidInput, match="only one"):
        await leases.retire_key(key_id_of(second.public_key))
    with pytest.raises(InvalidInput, match="vouched for already"):
        await leases.vouch_for_key(key_id_of(second.public_key))


async def test_a_job_is_not_done_twice_however_often_replies_are_lost(leases: Any) -> None:
    for _ in range(5):
        await leases.rotate_key()
    assert len(await leases.keys()) == 6


async def test_progress_is_told_as_it_comes(leases: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leasehold.engine.walking._PAGE", 1)
    told: list[tuple[int, int]] = []
    await leases.acquire("door")
    await leases.verify(progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (2, 2)
    assert told == sorted(told)


async def test_the_look_at_the_store_itself_can_be_skipped(leases: Any) -> None:
    assert (await leases.verify()).storage_checked
    assert not (await leases.verify(skip_storage=True)).storage_checked


async def test_a_backup_is_made_where_the_store_has_a_file(world: World, leases: Any, tmp_path: Path) -> None:
    await leases.acquire("door")
    file = tmp_path / "copy"
    if registrar_of(leases).url == "memory:":
        with pytest.raises(StoreUnusable, match="only a SQLite store can"):
            await leases.backup(file)
        return
    made = await leases.backup(file)
    assert (made.epoch, made.entries, made.size_bytes) == (1, 2, file.stat().st_size)
    with pytest.raises(InvalidInput, match="exists already"):
        await leases.backup(file)
    await leases.backup(file, overwrite=True)
    with pytest.raises(InvalidInput, match="absolute"):
        await leases.backup("copy")


async def test_what_goes_wrong_with_a_job_is_raised_where_it_is_waited_for(world: World) -> None:
    leases = world.connect(holder="ann", as_is=True)
    with pytest.raises(LedgerBroken, match="the ledger is empty"):
        await leases.rebuild()


async def test_looking_at_a_store_as_it_is_records_nothing(world: World, clock: FakeClock) -> None:
    await world.connect(holder="ann").acquire("door")
    clock.reboot()
    leases = world.connect(holder="bob", as_is=True)
    head = await leases.head()
    assert (await leases.verify(head=head)).problems == []
    assert len(await leases.keys()) == 1
    assert [entry.position for entry in await leases.history()] == [2]
    assert (await leases.prune(dry_run=True)).entries == 0
    assert await leases.head() == head
    (status,) = (await leases.list()).statuses
    survived = 60 if world.is_remote else 0
    assert status.expires_in == survived, "who asks what is left has the new boot recorded"
    assert (await leases.head()).position > head.position


async def test_a_change_to_a_store_as_it_is_opens_its_epoch(world: World, clock: FakeClock) -> None:
    first = await world.connect(holder="ann").acquire("door")
    clock.reboot()
    again = await world.connect(holder="bob", as_is=True).acquire("gate")
    assert again.token > first.token
    assert again.token >> COUNTER_BITS > first.token >> COUNTER_BITS, "in a higher epoch"


async def test_a_job_that_its_registrar_has_forgotten_is_unknown_and_not_asked_for_again(
    leases: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = registrar_of(leases)._jobs
    asked: list[str] = []

    def find(job_id: str, **named: Any) -> Any:
        asked.append(job_id)
        raise JobUnknown("started again")

    def never(job: Job, store: Store, progress: Progress) -> Any:
        while True:
            progress(0, 1)

    runner._carriers[Verify] = never
    monkeypatch.setattr(runner, "find", find)
    with pytest.raises(JobUnknown) as caught:
        await leases.verify()
    assert caught.value.outcome_unknown
    assert len(asked) == 1


async def test_a_store_that_fails_in_a_job_is_not_taken_for_a_lost_reply(leases: Any) -> None:
    runner, begun = registrar_of(leases)._jobs, []

    def fail(job: RotateKey, store: Store, progress: Progress) -> Any:
        begun.append(job)
        raise StoreFailed("disk")

    runner._carriers[RotateKey] = fail
    with pytest.raises(StoreFailed, match="disk"):
        await leases.rotate_key()
    assert len(begun) == 1


async def test_a_caller_that_is_interrupted_has_its_job_cancelled(leases: Any) -> None:
    runner = registrar_of(leases)._jobs

    def for_ever(job: Verify, store: Store, progress: Progress) -> Any:
        done = 0
        while True:
            done += 1
            progress(done, 0)
            progress(done, 1)

    class Interrupt(BaseException):
        pass

    def interrupt(done: int, total: int) -> None:
        raise Interrupt

    runner._carriers[Verify] = for_ever
    with pytest.raises(Interrupt):
        await leases.verify(progress=interrupt)
    (run,) = runner._runs.values()
    assert run.is_cancelled
    runner._carriers[Verify] = CARRIERS[Verify]
    assert (await leases.verify()).problems == []


async def test_a_client_that_is_closed_has_its_jobs_cancelled(leases: Any) -> None:
    runner = registrar_of(leases)._jobs
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def for_ever(job: Verify, store: Store, progress: Progress) -> Any:
        loop.call_soon_threadsafe(begun.set)
        while True:
            progress(0, 1)

    runner._carriers[Verify] = for_ever
    target = getattr(leases, "target", None)
    if target is None:
        waiting = asyncio.create_task(leases.verify())
    else:
        waiting = asyncio.create_task(asyncio.to_thread(target.verify))
    await begun.wait()
    await leases.close()
    # At a desk elsewhere, the client may be closed before it hears that the job began.
    with pytest.raises((JobCancelled, ClientClosed)):
        await waiting
    assert runner._news.wait_for(runner._is_idle, SIGNAL_SECONDS)
    with pytest.raises(ClientClosed):
        await leases.verify()

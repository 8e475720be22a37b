"""Work leases as programs use them, on every store, over a wire, blocking and asynchronous."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import leasehold
from leasehold.engine.trust import Trust
from leasehold.errors import InvalidInput, LeaseExpired, LeaseTerminal, LimitExceeded
from leasehold.work import (
    BacklogOrderingException,
    LeaseNotFoundException,
    TokenMismatchException,
    WorkBelowStart,
    WorkState,
)
from tests.client.worlds import World


async def test_the_whole_way_of_some_offsets(leases: Any) -> None:
    work = leases.work
    first = await work.try_acquire("orders", 1)
    assert (first.outcome, first.fence) == ("ACQUIRED", int(first.token))
    assert (await work.try_acquire("orders", 2)).outcome == "ENQUEUED"
    hint = await work.succeed("orders", first.token)
    assert (hint.outcome, hint.next_offset) == ("NEXT_HINT", 2)
    second = await work.try_acquire("orders", 2)
    assert (await work.fail("orders", second.token, reason="no luck")).retry_count == 1
    assert (await work.fail("orders", second.token, max_retries=0)).outcome == "GIVE_UP_NO_BACKLOG"
    assert (await work.try_acquire("orders", 2)).outcome == "ALREADY_FAILED"
    assert (await leases.verify()).problems == []


async def test_the_exceptions_carry_what_a_caller_needs(leases: Any) -> None:
    work = leases.work
    with pytest.raises(LeaseNotFoundException, match=r"^No lease") as none:
        await work.succeed("orders", "1")
    assert none.value.domain == "orders"
    token = (await work.try_acquire("orders", 1)).token
    with pytest.raises(TokenMismatchException, match=r"^Token mismatch"):
        await work.fail("orders", "1")
    await work.enqueue("orders", [7])
    await work.succeed("orders", token)
    with pytest.raises(BacklogOrderingException) as order:
        await work.try_acquire("orders", 3)
    assert (order.value.domain, order.value.expected, order.value.got) == ("orders", 7, 3)
    with pytest.raises(WorkBelowStart):
        await work.start_at("orders", 8)
    assert issubclass(BacklogOrderingException, leasehold.NotAcquired)
    assert issubclass(TokenMismatchException, leasehold.LeaseLost)


async def test_a_mismatch_can_be_ignored_by_call_or_by_face(leases: Any) -> None:
    token = (await leases.work.try_acquire("orders", 1)).token
    assert (await leases.work.succeed("orders", "1", on_mismatch="ignore")).outcome == "IGNORED"
    lenient = leases.work.configured(on_mismatch="ignore")
    assert (await lenient.fail("orders", "1")).outcome == "IGNORED"
    assert (await lenient.succeed("orders", token)).outcome == "NO_BACKLOG"
    assert (await lenient.succeed("orders", token)).outcome == "IGNORED", "no lease at all"
    assert (await lenient.fail("nowhere", token)).outcome == "IGNORED"
    with pytest.raises(LeaseNotFoundException):
        await lenient.succeed("orders", token, on_mismatch="raise")


async def test_a_face_can_be_given_other_defaults(leases: Any, world: World) -> None:
    work = leases.work.configured(max_retries=0, ttl=5, hand_off=True)
    first = await work.try_acquire("orders", 1)
    assert first.expires_in == 5
    await work.try_acquire("orders", 2)
    handed = await work.fail("orders", first.token)
    assert (handed.outcome, handed.acquired.offset) == ("GIVE_UP_NEXT_HINT", 2)
    await work.enqueue("orders", [3])
    handed = await work.succeed("orders", handed.acquired.token)
    assert handed.acquired.offset == 3
    world.clock.advance(5)  # type: ignore[attr-defined]
    assert (await work.try_acquire("orders", 3)).outcome == "ALREADY_FAILED"


async def test_an_offset_is_kept_alive_and_comes_back_if_it_is_not(leases: Any, world: World) -> None:
    first = await leases.work.try_acquire("orders", 1, ttl=10)
    world.clock.advance(9)  # type: ignore[attr-defined]
    assert (await leases.work.keep_alive("orders", first.token)).expires_in == 10
    world.clock.advance(10)  # type: ignore[attr-defined]
    with pytest.raises(LeaseNotFoundException):
        await leases.work.keep_alive("orders", first.token)
    again = await leases.work.try_acquire("orders", 1)
    assert (again.acquired_at_millis, again.retry_count) == (first.acquired_at_millis, 1)
    with pytest.raises(TokenMismatchException):
        await leases.work.succeed("orders", first.token)
    assert await leases.work.give_back("orders", again.token) == 1


async def test_the_state_of_a_domain_says_everything(leases: Any, world: World) -> None:
    work = leases.work
    idle = await work.state("orders")
    assert (idle.state, idle.backlog, idle.watermark) == (WorkState.IDLE, 0, 0)
    for offset in (0, 1, 3):
        await work.succeed("orders", (await work.try_acquire("orders", offset)).token)
    await work.fail("orders", (await work.try_acquire("orders", 2)).token, max_retries=0)
    held = await work.try_acquire("orders", 9, ttl=30)
    await work.enqueue("orders", [8, 7])
    world.clock.advance(10)  # type: ignore[attr-defined]
    state = await work.state("orders")
    assert (state.state, state.current_offset, state.token) == (WorkState.IN_FLIGHT, 9, held.token)
    assert (state.acquired_at_millis, state.retry_count) == (held.acquired_at_millis, 0)
    assert (state.backlog, state.head, state.holder, state.expires_in) == (2, 8, "ann", 20)
    assert (state.processed, state.failed) == (((0, 1), (3, 3)), ((2, 2),))
    assert (state.processed_count, state.failed_count, state.watermark) == (3, 1, 4)
    assert await work.watermark("orders") == 4
    assert await work.watermark("nowhere") == 0


async def test_a_reboot_shows_in_the_state_as_what_is_left(leases: Any, world: World) -> None:
    await leases.work.try_acquire("orders", 1, ttl=30)
    world.clock.advance(10)  # type: ignore[attr-defined]
    await leases.work.try_acquire("others", 1)
    world.clock.reboot()  # type: ignore[attr-defined]
    await leases.work.try_acquire("more", 1)
    assert (await leases.work.state("orders")).expires_in == 20


async def test_ranges_and_domains_and_failures_come_in_pages(leases: Any) -> None:
    work = leases.work
    for offset in range(0, 20, 2):
        token = (await work.try_acquire("orders", offset)).token
        await (
            work.fail("orders", token, max_retries=0, reason="odd")
            if offset % 4
            else work.succeed("orders", token)
        )
    processed: list[Any] = []
    failed: list[Any] = []
    at: int | None = 0
    while at is not None:
        page = await work.state("orders", ranges_from=at, limit=2)
        processed += page.processed
        failed += page.failed
        at = page.more_from
    assert processed == [(one, one) for one in range(0, 20, 4)]
    assert failed == [(one, one) for one in range(2, 20, 4)]
    listed = await work.failed("orders", limit=2)
    assert [(one.offset, one.reason, one.retry_count) for one in listed] == [(2, "odd", 0), (6, "odd", 0)]
    rest = await work.failed("orders", after=6)
    assert [one.offset for one in rest] == [10, 14, 18]
    for name in ("a", "b", "c"):
        await work.try_acquire(name, 1)
    assert [one.domain for one in await work.domains(limit=2)] == ["a", "b"]
    assert [one.domain for one in await work.domains(after="b")] == ["c", "orders"]


async def test_a_page_in_the_middle_of_a_range_begins_there(leases: Any) -> None:
    work = leases.work
    for offset in range(6):
        token = (await work.try_acquire("orders", offset)).token
        await (work.fail("orders", token, max_retries=0) if offset == 3 else work.succeed("orders", token))
    state = await work.state("orders", ranges_from=2)
    assert (state.processed, state.failed) == (((2, 2), (4, 5)), ((3, 3),))
    assert (await work.state("orders", ranges_from=50)).processed == ()


async def test_history_says_what_happened_to_each_offset(leases: Any) -> None:
    work = leases.work
    token = (await work.try_acquire("orders", 1)).token
    await work.try_acquire("orders", 2)
    await work.fail("orders", token, reason="first try")
    await work.succeed("orders", token)
    entries = await work.history("orders", 1)
    assert [entry.event.type for entry in entries] == ["work.acquired", "work.retried", "work.succeeded"]
    assert entries[1].event.reason == "first try"
    assert {entry.event.actor for entry in entries} == {"ann"}
    assert [entry.event.type for entry in await work.history("orders", 2)] == ["work.enqueued"]


async def test_a_start_says_from_where_to_count(leases: Any) -> None:
    assert await leases.work.start_at("orders", 1_000) == 1_000
    await leases.work.succeed("orders", (await leases.work.try_acquire("orders", 1_000)).token)
    assert await leases.work.watermark("orders") == 1_001
    assert (await leases.work.state("orders")).start == 1_000


async def test_a_request_can_be_named_and_asked_again(leases: Any) -> None:
    first = await leases.work.try_acquire("orders", 1, request_id="mine")
    assert await leases.work.try_acquire("orders", 1, request_id="mine") == first
    done = await leases.work.succeed("orders", first.token, request_id="done")
    assert await leases.work.succeed("orders", first.token, request_id="done") == done
    with pytest.raises(LeaseTerminal, match="ended since"):
        await leases.work.try_acquire("orders", 1, request_id="mine")


async def test_a_hand_off_that_is_asked_for_again_is_not_answered_with_what_others_work_on(
    leases: Any, strangers: Any, world: World
) -> None:
    first = await leases.work.try_acquire("orders", 1, ttl=5)
    await leases.work.enqueue("orders", [2])
    lost = await leases.work.succeed("orders", first.token, hand_off=True, request_id="mine")
    assert await leases.work.succeed("orders", first.token, hand_off=True, request_id="mine") == lost
    world.clock.advance(5)  # type: ignore[attr-defined]
    assert (await strangers.work.try_acquire("orders", 2)).outcome == "ACQUIRED"
    again = await leases.work.succeed("orders", first.token, hand_off=True, request_id="mine")
    assert (again.outcome, again.next_offset, again.acquired) == ("NEXT_HINT", 2, None)


def session_of(world: World, client: Any) -> Any:
    return client.target._session if world.blocking else client._session


def delay_answers(world: World, client: Any, seconds: float) -> None:
    """Let every answer to a command travel for so long."""
    session = session_of(world, client)
    send = session.send

    def slow(command: Any) -> Any:
        outcome = send(command)
        world.clock.advance(seconds)  # type: ignore[attr-defined]
        return outcome

    async def slow_async(command: Any) -> Any:
        outcome = await send(command)
        world.clock.advance(seconds)  # type: ignore[attr-defined]
        return outcome

    session.send = slow if world.blocking else slow_async


async def test_an_answer_that_comes_after_the_ttl_is_not_relied_on(
    leases: Any, strangers: Any, world: World
) -> None:
    held = await leases.work.try_acquire("orders", 1, ttl=5)
    await leases.work.enqueue("orders", [2])
    delay_answers(world, leases, 4.9)
    assert (await leases.work.keep_alive("orders", held.token)).expires_in == 5
    delay_answers(world, leases, 0.1)  # 5 seconds in all.
    with pytest.raises(LeaseExpired, match="too late"):
        await leases.work.keep_alive("orders", (await strangers.work.try_acquire("orders", 1, ttl=5)).token)
    with pytest.raises(LeaseTerminal, match="ended since"):
        await leases.work.try_acquire("orders", 1, ttl=5)
    assert (await leases.work.try_acquire("others", 1, ttl=5.1)).outcome == "ACQUIRED"
    assert (await leases.work.try_acquire("more", 1)).outcome == "ACQUIRED", "without a TTL there is no hurry"


@pytest.mark.parametrize("verb", ["succeed", "fail"])
async def test_a_hand_off_whose_answer_comes_after_the_ttl_is_a_hint(
    leases: Any, world: World, verb: str
) -> None:
    held = await leases.work.try_acquire("orders", 1, ttl=5, max_retries=0)
    await leases.work.enqueue("orders", [2])
    delay_answers(world, leases, 5)
    ended = await getattr(leases.work, verb)("orders", held.token, hand_off=True)
    assert (ended.next_offset, ended.acquired) == (2, None)


async def test_what_was_acquired_and_is_not_relied_on_is_given_back(world: World, strangers: Any) -> None:
    careful = world.connect(trust=Trust(margin_ns=10**9, drift_ppm=0))
    delay_answers(world, careful, 4)  # The registrar's 5 seconds are not over yet.
    with pytest.raises(LeaseTerminal):
        await careful.work.try_acquire("orders", 1, ttl=5)
    session_of(world, careful).hear_all()
    again = await strangers.work.try_acquire("orders", 1)
    assert (again.outcome, again.retry_count) == ("ACQUIRED", 0)


def interrupt_answers(world: World, client: Any) -> None:
    """Let every command be carried out, and no answer be heard."""
    session = session_of(world, client)
    send = session.send

    def interrupted(command: Any) -> Any:
        send(command)
        raise KeyboardInterrupt

    async def cancelled(command: Any) -> Any:
        await send(command)
        raise asyncio.CancelledError

    session.send = interrupted if world.blocking else cancelled


@pytest.mark.parametrize("verb", ["try_acquire", "succeed", "fail"])
async def test_who_is_interrupted_leaves_nothing_in_flight(
    world: World, leases: Any, strangers: Any, verb: str
) -> None:
    given: Any = 2
    if verb != "try_acquire":
        given = (await leases.work.try_acquire("orders", 1, max_retries=0)).token
        await leases.work.enqueue("orders", [2])
    work = leases.work.configured(hand_off=True)
    interrupt_answers(world, leases)
    with pytest.raises((KeyboardInterrupt, asyncio.CancelledError)):
        await getattr(work, verb)("orders", given)
    await leases.close()  # At once: what gives it back is on its way.

    state = await strangers.work.state("orders")
    assert (state.state, state.head, state.processed_count) == ("IDLE", 2, int(verb == "succeed"))
    assert (await strangers.work.try_acquire("orders", 2)).retry_count == 0


async def test_who_is_interrupted_before_anything_was_acquired_gives_nothing_back(
    world: World, leases: Any, strangers: Any
) -> None:
    theirs = await strangers.work.try_acquire("orders", 1)
    interrupt_answers(world, leases)
    for offset in (1, 2):
        with pytest.raises((KeyboardInterrupt, asyncio.CancelledError)):
            await leases.work.try_acquire("orders", offset)
    session_of(world, leases).hear_all()
    assert (await strangers.work.state("orders")).token == theirs.token


async def test_a_task_that_is_cancelled_at_any_moment_leaves_nothing_in_flight(tmp_path: Path) -> None:
    async with leasehold.connect_async(tmp_path / "leases", holder="ann") as leases:
        for number in range(60):
            task = asyncio.ensure_future(leases.work.try_acquire(f"orders-{number}", 1))
            for _ in range(10 * number):
                await asyncio.sleep(0)
            task.cancel()
            (outcome,) = await asyncio.gather(task, return_exceptions=True)
            if not isinstance(outcome, BaseException):
                await leases.work.give_back(f"orders-{number}", str(outcome.token))
        leases._session.hear_all()
        assert {one.state for one in await leases.work.domains()} <= {WorkState.IDLE}


async def test_another_client_meets_the_same_domain(leases: Any, strangers: Any) -> None:
    token = (await leases.work.try_acquire("orders", 1)).token
    assert (await strangers.work.try_acquire("orders", 1)).outcome == "ALREADY_ACQUIRED"
    await strangers.work.succeed("orders", token)  # Whoever bears the token.
    assert (await leases.work.state("orders")).processed == ((1, 1),)


async def test_tenants_do_not_see_each_other(world: World) -> None:
    acme, zeta = world.connect(tenant="acme"), world.connect(tenant="zeta")
    await acme.work.try_acquire("orders", 1)
    assert (await zeta.work.try_acquire("orders", 1)).outcome == "ACQUIRED"
    assert [one.backlog for one in await zeta.work.domains()] == [0]


@pytest.mark.parametrize(
    ("call", "given", "named", "field"),
    [
        ("try_acquire", (7, 1), {}, "domain"),
        ("try_acquire", ("", 1), {}, "domain"),
        ("try_acquire", ("a", "1"), {}, "offset"),
        ("try_acquire", ("a", 1.5), {}, "offset"),
        ("try_acquire", ("a", True), {}, "offset"),
        ("try_acquire", ("a", -1), {}, "offset"),
        ("try_acquire", ("a", 1), {"ttl": 0}, "ttl"),
        ("try_acquire", ("a", 1), {"ttl": "soon"}, "ttl"),
        ("try_acquire", ("a", 1), {"max_retries": 1.5}, "max_retries"),
        ("succeed", ("a", 7), {}, "token"),
        ("succeed", ("a", "7"), {"on_mismatch": "maybe"}, "on_mismatch"),
        ("fail", ("a", "7"), {"reason": 5}, "reason"),
        ("enqueue", ("a", "12"), {}, "offsets"),
        ("enqueue", ("a", [1, "2"]), {}, "offsets"),
        ("enqueue", ("a", []), {}, "offsets"),
        ("start_at", ("a", -5), {}, "offset"),
        ("state", ("a",), {"limit": 0}, "limit"),
        ("state", ("a",), {"ranges_from": -1}, "ranges_from"),
        ("history", ("a", -1), {}, "offset"),
        ("domains", (), {"limit": 0}, "limit"),
        ("failed", ("a",), {"limit": 10**9}, "limit"),
    ],
)
async def test_bad_input_is_a_clear_error(
    leases: Any, call: str, given: Any, named: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as error:
        await getattr(leases.work, call)(*given, **named)
    assert error.value.field == field
    assert await leases.work.domains() == []


async def test_what_is_beyond_a_limit_names_it(leases: Any) -> None:
    for call in (leases.work.try_acquire("a", 2**63), leases.work.history("a", 2**63)):
        with pytest.raises(LimitExceeded) as error:
            await call
        assert error.value.limit == 2**63 - 1
    with pytest.raises(LimitExceeded, match="at most 1000"):
        await leases.work.enqueue("a", range(1_001))
    with pytest.raises(InvalidInput):
        leases.work.configured(max_retries=-1)


async def test_pages_end_with_the_last_offset_that_there_is(leases: Any) -> None:
    work, last = leases.work, 2**63 - 1
    acquired = await work.try_acquire("orders", last, max_retries=0)
    await work.fail("orders", acquired.token)

    assert [one.offset for one in await work.failed("orders")] == [last]
    assert await work.failed("orders", after=last) == []
    assert (await work.state("orders", limit=1)).more_from is None

"""A desk at the other end of a network: what it promises, and what it costs."""

import asyncio
import signal
import threading
import time
from typing import Any

import pytest

import leasehold
from leasehold.client.http.call import Call
from leasehold.client.http.desk import RemoteDesk
from leasehold.client.http.lane import Lane
from leasehold.engine.desk import Failure
from leasehold.engine.questions import FindHolders, FindWaiters
from leasehold.engine.registrar import Registrar
from leasehold.kernel.lease.commands import Acquire, Release
from leasehold.kernel.ledger.commands import Command
from leasehold.registry import wire
from leasehold.work.law.commands import Succeed
from tests.client.http.conftest import until_waiting
from tests.client.http.scripted import Scripted
from tests.client.processes import Python
from tests.client.test_processes import in_a_fork
from tests.client.worlds import SIGNAL_SECONDS

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

_UNREACHABLE = "http://127.0.0.1:9"


def test_a_waiter_is_woken_and_does_not_poll(url: str, registrar: Registrar) -> None:
    desk = RemoteDesk(url)
    with (
        leasehold.Client(RemoteDesk(url), holder="ann") as leases,
        leasehold.Client(desk, holder="bob") as other,
    ):
        lease = leases.acquire("door")
        won: list[float] = []

        def wait() -> None:
            with other.acquire("door", wait=SIGNAL_SECONDS):
                won.append(time.monotonic())

        thread = threading.Thread(target=wait)
        thread.start()
        until_waiting(registrar, "door")
        thread.join(1)  # Long enough for anybody who polls to be noticed.
        assert desk.requests == 2, "the claim, and the stream"
        lease.release()
        released = time.monotonic()
        thread.join(SIGNAL_SECONDS)
        assert won[0] - released < 1
        assert desk.requests <= 4, "one more to look, and one to give back"


async def test_many_callers_share_requests(url: str) -> None:
    desk = RemoteDesk(url)
    async with leasehold.AsyncClient(desk, holder="ann") as leases:
        held = await asyncio.gather(*(leases.acquire(f"door-{number}") for number in range(500)))
        assert len({lease.token for lease in held}) == 500
        assert desk.requests < 50


async def test_the_callers_event_loop_goes_on_while_a_server_does_not_answer() -> None:
    stopped = threading.Event()

    def never(count: int, asked: bytes) -> list[bytes]:
        stopped.wait(SIGNAL_SECONDS)
        return []

    with Scripted(never) as server:
        async with leasehold.AsyncClient(RemoteDesk(server.url, timeout=0.5)) as leases:
            asking = asyncio.ensure_future(leases.acquire("door"))
            longest, last = 0.0, time.monotonic()
            while not asking.done():
                await asyncio.wait({asking}, timeout=0.001)
                now = time.monotonic()
                longest, last = max(longest, now - last), now
            with pytest.raises(leasehold.StoreFailed):
                await asking
        stopped.set()
    assert longest < 0.4


def test_watching_waits_at_the_server(url: str) -> None:
    desk = RemoteDesk(url)
    with leasehold.Client(desk, holder="ann") as leases, leasehold.Client(RemoteDesk(url)) as other:
        head = leases.head().position
        assert not desk.wait(head, 0.3)
        assert not desk.wait(head, 0.3)
        asked = desk.requests
        later = threading.Timer(0.2, lambda: other.acquire("door"))
        later.start()
        assert desk.wait(head, SIGNAL_SECONDS)
        later.join()
        assert desk.requests <= asked + 1, "one request waits for everybody"


def test_a_forked_child_has_connections_of_its_own(url: str, registrar: Registrar) -> None:
    with leasehold.Client(RemoteDesk(url)) as leases, leases.acquire("door") as lease:

        def use() -> list[Any]:
            with leases.acquire("window") as own:
                return [own.resource, leases.get(lease.lease_id).lease.resource]

        assert in_a_fork(use) == ["window", "door"]
        lease.renew()
        (status,) = registrar.ask(FindHolders(tenant="default", resource="door"))
        assert status.lease.token == lease.token


def test_ctrl_c_in_a_wait_leaves_nothing_in_the_queue(url: str, registrar: Registrar) -> None:
    program = f"""
import leasehold
with leasehold.connect({url!r}) as leases:
    print("waiting")
    leases.acquire("door", wait=True)
"""
    with leasehold.Client(RemoteDesk(url)) as leases, leases.acquire("door"), Python(program) as other:
        assert other.read_line() == "waiting"
        until_waiting(registrar, "door")
        other.send(signal.SIGINT)
        assert other.ends() != 0
        assert registrar.ask(FindWaiters(tenant="default", resource="door")) == []


def test_a_process_that_ends_without_closing_gives_back_what_it_holds(url: str, registrar: Registrar) -> None:
    program = f"""
import leasehold
leases = leasehold.connect({url!r})
leases.acquire("door")
print("done")
"""
    with Python(program) as other:
        assert other.read_line() == "done"
        assert other.ends() == 0
    assert registrar.ask(FindHolders(tenant="default", resource="door")) == []


def test_closing_gives_up_at_its_timeout_when_the_server_is_gone(url: str) -> None:
    stopped = threading.Event()

    def never(count: int, asked: bytes) -> list[bytes]:
        stopped.wait(SIGNAL_SECONDS)
        return []

    for address in (_UNREACHABLE, None):
        with Scripted(never) as server:
            client = leasehold.Client(RemoteDesk(address or server.url, timeout=0.5))
            asking = [threading.Thread(target=_ask_in_vain, args=(client,)) for _ in range(3)]
            for thread in asking:
                thread.start()
            began = time.monotonic()
            client.close()
            assert time.monotonic() - began < 5
            for thread in asking:
                thread.join(SIGNAL_SECONDS)
    stopped.set()


def _ask_in_vain(client: leasehold.Client) -> None:
    with pytest.raises(leasehold.LeaseholdError):
        client.acquire("door")


def _call(command: Command, outcomes: list[Any]) -> Call:
    lock = threading.Lock()
    return Call(command, wire().spell(command), time.monotonic() + 10, outcomes.append, lock)


def _claim(lease_id: str) -> Acquire:
    return Acquire(lease_id=lease_id, resource="door", holder="ann", ttl_ns=10**9, request_id=lease_id)


def _release(*lease_ids: str) -> Release:
    return Release(lease_ids=lease_ids, holder="ann", request_id="r")


def test_what_is_about_one_lease_never_overtakes_what_was_asked_before() -> None:
    lane = Lane(2)
    first, undo, other, both = (
        _call(command, []) for command in (_claim("a"), _release("a"), _claim("b"), _release("b", "a"))
    )
    lane.waiting.append(first)
    assert lane.board() == [first]
    lane.waiting.extend([undo, other, both])
    assert lane.board() == [other], "its claim is under way"
    lane.arrive([first])
    assert lane.board() == [undo], "what is about both waits for the other one"
    lane.arrive([other, undo])
    assert lane.board() == [both]
    lane.arrive([both])
    assert not lane.busy


def test_commands_of_another_family_stay_in_order_among_themselves() -> None:
    lane = Lane(2)
    done = [_call(Succeed(domain=name, holder="ann", token="1", request_id=name), []) for name in ("x", "y")]
    lane.waiting.append(done[0])
    assert lane.board() == [done[0]]
    lane.waiting.append(done[1])
    assert lane.board() == []


def test_a_command_can_be_withdrawn_only_before_it_has_left() -> None:
    outcomes: list[Any] = []
    call = _call(_claim("a"), outcomes)
    assert call.leave()
    assert not call.withdraw()
    call.come_back(may_have_run=False)
    assert call.withdraw(), "there was no connection"
    assert not call.leave()
    call.resolve("too late")
    assert outcomes == []

    lost = _call(_claim("b"), outcomes)
    assert lost.leave()
    lost.come_back(may_have_run=True)
    assert not lost.withdraw(), "nobody knows what came of it"
    lost.fail(leasehold.ClientClosed("closed"))
    assert isinstance(outcomes[0], Failure)
    assert outcomes[0].is_unknown


def test_a_desk_says_where_it_is_and_not_with_which_key() -> None:
    desk = RemoteDesk("HTTP://LocalHost:80/prefix/", api_key="lh_one_secret")
    assert desk.url == "http://localhost:80/prefix"
    assert repr(desk) == "<RemoteDesk of http://localhost:80/prefix>"
    desk.close()
    with pytest.raises(leasehold.ClientClosed):
        desk.ask(FindHolders(tenant="default", resource="door"))


def test_leases_of_remote_holders_are_bound_to_nothing_on_the_servers_machine(
    url: str, registrar: Registrar
) -> None:
    with leasehold.Client(RemoteDesk(url)) as leases, leases.acquire("door"):
        (status,) = registrar.ask(FindHolders(tenant="default", resource="door"))
        assert not status.lease.bound_to_boot

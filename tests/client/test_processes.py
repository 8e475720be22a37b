"""Real processes: forks, stops, ends, and races."""

import asyncio
import copy
import json
import os
import pickle
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import leasehold
from leasehold.engine.audit import audit
from leasehold.engine.clock import SystemClock
from leasehold.engine.registrar import Registrar
from leasehold.registry import FAMILIES
from leasehold.stores.sqlite import SqliteStore
from tests.client.processes import Python
from tests.client.worlds import SIGNAL_SECONDS

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'leases'}"


def in_a_fork(work: Callable[[], Any]) -> Any:
    """What a piece of work gives in a forked child; an exception of ours comes back as its code."""
    receive, send = os.pipe()
    process_id = os.fork()
    if process_id == 0:
        try:
            result = work()
        except leasehold.LeaseholdError as error:
            result = error.code
        except BaseException as error:
            result = repr(error)
        os.write(send, json.dumps(result).encode())
        os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        told = pipe.read()
    os.waitpid(process_id, 0)
    return json.loads(told)


def test_a_forked_child_holds_none_of_its_parents_leases(url: str) -> None:
    with leasehold.connect(url) as leases, leases.acquire("door") as lease:

        def try_everything() -> dict[str, Any]:
            codes: dict[str, Any] = {}
            uses: dict[str, Callable[[], object]] = {
                "ensure": lease.ensure,
                "renew": lease.renew,
                "detach": lease.detach,
                "acquire": lambda: leases.acquire("door"),
            }
            for name, use in uses.items():
                try:
                    use()
                except leasehold.LeaseholdError as error:
                    codes[name] = error.code
            (renewed,) = leases.renew_many([lease])
            assert isinstance(renewed, leasehold.WrongProcess)
            return codes | {"remaining": lease.remaining, "release": lease.release()}

        assert in_a_fork(try_everything) == {
            "ensure": "WRONG_PROCESS",
            "renew": "WRONG_PROCESS",
            "detach": "WRONG_PROCESS",
            "acquire": "HELD",
            "remaining": 0.0,
            "release": False,
        }
        lease.ensure()


def test_a_forked_child_is_another_holder_and_can_use_the_client(url: str) -> None:
    with leasehold.connect(url) as leases:
        leases.acquire("before the fork").release()

        def work() -> list[Any]:
            with leases.acquire("window", ttl=30) as lease:
                lease.renew()
                return [leases.holder, lease.token]

        name, token = in_a_fork(work)
        assert name != leases.holder
        assert leases.acquire("window").token > token


def test_the_end_of_a_block_in_a_forked_child_leaves_the_lease_to_its_parent(url: str) -> None:
    with leasehold.connect(url) as leases:
        lease = leases.acquire("door")
        block = lease.__enter__()

        assert in_a_fork(lambda: block.__exit__(None, None, None)) is None
        lease.ensure()
        assert lease.release() is True


def test_closing_the_client_in_a_forked_child_leaves_the_leases_to_its_parent(url: str) -> None:
    with leasehold.connect(url) as leases, leases.acquire("door") as lease:
        assert in_a_fork(leases.close) is None
        lease.renew()


def test_a_stable_name_is_the_same_holder_in_a_forked_child(url: str) -> None:
    with leasehold.connect(url, holder="agent-7") as leases, leases.acquire("door"):
        assert in_a_fork(lambda: leases.acquire("door")) == "ALREADY_HELD"


def test_an_asynchronous_client_can_be_used_in_a_forked_child(url: str) -> None:
    leases = asyncio.run(_connected(url))

    async def acquire(resource: str) -> str:
        async with leases.acquire(resource) as lease:
            return str(lease.holder)

    here = asyncio.run(acquire("one"))
    there = in_a_fork(lambda: asyncio.run(acquire("two")))

    assert there not in ("HELD", here)
    asyncio.run(leases.close())


async def _connected(url: str) -> leasehold.AsyncClient:
    return await leasehold.connect_async(url)


def test_a_store_in_memory_is_refused_in_a_forked_child() -> None:
    # Parent and child would each have their own, and both would hold the same lease.
    with leasehold.connect("memory:") as leases:
        leases.acquire("door").release()

        assert in_a_fork(lambda: leases.acquire("door")) == "STORE_UNUSABLE"
        assert in_a_fork(lambda: leases.inspect("door")) == "STORE_UNUSABLE"
        leases.acquire("door")


ENDS = """
import os, sys, leasehold
leases = leasehold.connect(sys.argv[1], holder="program")
leases.acquire("door", ttl=3600)
leases.acquire("window", ttl=3600, holder="another name")
kept = leases.acquire("detached", ttl=3600)
kept.detach()
if sys.argv[2] == "fork":
    child = os.fork()
    if child == 0:
        sys.exit(0)
    os.waitpid(child, 0)
    print("forked", flush=True)
    sys.stdin.readline()
if sys.argv[2] == "error":
    raise SystemExit(3)
"""


@pytest.mark.parametrize(("way", "code"), [("normal", 0), ("error", 3)])
def test_a_program_that_ends_without_closing_releases_its_leases(url: str, way: str, code: int) -> None:
    with Python(ENDS, url, way) as program:
        assert program.ends() == code

    with leasehold.connect(url) as leases:
        leases.acquire("door")
        leases.acquire("window")
        with pytest.raises(leasehold.Held):
            leases.acquire("detached")


def test_a_forked_child_that_ends_does_not_release_its_parents_leases(url: str) -> None:
    with Python(ENDS, url, "fork") as program:
        assert program.read_line() == "forked"
        with leasehold.connect(url) as leases:
            assert [status.lease.resource for status in leases.list().statuses] == [
                "door",
                "window",
                "detached",
            ]
        program.write_line("end")
        assert program.ends() == 0


STALLED_END = """
import sys, leasehold
leases = leasehold.connect(sys.argv[1], timeout=0.1)
leases.acquire("door", ttl=3600)
print("held", flush=True)
sys.stdin.readline()
"""


def test_a_program_that_ends_while_another_writes_does_not_wait_for_ever(url: str, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "leases", families=FAMILIES)
    with Python(STALLED_END, url) as program:
        assert program.read_line() == "held"
        with store.write():
            program.write_line("end")
            assert program.ends() == 0
    store.close()


STOPPED = """
import sys, leasehold
leases = leasehold.connect(sys.argv[1], holder="stopped")
lease = leases.acquire("door", ttl=float(sys.argv[2]))
print(lease.token, flush=True)
sys.stdin.readline()
for _ in range(2):
    try:
        lease.ensure()
        print("still trusted", flush=True)
    except leasehold.LeaseLost as error:
        print(error.code, flush=True)
print(bool(lease.lost), lease.release(), flush=True)
"""


def test_a_process_stopped_for_longer_than_its_lease_finds_out_before_it_acts(
    url: str, tmp_path: Path
) -> None:
    with leasehold.connect(url) as leases, Python(STOPPED, url, "0.5") as stopped:
        token = int(stopped.read_line())
        stopped.stop(tmp_path / "leases")
        # A lease that began no earlier, lasts longer and is not renewed: when it is over, so is theirs.
        until = leases.acquire("longer", ttl=0.6, max_renewals=0)
        assert until.lost.wait(SIGNAL_SECONDS)
        taken = leases.acquire("door")
        stopped.write_line("go on")
        stopped.send(signal.SIGCONT)

        assert stopped.read_line() in ("LEASE_EXPIRED", "LEASE_TERMINAL")
        assert stopped.read_line() in ("LEASE_EXPIRED", "LEASE_TERMINAL")
        assert stopped.read_line() == "True False"
        assert taken.token > token
        taken.ensure()


RACER = """
import sys, leasehold
leases = leasehold.connect(sys.argv[1], durability="fast")
print("ready", flush=True)
sys.stdin.readline()
lease = leases.try_acquire("door", ttl=3600)
print("lost" if lease is None else f"won {lease.token}", flush=True)
sys.stdin.readline()
"""


def test_of_any_number_of_racing_processes_one_wins(url: str, tmp_path: Path) -> None:
    racers = [Python(RACER, url) for _ in range(8)]
    try:
        for racer in racers:
            assert racer.read_line() == "ready"
        for racer in racers:
            racer.write_line("go")
        results = [racer.read_line().split()[0] for racer in racers]
    finally:
        for racer in racers:
            racer.__exit__(None, None, None)

    assert sorted(results) == ["lost"] * 7 + ["won"]
    store = SqliteStore(tmp_path / "leases", families=FAMILIES)
    assert audit(store).problems == []
    store.close()


class Later(SystemClock):
    """The machine's clock, an hour from now."""

    def tick_ns(self) -> int:
        return super().tick_ns() + 3_600_000_000_000


def test_a_holder_that_was_killed_is_followed_by_another_with_a_higher_token(
    url: str, tmp_path: Path
) -> None:
    with Python(STOPPED, url, "3600") as killed:
        token = int(killed.read_line())
        killed.send(signal.SIGKILL)
        assert killed.ends() == -signal.SIGKILL
    with leasehold.connect(url) as leases, pytest.raises(leasehold.Held) as held:
        leases.acquire("door")
    assert held.value.holder == "stopped"
    later = SqliteStore(tmp_path / "leases", clock=Later(), families=FAMILIES)
    with leasehold.Client(Registrar(later, timeout=SIGNAL_SECONDS)) as leases:
        assert leases.acquire("door").token > token


@pytest.mark.parametrize("send", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_client_is_not_copied_nor_sent_to_another_process(send: Callable[[Any], Any]) -> None:
    with leasehold.connect("memory:") as leases, pytest.raises(TypeError, match="connect there"):
        send(leases)


def test_a_lease_is_not_sent_to_another_process() -> None:
    with leasehold.connect("memory:") as leases, pytest.raises(TypeError, match="connect there"):
        pickle.dumps(leases.acquire("door"))

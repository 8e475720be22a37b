"""A network that is cut anywhere: whatever was granted is known to somebody, and granted once."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import leasehold
from leasehold.client.http import line
from leasehold.client.http.desk import RemoteDesk
from leasehold.engine.port import EntryQuery
from leasehold.engine.questions import ReadLedger
from leasehold.engine.registrar import Registrar
from tests.client.http.conftest import until_waiting
from tests.client.http.proxy import Proxy
from tests.client.server import desk_server
from tests.client.worlds import SIGNAL_SECONDS
from tests.lanes import some_of


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy(desk_server().port) as proxy:
        yield proxy


@pytest.fixture
def torn(url: str, proxy: Proxy) -> str:
    """The address of the desk at the other end of the proxy."""
    return f"http://127.0.0.1:{proxy.port}/{url.rpartition('/')[2]}"


def _events(registrar: Registrar, kind: str) -> Counter[str]:
    """How many events of a kind there are, by resource."""
    entries, counts = list[Any](), Counter[str]()
    while True:
        after = entries[-1].position if entries else 0
        entries = registrar.ask(ReadLedger(query=EntryQuery(after=after, limit=1_000)))
        if not entries:
            return counts
        counts.update(one.event.resource for one in entries if one.event.type == kind)


@pytest.mark.deep
@pytest.mark.parametrize("way", ["request", "reply"])
def test_cut_at_every_byte_a_claim_is_granted_once_and_given_back_once(
    torn: str, proxy: Proxy, registrar: Registrar, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "_PAUSE_SECONDS", 0.0005)
    with leasehold.Client(RemoteDesk(torn), holder="ann") as leases:

        def size_of(use: Callable[[], object]) -> int:
            before = proxy.passed[way]
            use()
            return proxy.passed[way] - before

        leases.acquire("first").release()  # The connection is there.
        held: list[leasehold.HeldLease] = []
        sizes = [
            size_of(lambda: held.append(leases.acquire("door-0000"))),
            size_of(lambda: held.pop().release()),
        ]
        assert min(sizes) > 200, "the proxy sees whole requests"
        tokens = []
        for place in some_of(range(max(sizes) + 1), 60):
            proxy.cut_after(way, place)
            lease = leases.acquire(f"door-{place + 1:04}")
            tokens.append(lease.token)
            proxy.cut_after(way, place)
            assert lease.release()

    assert sorted(set(tokens)) == tokens
    assert set(_events(registrar, "lease.issued").values()) == {1}
    assert _events(registrar, "lease.released") == _events(registrar, "lease.issued")


def test_a_holder_whose_network_is_gone_stops_before_the_next_one_begins(
    torn: str, url: str, proxy: Proxy
) -> None:
    lost = threading.Event()
    lost_at: list[float] = []

    def note(loss: leasehold.LeaseholdError) -> None:
        lost_at.append(time.clock_gettime(time.CLOCK_BOOTTIME))
        lost.set()

    holder = leasehold.Client(RemoteDesk(torn, timeout=1), holder="ann")
    with leasehold.Client(RemoteDesk(url), holder="bob") as next_one:
        lease = holder.acquire("door", ttl=1.5, on_lost=note)
        proxy.is_silent = True  # Nothing arrives any more, and nobody is told.
        with next_one.acquire("door", wait=SIGNAL_SECONDS) as won:
            granted_at = time.clock_gettime(time.CLOCK_BOOTTIME)
            assert lost.wait(SIGNAL_SECONDS)
            assert won.token > lease.token
    assert lost_at[0] < granted_at, "it stopped first"
    with pytest.raises(leasehold.LeaseLost):
        lease.ensure()
    began = time.monotonic()
    holder.close()
    assert time.monotonic() - began < 10, "closing gives up as well"


def test_a_network_that_comes_back_in_time_costs_nothing(torn: str, proxy: Proxy) -> None:
    with leasehold.Client(RemoteDesk(torn), holder="ann") as leases:
        lease = leases.acquire("door", ttl=1)
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            proxy.cut()
            assert not lease.lost.wait(0.05)
        lease.renew()


def test_a_waiter_whose_stream_was_cut_is_woken_by_the_next_one(
    torn: str, url: str, proxy: Proxy, registrar: Registrar
) -> None:
    with (
        leasehold.Client(RemoteDesk(url), holder="ann") as leases,
        leasehold.Client(RemoteDesk(torn), holder="bob") as waiting,
    ):
        lease = leases.acquire("door")
        won: list[leasehold.HeldLease] = []
        thread = threading.Thread(target=lambda: won.append(waiting.acquire("door", wait=SIGNAL_SECONDS)))
        thread.start()
        until_waiting(registrar, "door")
        proxy.cut()
        began = time.monotonic()
        lease.release()
        thread.join(SIGNAL_SECONDS)
        assert won
        assert time.monotonic() - began < 9, "before it would have asked by itself"

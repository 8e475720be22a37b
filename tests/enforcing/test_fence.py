import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from leasehold.certificates.errors import StaleToken
from leasehold.enforcing import Fence, SqliteFence
from leasehold.enforcing.fence import Admits, Seen
from leasehold.kernel.lease.model import Mode


@pytest.fixture(params=["memory", "sqlite"])
def fence(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Admits]:
    if request.param == "memory":
        yield Fence()
        return
    durable = SqliteFence(tmp_path / "fence.db")
    yield durable
    durable.close()


def test_a_token_passes_unless_a_higher_one_was_there_before(fence: Admits) -> None:
    assert fence.seen("door") == Seen(0, 0)
    for token in (5, 5, 7):
        fence.admit("door", token)
    with pytest.raises(StaleToken) as refused:
        fence.admit("door", 6)
    assert (refused.value.token, refused.value.resource) == (6, "door")
    assert fence.seen("door") == Seen(7, 7)
    fence.admit("door", 7)


def test_each_resource_has_a_fence_of_its_own(fence: Admits) -> None:
    fence.admit("door", 7)
    fence.admit("window", 5)
    assert (fence.seen("door").any, fence.seen("window").any) == (7, 5)


def test_sharers_do_not_shut_one_another_out(fence: Admits) -> None:
    fence.admit("door", 5, Mode.SHARED)
    fence.admit("door", 7, Mode.SHARED)
    fence.admit("door", 5, Mode.SHARED)
    assert fence.seen("door") == Seen(0, 7)


def test_an_exclusive_token_from_before_the_sharers_is_stale(fence: Admits) -> None:
    fence.admit("door", 7, Mode.SHARED)
    with pytest.raises(StaleToken):
        fence.admit("door", 6)
    fence.admit("door", 8)
    with pytest.raises(StaleToken):
        fence.admit("door", 7, Mode.SHARED)


def test_threads_that_race_never_take_the_fence_back(fence: Admits) -> None:
    tokens = range(1, 101)
    order: list[int] = []
    lock, start = threading.Lock(), threading.Barrier(4)

    def race(offset: int) -> None:
        start.wait()
        for token in tokens[offset::4]:
            try:
                fence.admit("door", token)
            except StaleToken:
                continue
            with lock:
                order.append(token)

    threads = [threading.Thread(target=race, args=(offset,)) for offset in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert fence.seen("door").any == max(order) == 100


def test_a_token_that_was_there_before_waits_for_no_writer(tmp_path: Path) -> None:
    fence = SqliteFence(tmp_path / "fence.db")
    fence.admit("door", 7)
    other = apsw.Connection(str(tmp_path / "fence.db"))
    other.execute("BEGIN IMMEDIATE")
    fence.admit("door", 7)
    with pytest.raises(StaleToken):
        fence.admit("door", 6)
    other.close()
    fence.close()


def test_another_process_that_overtakes_between_look_and_lock_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fence, other = SqliteFence(tmp_path / "fence.db"), SqliteFence(tmp_path / "fence.db")
    look = SqliteFence._look
    pending = [8]

    def look_and_be_overtaken(self: SqliteFence, resource: str) -> Seen:
        seen = look(self, resource)
        if self is fence and pending:
            other.admit(resource, pending.pop())
        return seen

    monkeypatch.setattr(SqliteFence, "_look", look_and_be_overtaken)
    with pytest.raises(StaleToken):
        fence.admit("door", 7)
    assert other.seen("door") == Seen(8, 8)
    for one in (fence, other):
        one.close()


def test_a_durable_fence_remembers_across_a_restart(tmp_path: Path) -> None:
    first = SqliteFence(tmp_path / "fence.db")
    first.admit("door", 7)
    first.close()
    second = SqliteFence(tmp_path / "fence.db")
    with pytest.raises(StaleToken):
        second.admit("door", 6)
    second.close()


def test_no_other_process_can_write_between_the_look_and_the_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fence = SqliteFence(tmp_path / "fence.db")
    other = apsw.Connection(str(tmp_path / "fence.db"))
    looks: list[str] = []

    def look(self: SqliteFence, resource: str) -> Seen:
        try:
            other.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            looks.append("nobody else can write")
        else:
            other.execute("ROLLBACK")
            looks.append("others can write")
        return Seen()

    monkeypatch.setattr(SqliteFence, "_look", look)
    fence.admit("door", 7)
    assert looks == ["others can write", "nobody else can write"]
    other.close()
    fence.close()


_RACER = """
import sys
from leasehold.certificates.errors import StaleToken
from leasehold.enforcing import SqliteFence

fence = SqliteFence(sys.argv[1])
last = 0
for token in range(int(sys.argv[2]), 400, 4):
    try:
        fence.admit("door", token)
    except StaleToken:
        continue
    seen = fence.seen("door").any
    assert seen >= max(token, last), (seen, token, last)
    last = seen
fence.close()
"""


def test_processes_that_race_on_one_file_never_take_the_fence_back(tmp_path: Path) -> None:
    path = str(tmp_path / "fence.db")
    racers = [subprocess.Popen([sys.executable, "-c", _RACER, path, str(offset)]) for offset in range(1, 5)]
    assert [racer.wait(60) for racer in racers] == [0, 0, 0, 0]
    fence = SqliteFence(path)
    assert fence.seen("door").any == 399
    fence.close()

"""The machine's clock, and ids in order of time."""

import os
import threading
import time
import uuid
from pathlib import Path

import pytest

from leasehold.engine import clock as clock_module
from leasehold.engine.clock import Ids, SystemClock, format_id, is_id

SECOND = 1_000_000_000
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def test_ticks_are_the_boot_clock_which_counts_sleep() -> None:
    offset_ns = clock_module._offset_ns(clock_module._inode(clock_module._NAMESPACE))
    before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    tick = SystemClock().tick_ns()
    after = time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    assert before <= tick + offset_ns <= after


def test_wall_time_is_for_people() -> None:
    before = time.time_ns()
    assert before <= SystemClock().wall_ns() <= time.time_ns()


def test_the_boot_has_an_id_that_every_process_reads_the_same() -> None:
    expected = Path("/proc/sys/kernel/random/boot_id").read_text().strip()

    assert SystemClock().boot_id == expected
    assert str(uuid.UUID(expected)) == expected


@pytest.mark.parametrize(
    ("offsets", "shift_ns"),
    [
        ("monotonic           0         0\nboottime            0         0\n", 0),
        ("monotonic           5         1\nboottime       864000       250\n", 864_000 * SECOND + 250),
        ("monotonic           5         1\nboottime         -100         7\n", -100 * SECOND + 7),
        ("1                   5         1\n7                   3         0\n", 3 * SECOND),
        ("monotonic           5         1\n", 0),
        ("", 0),
    ],
)
def test_what_a_time_namespace_adds_is_taken_out_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, offsets: str, shift_ns: int
) -> None:
    table = tmp_path / "timens_offsets"
    table.write_text(offsets)
    monkeypatch.setattr(clock_module, "_NAMESPACE", tmp_path)
    monkeypatch.setattr(clock_module, "_CHILDRENS_NAMESPACE", tmp_path)
    monkeypatch.setattr(clock_module, "_CHILDRENS_OFFSETS", table)
    monkeypatch.setattr(time, "clock_gettime_ns", lambda clock: 10**15 if clock == time.CLOCK_BOOTTIME else 0)

    assert SystemClock().tick_ns() == 10**15 - shift_ns


def test_a_wall_clock_that_is_set_changes_no_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SystemClock()
    before = clock.tick_ns()
    for set_to in (0, 4_000_000_000 * SECOND):
        monkeypatch.setattr(time, "time_ns", lambda wall_ns=set_to: wall_ns)
        assert before <= clock.tick_ns() <= SystemClock().tick_ns()


def test_a_kernel_without_time_namespaces_has_no_shift(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(clock_module, "_NAMESPACE", tmp_path / "missing")

    before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    assert before <= SystemClock().tick_ns() <= time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def test_an_id_is_a_uuid_of_version_7_with_the_time_in_front() -> None:
    before_ms = time.time_ns() // 1_000_000
    made = uuid.UUID(Ids().new())
    after_ms = time.time_ns() // 1_000_000

    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert before_ms <= made.int >> 80 <= after_ms


def test_every_bit_of_an_id_has_its_place() -> None:
    assert format_id(0, 0) == "00000000-0000-7000-8000-000000000000"
    assert format_id(2**60 - 1, 2**62 - 1) == "ffffffff-ffff-7fff-bfff-ffffffffffff"
    assert format_id(1, 1) == "00000000-0000-7001-8000-000000000001"


def test_ids_sort_in_the_order_in_which_they_were_made() -> None:
    ids = Ids()
    made = [ids.new() for _ in range(20_000)]

    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_ids_keep_their_order_when_the_wall_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = Ids()
    first = ids.new()
    monkeypatch.setattr(time, "time_ns", lambda: 0)

    assert ids.new() > first


def test_ids_keep_their_order_across_threads() -> None:
    ids = Ids()
    lock = threading.Lock()
    in_order: list[str] = []
    own: list[list[str]] = []

    def make() -> None:
        mine = []
        for _ in range(500):
            with lock:  # What one thread has made is there before another makes its next.
                in_order.append(ids.new())
            mine.append(ids.new())
        own.append(mine)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert in_order == sorted(in_order)
    assert all(mine == sorted(mine) for mine in own)
    assert len({*in_order, *(made for mine in own for made in mine)}) == 8 * 1_000


def test_a_forked_child_makes_other_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    # At the same moment: only what was drawn at random can tell parent and child apart.
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000 * SECOND)
    ids = Ids()
    ids.new()
    receive, send = os.pipe()
    process_id = os.fork()
    if process_id == 0:
        os.write(send, " ".join(ids.new() for _ in range(100)).encode())
        os._exit(0)
    os.waitpid(process_id, 0)
    childs = set(os.read(receive, 65_536).decode().split())
    os.close(receive)
    os.close(send)

    assert len(childs) == 100
    assert childs.isdisjoint(ids.new() for _ in range(100))


def test_an_id_is_told_from_what_people_write() -> None:
    assert is_id(Ids().new())
    assert not any(map(is_id, ("", "job-7", str(uuid.uuid4()), Ids().new().upper(), f"{Ids().new()} ")))

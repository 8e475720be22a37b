"""Bells: hints that wake waiters, lost without harm."""

import os
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.engine.bells import Bell, Bells, LocalBells, Ring, by_bell
from leasehold.stores.sqlite.bells import SocketBells


@pytest.fixture(params=["local", "socket", "long"])
def bells(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bells]:
    folder = tmp_path / ("long" * 30 if request.param == "long" else "short")
    folder.mkdir()
    store = a_store(folder)
    made: Bells = LocalBells() if request.param == "local" else SocketBells(store)
    yield made
    made.close()


def a_store(folder: Path) -> Path:
    """Make as much of a store as bells have to know of."""
    store = folder / "leases"
    store.mkdir()
    (store / "leases.db").touch(mode=0o600)
    return store


def taken(bells: Bells) -> Bell:
    bell = bells.take()
    assert bell is not None
    return bell


def test_a_ring_is_heard_by_the_one_it_is_for(bells: Bells) -> None:
    bell = taken(bells)
    first, second = bell.new_number(), bell.new_number()
    bells.ring([f"{bell.name}.{second}"])
    assert select.select([bell], [], [], 0)[0] == [bell]
    assert bell.heard() == {second: Ring.ASK}
    assert first != second
    assert bell.heard() == {}


def test_who_comes_next_is_told_just_that_unless_there_is_more_to_say(bells: Bells) -> None:
    bell = taken(bells)
    bells.ring([f"{bell.name}.1?", f"{bell.name}.2", f"{bell.name}.2?"])
    assert bell.heard() == {1: Ring.NEXT_IN_LINE, 2: Ring.ASK}


def test_a_bell_that_was_rung_too_often_may_have_been_rung_for_anybody(bells: Bells) -> None:
    bell = taken(bells)
    for number in range(1, 100):
        bells.ring([f"{bell.name}.{number}"])
    assert bell.heard() is None


def test_what_is_no_address_is_not_rung(bells: Bells) -> None:
    bells.ring(["", "nobody", "../../etc.1", f"{'0' * 16}.1", f"{'0' * 16}/../x.1"])
    assert by_bell(["../../etc.1", f"{'a' * 16}.7"]) == {"a" * 16: b"7"}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return a_store(tmp_path)


def names(store: Path) -> list[str]:
    return os.listdir(f"{store}/bells")


def test_a_bell_that_was_put_back_is_taken_again_and_closing_removes_it(store: Path) -> None:
    bells = SocketBells(store)
    bell = taken(bells)
    bells.give(bell)
    assert bells.take() is bell
    bells.close()
    assert names(store) == []
    bells.ring([f"{bell.name}.1"])


def test_a_ring_from_another_opening_of_the_store_is_heard(store: Path) -> None:
    mine, theirs = SocketBells(store), SocketBells(store)
    bell = taken(mine)
    theirs.ring([f"{bell.name}.1"])
    assert bell.heard() == {1: Ring.ASK}
    mine.close()
    theirs.close()


def test_whoever_rings_at_a_dead_process_removes_its_socket(store: Path) -> None:
    bells = SocketBells(store)
    bell = taken(bells)
    bell.close()  # as a process does that is killed: the file stays
    assert names(store) == [bell.name]
    others = SocketBells(store)
    others.ring([f"{bell.name}.1"])
    assert names(store) == []
    others.close()
    bells.close()


def test_whoever_opens_a_bell_removes_the_old_sockets_of_the_dead_and_no_others(store: Path) -> None:
    dead, alive = SocketBells(store), SocketBells(store)
    new, old, living = taken(dead), taken(dead), taken(alive)
    new.close()
    old.close()
    for bell in (old, living):
        os.utime(f"{store}/bells/{bell.name}", (0, 0))
    bells = SocketBells(store)
    taken(bells)
    assert old.name not in names(store)
    assert {new.name, living.name} <= set(names(store))
    for one in (bells, dead, alive):
        one.close()


@pytest.mark.parametrize(("file", "folder"), [(0o600, 0o700), (0o660, 0o2770)])
def test_who_may_use_the_store_may_ring_and_nobody_else(store: Path, file: int, folder: int) -> None:
    (store / "leases.db").chmod(file)
    bells = SocketBells(store)
    bell = taken(bells)
    assert os.stat(f"{store}/bells").st_mode & 0o7777 == folder
    assert os.stat(f"{store}/bells/{bell.name}").st_mode & 0o7777 == file
    bells.close()


def test_where_no_socket_can_be_made_there_is_no_bell(store: Path) -> None:
    Path(f"{store}/bells").write_text("in the way")
    bells = SocketBells(store)
    assert bells.take() is None
    bells.ring([f"{'0' * 16}.1"])
    bells.close()


def test_a_forked_child_has_no_part_in_its_parents_bells(store: Path) -> None:
    bells = SocketBells(store)
    bell = taken(bells)
    bells.after_fork_in_child()
    bells.give(bell)
    assert bells.take() is not bell
    assert bell.name in names(store)
    bells.close()


@pytest.mark.parametrize("datagram", [b"", b"x", b"\xff\xfe", b"9" * 30, b"?", b" ? 1x"])
def test_whatever_is_sent_to_a_bell_does_no_harm(store: Path, datagram: bytes) -> None:
    bells = SocketBells(store)
    bell = taken(bells)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(datagram, f"{store}/bells/{bell.name}")
    heard = bell.heard()
    assert heard is not None
    assert 1 not in heard
    bells.close()

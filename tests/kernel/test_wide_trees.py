"""Directories with very many leases below them: not all are read to say that one is in the way."""

from collections.abc import Iterable

import pytest

from leasehold.kernel.events import Event
from leasehold.kernel.lease import Mode
from leasehold.kernel.records import Keys, Records
from leasehold.kernel.refusals import RefusalCode
from leasehold.kernel.replay import State
from leasehold.stores.memory import queues as memory_queues
from tests.kernel import registrar as desk
from tests.kernel.registrar import SECOND, Registrar

FILES = ("/a/1", "/a/2", "/a/3", "/a/4")


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> list[Keys]:
    """Let a store read two leases of a kind at first; collect the questions that asked for all of them."""
    asked: list[Keys] = []
    find = desk.found

    def found(state: State, ledger: Iterable[Event], keys: Keys) -> Records:
        if keys.whole_trees:
            asked.append(keys)
        return find(state, ledger, keys)

    monkeypatch.setattr(memory_queues, "BELOW_PAGE", 2)
    monkeypatch.setattr(desk, "found", found)
    return asked


def crowded(mode: Mode = Mode.EXCLUSIVE, ttl_ns: int = 60 * SECOND) -> Registrar:
    registrar = Registrar()
    for number, path in enumerate(FILES):
        registrar.grant(f"holder-{number}", path, mode=mode, ttl_ns=ttl_ns)
    return registrar


def test_a_directory_is_refused_without_reading_all_that_is_in_it(whole: list[Keys]) -> None:
    registrar = crowded()
    refusal = registrar.deny("ann", "/a")

    assert (refusal.code, refusal.holder) == (RefusalCode.HELD, "holder-0")
    assert whole == []


def test_sharers_below_are_in_no_sharers_way_and_all_are_looked_at(whole: list[Keys]) -> None:
    crowded(Mode.SHARED).grant("ann", "/a", mode=Mode.SHARED)

    assert whole


def test_what_has_expired_below_is_in_nobodys_way(whole: list[Keys]) -> None:
    registrar = crowded(ttl_ns=SECOND)
    registrar.advance(2)
    registrar.grant("ann", "/a")

    assert whole


def test_who_holds_the_directory_is_told_so(whole: list[Keys]) -> None:
    registrar = crowded(Mode.SHARED)
    registrar.grant("ann", "/a", mode=Mode.SHARED)

    assert registrar.deny("ann", "/a").code is RefusalCode.ALREADY_HELD


def test_who_waits_for_a_directory_has_it_when_the_last_below_is_gone(whole: list[Keys]) -> None:
    registrar = crowded()
    files = list(registrar.state.leases.values())
    registrar.join("ann", "/a")
    for lease in files:
        assert registrar.holders("/a") == []
        registrar.release(lease)

    assert registrar.holders("/a") == ["ann"]


def test_a_release_below_a_directory_that_is_waited_for_does_not_read_the_others(whole: list[Keys]) -> None:
    registrar = crowded()
    files = list(registrar.state.leases.values())
    registrar.join("ann", "/a")
    whole.clear()
    registrar.release(files[-1])

    assert whole == []

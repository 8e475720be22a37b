"""Interrupted looks: Ctrl-C at any moment of what only reads leaves nothing open, and nobody stuck."""

import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

import leasehold
from leasehold.engine.audit import audit
from leasehold.engine.job_runner import JobRunner
from leasehold.engine.registrar import Registrar
from leasehold.registry import CARRIERS, REPLIES, all_families
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from tests.client.test_interrupts import CtrlC
from tests.client.worlds import SIGNAL_SECONDS
from tests.engine.doubles import registrar_of

PROMPT = 5.0
"""How many seconds closing may take on a busy machine; it waits for thirty if somebody seems to be stuck."""


@pytest.fixture(params=["memory", "sqlite"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[leasehold.Client]:
    families = all_families()
    store = (
        MemoryStore(families=families)
        if request.param == "memory"
        else SqliteStore(tmp_path / "x.db", durability="fast", families=families)
    )
    registrar = Registrar(store, timeout=SIGNAL_SECONDS, also=REPLIES, jobs=JobRunner(store, CARRIERS))
    leases = leasehold.Client(registrar, holder="ann")
    leases.acquire("door", ttl=600)
    yield leases
    began = time.monotonic()
    leases.close()
    assert time.monotonic() - began < PROMPT, "closing waited for somebody who is not there any more"


def first_of(client: leasehold.Client) -> object:
    watching = client.watch(after=0)
    assert isinstance(watching, Generator)
    try:
        return next(watching)
    finally:
        watching.close()  # By itself, the interpreter would swallow a Ctrl-C that comes while it does this.


READS: dict[str, Callable[[leasehold.Client], object]] = {
    "get": lambda client: client.get("door"),
    "inspect": lambda client: client.inspect("door"),
    "certificate": lambda client: client.certificate(client.inspect("door")[0].lease.lease_id),
    "certificate_keys": lambda client: client.certificate_keys(),
    "children": lambda client: client.children("door"),
    "queue": lambda client: client.queue("door"),
    "history": lambda client: client.history(),
    "history_begins": lambda client: client.history_begins(),
    "held_at": lambda client: client.held_at(time.time()),
    "position": lambda client: client.position(),
    "head": lambda client: client.head(),
    "list": lambda client: client.list(),
    "keys": lambda client: client.keys(),
    "watch": first_of,
    "wait": lambda client: client._session.desk.wait(client.position(), 0.003),
    "sweep": lambda client: client.sweep(),
}


@pytest.mark.parametrize("name", READS)
def test_ctrl_c_at_any_moment_of_a_look_leaves_nothing_open(client: leasehold.Client, name: str) -> None:
    read = READS[name]
    read(client)
    store = registrar_of(client).store
    for nth in range(1, 5_000):
        ctrl_c = CtrlC(nth)
        if not ctrl_c.interrupts(lambda: read(client)):
            break
        assert client.inspect("door")[0].lease.holder == "ann", ctrl_c.moment
        if isinstance(store, SqliteStore):
            assert store._file is not None
            assert not store._file.reading.locked(), ctrl_c.moment
            assert not store._file.reader.in_transaction, ctrl_c.moment
        else:
            assert isinstance(store, MemoryStore)
            assert store._tables.readers == 0, ctrl_c.moment
        assert not store._grown.listening, ctrl_c.moment
    assert nth > 10
    client.acquire("window").release()
    assert audit(store).problems == []


def test_ctrl_c_at_any_moment_of_a_job_leaves_none_behind(client: leasehold.Client) -> None:
    """What the job itself does is done by a thread, which nobody interrupts."""
    jobs = registrar_of(client)._jobs
    for nth in range(1, 5_000):
        ctrl_c = CtrlC(nth)
        try:
            if not ctrl_c.interrupts(client.verify):
                break
        except RuntimeError as error:
            # While a thread is started the interpreter itself may lose its way: "release unlocked lock".
            if not isinstance(error.__context__, KeyboardInterrupt):
                raise
        assert jobs._news.wait_for(jobs._is_idle, SIGNAL_SECONDS), ctrl_c.moment
    assert nth > 50
    assert client.verify().problems == []

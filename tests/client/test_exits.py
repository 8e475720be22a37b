"""Processes that end by themselves, in whichever way, give back their leases and their places in queues.

All are real processes. Where the moment matters, many are tried: `CtrlC` raises KeyboardInterrupt there.
"""

import signal
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import leasehold
from tests.client.processes import Python
from tests.lanes import by_length

BEGINNING = """
import signal, sys, threading, time
import leasehold
from tests.client.test_interrupts import CtrlC
path = sys.argv[1]
"""


@pytest.fixture
def door(tmp_path: Path) -> Iterator[leasehold.Client]:
    """A store in which somebody holds the door."""
    with leasehold.connect(tmp_path / "leases", holder="ann") as leases, leases.acquire("door"):
        yield leases


def run(leases: leasehold.Client, program: str, *arguments: str) -> Python:
    path = str(leases.url).removeprefix("sqlite:///")
    return Python(BEGINNING + textwrap.dedent(program), path, *arguments)


def left_by(leases: leasehold.Client, holder: str) -> list[str]:
    """What a holder still has, or waits for."""
    statuses = leases.list(holder=holder, states=["pending", "active"]).statuses
    return [f"{one.lease.resource}: {one.lease.state}" for one in statuses]


def wait_until_somebody_waits(leases: leasehold.Client) -> None:
    """The test's own time limit is ours."""
    entries = leases.watch(after=0, resource="door")
    next(entry for entry in entries if entry.event.type == "lease.queued")


WAITERS = {
    "caught": """
        leases = leasehold.connect(path, holder="bob")
        try:
            leases.acquire("door", wait=True)
        except KeyboardInterrupt:
            pass
    """,
    "not caught": """
        leases = leasehold.connect(path, holder="bob")
        leases.acquire("door", wait=True)
    """,
    "exits": """
        signal.signal(signal.SIGINT, lambda number, frame: sys.exit(7))
        leases = leasehold.connect(path, holder="bob")
        leases.acquire("door", wait=True)
    """,
    "several": """
        leases = leasehold.connect(path, holder="bob")
        try:
            leases.acquire_all(["door", "window"], wait=True)
        except KeyboardInterrupt:
            pass
    """,
    "in a thread": """
        leases = leasehold.connect(path, holder="bob")
        waiting = threading.Thread(target=lambda: leases.acquire("door", wait=True), daemon=True)
        waiting.start()
        try:
            waiting.join()
        except KeyboardInterrupt:
            pass
    """,
    "in a task": """
        import asyncio
        async def wait():
            leases = await leasehold.connect_async(path, holder="bob")
            await leases.acquire("door", wait=True)
        asyncio.run(wait())
    """,
}


@pytest.mark.parametrize("program", WAITERS)
def test_a_waiter_that_is_told_to_end_leaves_its_place(door: leasehold.Client, program: str) -> None:
    with run(door, WAITERS[program]) as process:
        wait_until_somebody_waits(door)
        process.send(signal.SIGINT)
        process.ends()
    assert left_by(door, "bob") == []


def test_a_waiter_that_ends_while_another_process_writes_leaves_its_place(door: leasehold.Client) -> None:
    store = door._session.desk.store  # type: ignore[attr-defined]
    with run(door, WAITERS["caught"]) as process:
        wait_until_somebody_waits(door)
        with store.write():  # It cannot leave at once.
            process.send(signal.SIGINT)
            with pytest.raises(Exception, match="timed out"):
                process.process.wait(0.3)
        process.ends()
    assert left_by(door, "bob") == []


UNDER_WAY = """
import atexit, sys, threading
is_over, late = threading.Event(), None

def let_go_on():
    if late is not None:
        is_over.set()
        late.join()

atexit.register(let_go_on)  # Before leasehold does: so it is called after it.
import leasehold
from leasehold.engine.registrar import Registrar

path, what, moment = sys.argv[1:]
leases = leasehold.connect(path, holder="bob")
window = leases.acquire("window", ttl=600)
works = {
    "wait": lambda: leases.acquire("door", wait=True),
    "acquire": lambda: leases.acquire("roof", ttl=600),
    "release": window.release,
}
is_there, call = threading.Event(), Registrar.call

def dawdle(registrar, command):
    if threading.current_thread() is not thread:
        return call(registrar, command)
    outcome = call(registrar, command) if moment == "answered" else None
    is_there.set()
    is_over.wait()
    return call(registrar, command) if outcome is None else outcome

def work():
    try:
        works[what]()
    except leasehold.LeaseholdError:
        pass

Registrar.call = dawdle
thread = threading.Thread(target=work, daemon=True)
thread.start()
is_there.wait()
if moment == "asking" and what != "release":
    late = thread  # What it asks for, it asks for too late.
"""


@pytest.mark.parametrize("moment", ["asking", "answered"])
@pytest.mark.parametrize("what", ["wait", "acquire", "release"])
def test_what_a_thread_is_in_the_middle_of_when_its_process_ends_is_not_left_behind(
    door: leasehold.Client, what: str, moment: str
) -> None:
    path = str(door.url).removeprefix("sqlite:///")
    with Python(UNDER_WAY, path, what, moment) as process:
        assert process.ends() == 0
    assert left_by(door, "bob") == []


EVERY_MOMENT = """
    import faulthandler, os
    from tests.client.worlds import SIGNAL_SECONDS
    SECONDS = SIGNAL_SECONDS / 2

    def wait():
        try:
            leases.acquire("door", wait=0.001)
        except leasehold.WaitTimeout:
            pass

    moments, here = [], {}

    def note(frame, event, argument):
        if CtrlC.is_moment(frame, event):
            moments.append(frame)
            if "/leasehold/client/" in frame.f_code.co_filename:
                here.setdefault((frame.f_code, frame.f_lineno, event), len(moments))

    for profile in (None, note):  # What is imported by the first wait is no part of the second.
        with leasehold.connect(path, holder="warm up", durability="fast") as leases:
            sys.setprofile(profile)
            wait()
            sys.setprofile(None)
    for nth in sorted({*here.values(), *range(1, len(moments), 101)})[:: int(sys.argv[2])]:
        child = os.fork()
        if child == 0:
            faulthandler.dump_traceback_later(SECONDS, exit=True)  # So that a test which fails tells where.
            leases = leasehold.connect(path, holder="bob", durability="fast")
            ctrl_c = CtrlC(nth)
            try:
                interrupted = ctrl_c.interrupts(wait)
            except AssertionError:
                interrupted = True  # The interpreter swallows one that comes while it closes a generator.
            sys.exit(0 if interrupted else 3)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(nth, code, flush=True)
        sys.stdin.readline()
    print("all", len(here), flush=True)
"""


@pytest.mark.deep
def test_a_waiter_that_is_interrupted_at_any_moment_and_ends_leaves_its_place(door: leasehold.Client) -> None:
    """Every moment in the client's own code, once, and some of those in what it calls."""
    codes = []
    step = by_length(1, 5)
    with run(door, EVERY_MOMENT, str(step)) as process:
        while True:
            nth, code = process.read_line().split()
            if nth == "all":
                break
            assert left_by(door, "bob") == [], f"left behind at moment {nth}"
            codes.append(code)
            process.write_line("go on")
        assert process.ends() == 0
    assert set(codes) <= {"0", "3"}
    assert codes.count("0") * step > int(code) > 30


CHILD = """
import multiprocessing, sys, threading
import leasehold

def hold(path):
    leases = leasehold.connect(path, holder="bob")
    leases.acquire("window", ttl=600)

def hold_and_fail(path):
    hold(path)
    raise SystemExit(5)

def wait_in_a_thread(path):
    leases = leasehold.connect(path, holder="bob")
    threading.Thread(target=lambda: leases.acquire("door", wait=True), daemon=True).start()
    next(one for one in leases.watch(after=0) if one.event.type == "lease.queued")

def hold_in_a_thread(path):
    '''A thread that goes on after the main one still holds its lease, and gives it back at its end.'''
    leases = leasehold.connect(path, holder="bob")
    def work():
        main.join()
        lease.ensure()
        with open(path + ".held", "w") as said:
            said.write(str(len(leases.inspect("window"))))
    lease = leases.acquire("window", ttl=600)
    main = threading.Thread(target=threading.Event().wait, args=(0.2,))
    main.start()
    threading.Thread(target=work).start()

def inherit(path):
    '''The client was made by the parent, before the fork.'''
    inherited.acquire("window", ttl=600, holder="bob")

def have_a_child(path):
    child = multiprocessing.get_context("fork").Process(target=inherit, args=(path,))
    child.start()
    child.join()

if __name__ == "__main__":
    path, method, work = sys.argv[1:]
    inherited = leasehold.connect(path)
    child = multiprocessing.get_context(method).Process(target=globals()[work], args=(path,))
    child.start()
    child.join()
    print("ended", child.exitcode, flush=True)
    sys.stdin.readline()
"""

WORKS = {"hold": 0, "hold_and_fail": 5, "wait_in_a_thread": 0, "hold_in_a_thread": 0}


@pytest.mark.parametrize(
    ("method", "work", "code"),
    [
        *((method, work, code) for method in ("fork", "forkserver", "spawn") for work, code in WORKS.items()),
        ("fork", "inherit", 0),
        ("fork", "have_a_child", 0),
    ],
)
def test_a_child_of_multiprocessing_gives_back_what_it_has(
    door: leasehold.Client, tmp_path: Path, method: str, work: str, code: int
) -> None:
    program = tmp_path / "program.py"
    program.write_text(CHILD)
    path = str(door.url).removeprefix("sqlite:///")
    with Python(program, path, method, work) as process:
        assert process.read_line() == f"ended {code}"
        assert left_by(door, "bob") == []
    if work == "hold_in_a_thread":
        assert (tmp_path / "leases.held").read_text() == "1"

"""A process that forks: both sides go on, each with locks of its own, and neither harms the other."""

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from leasehold import StoreUnusable, WrongProcess
from leasehold.stores.sqlite import store as store_module
from leasehold.stores.sqlite.write_queue import turn
from tests.stores.sqlite.support import Other, Pipe, client_of, open_store, others, problems_of, tokens_of
from tests.stores.sqlite.test_locks import posix_locks_on


def run(worker: Callable[..., None], path: Path) -> object:
    """Run a worker that forks in a process of its own; return what it says at the end."""
    with others(Other(worker, path)) as (other,):
        said: object = other.hear()
        assert other.join() == 0
    assert problems_of(path) == []
    return said


def in_child(action: Callable[[], object]) -> int:
    """Fork, run something in the child, and return its exit code."""
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        except BaseException as error:
            print(f"in the child: {error!r}", file=sys.stderr)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_child_is_another_holder_with_locks_of_its_own(tmp_path: Path) -> None:
    assert run(fork_and_compete, tmp_path / "leases") == "held"


def fork_and_compete(pipe: Pipe, path: Path) -> None:
    with client_of(path, holder="parent") as client:
        lease = client.acquire("resource", ttl=3600)

        def compete() -> None:
            with pytest.raises(WrongProcess):
                lease.ensure()
            assert client.try_acquire("resource", holder="child") is None
            own = client.acquire("another", holder="child")
            assert own.token > lease.token
            locked = {name for name, *_ in posix_locks_on(path, os.getpid())}
            assert locked == {"leases.db", "leases.db-shm"}, "it goes without locks of its own"
            assert client.release(own)

        assert in_child(compete) == 0
        lease.ensure()
        lease.renew()
    pipe.send("held")


def test_a_child_that_outlives_its_parent_keeps_the_log_that_it_writes_to(tmp_path: Path) -> None:
    # Without locks of its own it would lose it: to whoever opens the store next, nobody seems to use it.
    path = tmp_path / "leases"
    with others(Other(fork_and_leave, path)) as (parent,):
        child: int = parent.hear()
        parent.tell("leave")
        assert parent.hear() == "left"
        with client_of(path, holder="newcomer") as client:
            newest = client.acquire("of the newcomer", ttl=3600).detach().token
        # The newcomer has closed the store, as the last one would.
        parent.tell("go on")
        assert parent.hear() > newest
        os.kill(child, 0)
        parent.tell("end")
        assert parent.join() == 0
    assert newest in tokens_of(path)
    assert problems_of(path) == []


def fork_and_leave(pipe: Pipe, path: Path) -> None:
    """Let the parent close the store and wait, while the child goes on in its place."""
    told, tell = os.pipe()
    with client_of(path, holder="parent") as client:
        client.acquire("resource", ttl=3600)
        child = os.fork()
        if child == 0:
            client.acquire("of the child", holder="child", ttl=3600).detach()
            pipe.send(os.getpid())
            assert pipe.recv() == "leave"
            os.write(tell, b".")
            assert pipe.recv() == "go on"
            pipe.send(client.acquire("of the child as well", holder="child").token)
            assert pipe.recv() == "end"
            os._exit(0)
        os.read(told, 1)
    pipe.send("left")
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def test_the_end_of_a_child_leaves_the_parents_log_and_locks_alone(tmp_path: Path) -> None:
    assert run(fork_and_end, tmp_path / "leases") == "held"


def fork_and_end(pipe: Pipe, path: Path) -> None:
    with client_of(path, holder="parent") as client:
        lease = client.acquire("resource", ttl=3600)
        log = path / "leases.db-wal"

        def use_and_close() -> None:
            client.acquire("another", holder="child")
            client.close()

        def use_and_leave_open() -> None:
            client.acquire("another", holder="child").detach()

        for end in (use_and_close, use_and_leave_open, lambda: None, lambda: os.kill(os.getpid(), 9)):
            told, tell = os.pipe()
            child = os.fork()
            if child == 0:
                os.read(told, 1)
                end()
                sys.exit(0)  # which tears down everything that Python has inherited
            client.renew(lease)
            inode, locks = log.stat().st_ino, posix_locks_on(path, os.getpid())
            os.write(tell, b".")
            os.waitpid(child, 0)
            assert log.stat().st_ino == inode
            assert posix_locks_on(path, os.getpid()) == locks
            client.renew(lease)
    pipe.send("held")


def test_a_fork_waits_for_a_write_transaction_of_another_thread(tmp_path: Path) -> None:
    assert run(fork_during_a_transaction, tmp_path / "leases") == "held"


def fork_during_a_transaction(pipe: Pipe, path: Path) -> None:
    with client_of(path, holder="parent") as client:
        lease = client.acquire("resource", ttl=3600)
        store = open_store(path)
        inside, ended, main = threading.Event(), list[str](), threading.get_ident()

        def write() -> None:
            with store.write() as transaction:
                assert transaction.authority is not None
                inside.set()
                # Until the fork has begun and waits for us; or is over, and the child finds us in here.
                while function_of(main) not in ("retire", "in_child"):
                    os.sched_yield()
                ended.append("transaction")

        thread = threading.Thread(target=write)
        thread.start()
        assert inside.wait(60)

        def use() -> None:
            assert ended == ["transaction"]
            assert client.try_acquire("resource", holder="child") is None
            client.acquire("another", holder="child")

        assert in_child(use) == 0
        thread.join()
        store.close()
        lease.renew()
    pipe.send("held")


def function_of(thread: int) -> str:
    """Return the name of the function that a thread is in."""
    return sys._current_frames()[thread].f_code.co_name


def test_threads_of_the_parent_go_on_while_it_forks_again_and_again(tmp_path: Path) -> None:
    assert run(fork_while_busy, tmp_path / "leases") == 20


def fork_while_busy(pipe: Pipe, path: Path) -> None:
    with client_of(path, holder="parent") as client:
        stop, done = threading.Event(), threading.Event()
        failures: list[BaseException] = []

        def work(number: int) -> None:
            try:
                while not stop.is_set():
                    client.acquire(f"resource-{number}", ttl=3600, holder=f"thread-{number}").release()
                    client.list()
                    done.set()
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        good = 0
        for number in range(20):
            done.clear()
            good += in_child(lambda: client.acquire(f"child-{number}", holder="child")) == 0  # noqa: B023
            assert done.wait(60)
        stop.set()
        for thread in threads:
            thread.join()
        assert failures == []
    pipe.send(good)


def test_a_child_that_was_forked_in_mid_transaction_is_refused_the_store_for_ever(tmp_path: Path) -> None:
    assert run(fork_in_mid_transaction, tmp_path / "leases") == "held"


def fork_in_mid_transaction(pipe: Pipe, path: Path) -> None:
    store_module._FORK_PATIENCE_SECONDS = 0.05
    with client_of(path, holder="parent") as client:
        lease = client.acquire("resource", ttl=3600)
        store = open_store(path)
        with store.write():

            def use() -> None:
                for action in (lambda: store.snapshot().__enter__(), lambda: open_store(path)):
                    with pytest.raises(StoreUnusable, match="use it from a new process"):
                        action()

            assert in_child(use) == 0
        store.close()
        lease.renew()
    pipe.send("held")


def test_a_child_can_be_forked_while_its_parent_waits_for_its_turn(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    open_store(path).close()
    with others(Other(fork_in_the_queue, path)) as (other,):
        assert other.hear() == "connected"
        store = open_store(path)
        with store.write():
            other.tell("go")
            # It forks although somebody else has the turn, and both sides of it get theirs later.
            assert other.hear() == "forked"
        assert {other.hear(), other.hear()} == {"child", "parent"}
        assert other.join() == 0
        store.close()
    assert len(tokens_of(path)) == 2
    assert problems_of(path) == []


def fork_in_the_queue(pipe: Pipe, path: Path) -> None:
    with client_of(path, holder="parent") as client:
        pipe.send("connected")
        assert pipe.recv() == "go"
        tokens: list[int] = []
        thread = threading.Thread(target=lambda: tokens.append(client.acquire("resource").detach().token))
        thread.start()
        while not waits_for_a_lock(os.getpid()):
            os.sched_yield()
        child = os.fork()
        if child == 0:
            pipe.send("forked")
            client.acquire("another", holder="child").detach()
            pipe.send("child")
            os._exit(0)
        thread.join()
        assert os.waitpid(child, 0)[1] == 0
        assert len(tokens) == 1
        pipe.send("parent")


def test_a_child_does_not_keep_the_turn_of_a_parent_that_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    with others(Other(fork_and_take_the_turn, path)) as (parent,):
        child: int = parent.hear()
        assert parent.hear() == "inside"
        parent.kill()
        os.kill(child, 0)
        with turn(path, patience_seconds=5):
            assert path.exists()


def fork_and_take_the_turn(pipe: Pipe, path: Path) -> None:
    store = open_store(path)
    with store.write():
        pass  # so that there is a place in the queue to be inherited
    child = os.fork()
    if child == 0:
        pipe.poll(None)  # until the test is over
        os._exit(0)
    pipe.send(child)
    with store.write():
        pipe.send("inside")
        threading.Event().wait()


def test_a_child_that_was_forked_during_a_turn_does_not_keep_it_when_it_is_over(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    with others(Other(fork_in_a_turn, path)) as (parent,):
        child: int = parent.hear()
        assert parent.hear() == "over"
        os.kill(child, 0)
        with turn(path, patience_seconds=5):
            assert path.exists()


def fork_in_a_turn(pipe: Pipe, path: Path) -> None:
    open_store(path).close()
    with turn(path):
        child = os.fork()
        if child == 0:
            pipe.poll(None)  # until the test is over
            os._exit(0)
        pipe.send(child)
    pipe.send("over")
    os.waitpid(child, 0)


def waits_for_a_lock(process_id: int) -> bool:
    return any(
        words[1] == "->" and int(words[5]) == process_id
        for words in map(str.split, Path("/proc/locks").read_text().splitlines())
    )


def test_sqlite_itself_would_let_a_child_go_without_locks(tmp_path: Path) -> None:
    # Why all this: the day that this fails, a connection may stay open across a fork.
    path = tmp_path / "plain"
    with others(Other(fork_with_an_open_connection, path)) as (other,):
        assert "plain.db" not in other.hear()
        assert other.join() == 0


def fork_with_an_open_connection(pipe: Pipe, path: Path) -> None:
    path.mkdir()
    parent = apsw.Connection(str(path / "plain.db"))
    parent.pragma("journal_mode", "wal")
    parent.execute("CREATE TABLE anything (at_all)")
    child = os.fork()
    if child == 0:
        connection = apsw.Connection(str(path / "plain.db"))
        connection.execute("BEGIN IMMEDIATE; INSERT INTO anything VALUES (1)")
        pipe.send({name for name, *_ in posix_locks_on(path, os.getpid())})
        os._exit(0)
    os.waitpid(child, 0)

"""Who writes next: whoever has waited; and what happens when a writer stops."""

import os
import signal
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from leasehold import StoreBusy
from leasehold.engine.port import WouldBlock
from leasehold.stores.sqlite.write_queue import WriteQueue, in_the_way, turn, writer_of
from tests.engine.doubles import registrar_of
from tests.stores.sqlite.support import Other, Pipe, client_of, open_store, others, problems_of, tokens_of

COMMITS_SECONDS = 2.0
WRITERS = 4


def test_who_has_written_gives_way_to_who_waits(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    open_store(path).close()
    with closing(WriteQueue(path)) as queue, others(Other(take_turns, path)) as (other,):
        queue.enter(blocking=True)
        for number in range(50):
            other.tell("queue up")
            wait_until(lambda: waits_in(path, other.pid))
            queue.leave()
            queue.enter(blocking=True)  # at once, and yet after the other one
            assert other.hear() == number, "the one who waited was overtaken"
        other.tell("end")
        queue.leave()
        assert other.join() == 0


def take_turns(pipe: Pipe, path: Path) -> None:
    with closing(WriteQueue(path)) as queue:
        number = 0
        while pipe.recv() != "end":
            queue.enter(blocking=True)
            pipe.send(number)
            queue.leave()
            number += 1


def test_who_does_not_want_to_wait_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    open_store(path).close()
    with closing(WriteQueue(path)) as first, closing(WriteQueue(path)) as second:
        first.enter(blocking=False)
        with pytest.raises(WouldBlock):
            second.enter(blocking=False)
        first.leave()
        second.enter(blocking=False)
        second.leave()


def test_who_gave_up_waiting_does_not_take_the_turn_when_it_comes(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    open_store(path).close()
    with closing(WriteQueue(path)) as first, closing(WriteQueue(path)) as third:
        first.enter(blocking=True)
        with (
            pytest.raises(StoreBusy, match=f"process {os.getpid()} has kept the write lock"),
            turn(path, 0.05),
        ):
            pass
        first.leave()
        third.enter(blocking=True)
        third.leave()
        # The thread that waited has let go of it as well.
        with turn(path):
            assert writer_of(path) == os.getpid()
        wait_until(lambda: writer_of(path) is None)


def test_a_store_knows_who_is_writing(tmp_path: Path) -> None:
    store = open_store(tmp_path / "leases")
    assert store.blocker() is None
    with store.write():
        assert store.blocker() == os.getpid()
    assert store.blocker() is None
    store.close()


def test_who_stands_still_in_the_turnstile_is_named_as_a_writer_is(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    with client_of(path, timeout=0.2) as client, others(Other(stand_in_the_turnstile, path)) as (other,):
        client.acquire("resource", ttl=3600)
        with closing(open_store(path)) as store, store.write():
            assert writer_of(path) == os.getpid()
            other.tell("queue up")
            wait_until(lambda: waits_in(path, other.pid))
            assert in_the_way(path) == [os.getpid(), other.pid]
            os.kill(other.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, other.pid, os.WSTOPPED | os.WNOWAIT)
        try:
            with pytest.raises(StoreBusy, match=f"process {other.pid} has kept") as refusal:
                client.acquire("another")
            assert refusal.value.process_id == other.pid
        finally:
            os.kill(other.pid, signal.SIGCONT)
        assert other.join() == 0


def stand_in_the_turnstile(pipe: Pipe, path: Path) -> None:
    with closing(WriteQueue(path)) as queue:
        assert pipe.recv() == "queue up"
        queue.enter(blocking=True)
        queue.leave()


def test_a_stopped_writer_is_named_and_keeps_nobody_from_reading_and_all_go_on_after_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "leases"
    with client_of(path, timeout=0.2) as client, others(Other(write_slowly, path)) as (writer,):
        first = client.acquire("resource", ttl=3600)
        writer.tell("begin")
        assert writer.hear() == "inside"
        os.kill(writer.pid, signal.SIGSTOP)
        try:
            with pytest.raises(StoreBusy, match=f"process {writer.pid} .*nothing was changed") as refusal:
                client.acquire("another", request_id="request")
            assert refusal.value.process_id == writer.pid
            assert [status.lease.token for status in client.list().statuses] == [first.token]
            # Whoever comes to look is not kept waiting either, not even to connect and to leave again.
            with client_of(path, holder="newcomer", timeout=0.2) as newcomer:
                assert len(newcomer.list().statuses) == 1
        finally:
            os.kill(writer.pid, signal.SIGCONT)
        writer.tell("end")
        assert writer.hear() == "done"
        registrar_of(client)._committer._timeout = 60  # A busy machine takes its time to make it our turn.
        assert client.acquire("another", request_id="request").token > first.token
        assert writer.join() == 0
    assert len(tokens_of(path)) == 2
    assert problems_of(path) == []


def write_slowly(pipe: Pipe, path: Path) -> None:
    store = open_store(path)
    assert pipe.recv() == "begin"
    with store.write():
        pipe.send("inside")
        assert pipe.recv() == "end"
    pipe.send("done")


def test_a_killed_writer_makes_way_at_once(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    with client_of(path) as client, others(Other(write_slowly, path)) as (writer,):
        writer.tell("begin")
        assert writer.hear() == "inside"
        tokens: list[int] = []
        waiting = threading.Thread(target=lambda: tokens.append(client.acquire("resource").detach().token))
        waiting.start()
        wait_until(lambda: waits_in(path, os.getpid()))
        writer.kill()
        waiting.join()
        assert len(tokens) == 1
    assert problems_of(path) == []


def test_a_store_can_be_closed_while_one_of_its_threads_waits_for_a_stopped_writer(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    store = open_store(path)
    with others(Other(write_slowly, path)) as (writer,):
        writer.tell("begin")
        assert writer.hear() == "inside"
        outcome: list[BaseException] = []

        def write() -> None:
            try:
                with store.write():
                    pass
            except Exception as error:
                outcome.append(error)

        waiting = threading.Thread(target=write)
        waiting.start()
        wait_until(lambda: waits_in(path, os.getpid()))
        store.close()
        writer.tell("end")
        waiting.join()
        assert writer.join() == 0
    assert [str(error) for error in outcome] == ["this store was closed; connect again"]
    wait_until(lambda: not open_files_at(path))


@pytest.mark.chaos
def test_no_writer_starves_beside_others_that_commit_without_pause(tmp_path: Path) -> None:
    fair = waits_of_writers(commit_through_the_queue, tmp_path / "fair.db")
    plain = waits_of_writers(commit_with_a_timeout, tmp_path / "plain.db")
    average = statistics.mean(wait for waits in fair for wait in waits)
    longest = max(wait for waits in fair for wait in waits)
    longest_plain = max(wait for waits in plain for wait in waits)
    shares = [len(waits) / sum(map(len, fair)) for waits in fair]
    report = (
        f"average {average * 1e3:.1f} ms, longest {longest * 1e3:.1f} ms; with a busy timeout "
        f"{longest_plain * 1e3:.1f} ms; shares {', '.join(f'{share:.0%}' for share in shares)}"
    )
    print(report)
    assert min(shares) > 0.5 / WRITERS, report
    assert longest < 50 * average, report
    assert problems_of(tmp_path / "fair.db") == []


def waits_of_writers(worker: Callable[..., None], path: Path) -> list[list[float]]:
    """Let several processes commit without pause; return how long each commit of each one took."""
    with client_of(path) as client:
        client.acquire("resource", ttl=3600).detach()
    with others(*(Other(worker, path) for _ in range(WRITERS))) as writers:
        for writer in writers:
            assert writer.hear() == "ready"
        for writer in writers:
            writer.tell("go")
        waits: list[list[float]] = [writer.hear() for writer in writers]
        assert [writer.join() for writer in writers] == [0] * WRITERS
    return waits


def commit_through_the_queue(pipe: Pipe, path: Path) -> None:
    with client_of(path, holder=str(os.getpid())) as client:
        lease = client.acquire(f"of {os.getpid()}", ttl=3600).detach()
        measure(pipe, lambda: client.renew(lease.lease_id))


def commit_with_a_timeout(pipe: Pipe, path: Path) -> None:
    """Do as much as a renewal does, but queue the way SQLite does."""
    connection = apsw.Connection(str(path / "leases.db"))
    connection.set_busy_timeout(30_000)
    with client_of(path, holder=str(os.getpid())) as client:
        lease = client.acquire(f"of {os.getpid()}", ttl=3600).detach()
    renew = "UPDATE leases SET renewal_count = renewal_count + 1 WHERE lease_id = ?"

    def commit() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(renew, (lease.lease_id,))
        connection.execute("COMMIT")

    measure(pipe, commit)


def measure(pipe: Pipe, commit: Callable[[], object]) -> None:
    waits: list[float] = []
    pipe.send("ready")
    assert pipe.recv() == "go"
    end = time.monotonic() + COMMITS_SECONDS
    while (before := time.monotonic()) < end:
        commit()
        waits.append(time.monotonic() - before)
    pipe.send(waits)


def waits_in(path: Path, process_id: int) -> bool:
    """Say whether a process stands in the queue of a store, as the kernel sees it."""
    inodes = {os.stat(path / name).st_ino for name in ("turnstile", "writer")}
    return any(
        words[1] == "->" and int(words[5]) == process_id and int(words[6].rpartition(":")[2]) in inodes
        for words in map(str.split, Path("/proc/locks").read_text().splitlines())
    )


def open_files_at(path: Path) -> list[str]:
    names = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            names.append(os.readlink(descriptor))
        except FileNotFoundError:
            continue  # the one that the folder was read through
    return [name for name in names if name.startswith(str(path))]


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        os.sched_yield()

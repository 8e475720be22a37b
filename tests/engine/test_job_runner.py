"""Jobs are started once, looked at as often as one likes, cancelled and forgotten, by operators only."""

import os
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from leasehold.engine.desk import Failure, JobStatus
from leasehold.engine.job_runner import FINISHED_JOBS, FINISHED_SECONDS, RUNNING_JOBS, JobRunner
from leasehold.engine.jobs import Backup, Job, Prune, Rebuild, Verify
from leasehold.engine.port import Progress, Store
from leasehold.engine.registrar import Registrar
from leasehold.errors import (
    ClientClosed,
    InvalidInput,
    JobCancelled,
    JobUnknown,
    LeaseholdError,
    LimitExceeded,
    NotPermitted,
    StoreBusy,
    StoreFailed,
)
from leasehold.kernel.ledger.commands import Caller
from leasehold.stores.memory import MemoryStore
from tests.engine.doubles import SIGNAL_SECONDS, claim, granted


class Paint(Job, frozen=True, kw_only=True, tag="paint"):
    """Goes step by step, whenever the test lets it."""

    result: ClassVar[Any] = str

    colour: str = "red"


class Alone(Paint, frozen=True, kw_only=True, tag="alone"):
    runs_alone = True


class Painter:
    """Carries out what the test lets it, and counts how often it was begun."""

    def __init__(self) -> None:
        self.begun: list[Job] = []
        self.brushes = threading.Semaphore(0)
        self.error: Exception | None = None

    def paint(self, job: Paint, store: Store, progress: Progress) -> str:
        self.begun.append(job)
        for wall in (1, 2):
            assert self.brushes.acquire(timeout=SIGNAL_SECONDS)
            progress(wall, 2)
        if self.error is not None:
            raise self.error
        return job.colour

    def finish(self, jobs: int = 1) -> None:
        for _ in range(2 * jobs):
            self.brushes.release()


class Hours:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def painter() -> Painter:
    return Painter()


@pytest.fixture
def hours() -> Hours:
    return Hours()


@pytest.fixture
def runner(painter: Painter, hours: Hours) -> Iterator[JobRunner]:
    made = JobRunner(MemoryStore(), {Paint: painter.paint, Alone: painter.paint}, now=hours)
    yield made
    painter.finish(2 * RUNNING_JOBS)
    assert made.close(SIGNAL_SECONDS)


def ended(runner: JobRunner, job_id: str) -> JobStatus:
    status = runner.find(job_id, timeout=SIGNAL_SECONDS)
    assert status.is_finished
    return status


def test_a_job_tells_how_far_it_has_come_and_then_its_result_as_often_as_it_is_asked(
    runner: JobRunner, painter: Painter
) -> None:
    status = runner.start("one", Paint())
    assert (status.job_id, status.job, status.is_finished) == ("one", Paint(), False)
    painter.brushes.release()
    status = runner.find("one", seen=0, timeout=SIGNAL_SECONDS)
    assert (status.done, status.total, status.is_finished) == (1, 2, False)
    assert runner.find("one", seen=1) == status
    painter.finish()
    status = ended(runner, "one")
    assert (status.result, status.done, status.total) == ("red", 2, 2)
    assert runner.find("one") == runner.find("one") == ended(runner, "one")


def test_to_start_a_job_again_changes_nothing_even_after_its_end(runner: JobRunner, painter: Painter) -> None:
    runner.start("one", Paint())
    runner.start("one", Paint())
    painter.finish()
    result = ended(runner, "one")
    assert runner.start("one", Paint()) == result
    assert len(painter.begun) == 1


def test_an_id_stands_for_one_job(runner: JobRunner) -> None:
    runner.start("one", Paint())
    with pytest.raises(InvalidInput, match="another job"):
        runner.start("one", Paint(colour="blue"))
    for wrong in ("", "x" * 129):
        with pytest.raises(LeaseholdError, match="job_id"):
            runner.start(wrong, Paint())


def test_what_failed_is_told_apart_from_what_may_have_been_done(runner: JobRunner, painter: Painter) -> None:
    errors = {"failed": InvalidInput("no"), "unknown": StoreFailed("disk"), "defect": KeyError("x")}
    found: dict[str, Failure] = {}
    for job_id, error in errors.items():
        painter.error = error
        runner.start(job_id, Paint())
        painter.finish()
        failure = ended(runner, job_id).failure
        assert failure is not None
        assert failure.error() is error
        found[job_id] = failure
    assert [(one.code, one.is_unknown) for one in found.values()] == [
        ("INVALID_INPUT", False),
        ("STORE_FAILED", True),
        ("DEFECT", True),
    ]


def test_what_became_of_a_job_that_nobody_knows_is_unknown(runner: JobRunner) -> None:
    for ask in (runner.find, runner.cancel):
        with pytest.raises(JobUnknown, match="knows no job other") as caught:
            ask("other")
        assert Failure.of(caught.value).is_unknown


def test_a_finished_job_is_forgotten_after_an_hour_and_a_running_one_never(
    runner: JobRunner, painter: Painter, hours: Hours
) -> None:
    runner.start("old", Paint())
    painter.finish()
    ended(runner, "old")
    runner.start("running", Paint())
    hours.seconds = FINISHED_SECONDS - 1
    assert runner.find("old").result == "red"
    hours.seconds = FINISHED_SECONDS
    with pytest.raises(JobUnknown):
        runner.find("old")
    assert not runner.find("running").is_finished


def test_no_more_than_so_many_finished_jobs_are_kept_and_the_oldest_goes_first(
    runner: JobRunner, painter: Painter, hours: Hours
) -> None:
    for number in range(FINISHED_JOBS + 1):
        hours.seconds = number / 1_000
        runner.start(f"job-{number}", Paint())
        painter.finish()
        ended(runner, f"job-{number}")
    with pytest.raises(JobUnknown):
        runner.find("job-0")
    assert runner.find("job-1").result == "red"


def test_a_second_job_of_a_kind_that_runs_alone_is_refused_while_the_first_runs(
    runner: JobRunner, painter: Painter
) -> None:
    runner.start("one", Alone())
    with pytest.raises(StoreBusy, match="running, one; nothing was changed"):
        runner.start("two", Alone())
    assert not runner.start("one", Alone()).is_finished
    runner.start("other", Paint())
    runner.start("another", Paint())
    painter.finish(3)
    ended(runner, "one")
    runner.start("two", Alone())
    painter.finish()
    assert ended(runner, "two").result == "red"


def test_the_jobs_of_which_two_would_be_in_each_others_way_run_alone() -> None:
    assert [job.runs_alone for job in (Prune, Rebuild, Backup, Verify)] == [True, True, True, False]


def test_no_more_than_so_many_jobs_run_at_once(runner: JobRunner) -> None:
    for number in range(RUNNING_JOBS):
        runner.start(f"job-{number}", Paint())
    with pytest.raises(LimitExceeded) as caught:
        runner.start("more", Paint())
    assert caught.value.limit == RUNNING_JOBS


def test_a_cancelled_job_ends_before_its_next_step_and_says_so(runner: JobRunner, painter: Painter) -> None:
    runner.start("one", Paint())
    painter.brushes.release()
    runner.find("one", seen=0, timeout=SIGNAL_SECONDS)
    assert not runner.cancel("one").is_finished
    painter.finish()
    status = ended(runner, "one")
    assert status.done == 1
    assert status.failure is not None
    assert isinstance(status.failure.error(), JobCancelled)
    assert not status.failure.is_unknown


def test_a_job_that_has_ended_is_not_cancelled_any_more(runner: JobRunner, painter: Painter) -> None:
    runner.start("one", Paint())
    painter.finish()
    result = ended(runner, "one")
    assert runner.cancel("one") == runner.find("one") == result


def test_a_closed_runner_cancels_what_runs_and_takes_no_more(runner: JobRunner, painter: Painter) -> None:
    runner.start("one", Paint())
    painter.brushes.release()
    runner.find("one", seen=0, timeout=SIGNAL_SECONDS)
    assert not runner.close(0)
    painter.finish()
    assert runner.close(SIGNAL_SECONDS)
    failure = runner.find("one").failure
    assert failure is not None
    assert failure.code == "JOB_CANCELLED"
    with pytest.raises(ClientClosed):
        runner.start("two", Paint())


def test_a_forked_child_knows_nothing_of_its_parents_jobs(runner: JobRunner) -> None:
    runner.start("one", Alone())
    child = os.fork()
    if child == 0:
        try:
            runner.find("one")
        except JobUnknown:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_jobs_are_for_operators() -> None:
    registrar = Registrar(MemoryStore(), caller=Caller(tenant="acme"))
    with pytest.raises(NotPermitted, match="bound to tenant acme"):
        registrar.start_job("one", Verify())
    with pytest.raises(NotPermitted):
        registrar.find_job("one")
    with pytest.raises(NotPermitted):
        registrar.cancel_job("one")
    registrar.close()
    operator = Registrar(MemoryStore(), caller=Caller(access="key of an operator"))
    operator.start_job("one", Verify())
    assert operator.find_job("one", timeout=SIGNAL_SECONDS).result.problems == []
    operator.close()


def test_a_verification_ends_between_two_pages_when_it_is_cancelled(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    registrar = Registrar(store)
    granted(registrar.call(claim("door")))
    monkeypatch.setattr("leasehold.engine.walking._PAGE", 1)
    # Cancelled when it has begun, and has told nobody of its first page yet.
    runner = JobRunner(store)
    told = runner._tell

    def tell(run: Any, status: JobStatus) -> None:
        told(run, status)
        run.is_cancelled = True

    monkeypatch.setattr(runner, "_tell", tell)
    runner.start("one", Verify())
    failure = ended(runner, "one").failure
    assert failure is not None
    assert failure.code == "JOB_CANCELLED"
    registrar.close()


def test_all_that_a_failed_job_had_read_is_let_go(runner: JobRunner, painter: Painter) -> None:
    painter.error = InvalidInput("no")
    runner.start("one", Paint())
    painter.finish()
    failure = ended(runner, "one").failure
    assert failure is not None
    trace = failure.cause.__traceback__
    frames = []
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    assert [frame.f_locals for frame in frames if frame.f_code is Painter.paint.__code__] == [{}]

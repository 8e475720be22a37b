"""Where jobs are carried out: each in a thread of its own, under the id that its starter chose.

Promised: to start the same job again under the same id changes nothing, so who lost the reply asks again. How
far a job has come, and its result or failure, can be asked for as often as one likes, for an hour after its
end or until a hundred others have ended since. A job that is cancelled ends between two of its steps, if it
has any left.

Not promised: jobs are in no ledger. A registrar that was started again knows nothing of them, and says so
with `JobUnknown`: what became of such a job is unknown, which is not to say that it failed.
"""

import os
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from leasehold.engine.desk import Failure, JobStatus
from leasehold.engine.jobs import CARRIERS, Carrier, Job
from leasehold.engine.news import News
from leasehold.engine.port import Store
from leasehold.errors import (
    ClientClosed,
    InvalidInput,
    JobCancelled,
    JobUnknown,
    LimitExceeded,
    StoreBusy,
    error_of,
)
from leasehold.kernel.ledger.limits import check_text

RUNNING_JOBS = 16
FINISHED_JOBS = 100
FINISHED_SECONDS = 3600.0


class _Run:
    """A job under way, or what became of it."""

    def __init__(self, status: JobStatus) -> None:
        self.status = status
        self.is_cancelled = False
        self.ended = 0.0


class JobRunner:
    """Carries out the jobs of one registrar."""

    def __init__(
        self,
        store: Store,
        also: Mapping[type[Job], Carrier] | None = None,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`also` carries out jobs that the engine knows nothing of."""
        self._store = store
        self._carriers = {**CARRIERS, **(also or {})}
        self._now = now
        self._closed = False
        self._reset()
        _runners.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._news = News()
        self._runs: dict[str, _Run] = {}

    def start(self, job_id: str, job: Job) -> JobStatus:
        """Begin a job, unless it was begun already; return how it stands."""
        refusal = check_text("job_id", job_id)
        if refusal is not None:
            raise error_of(refusal)
        with self._lock:
            self._forget()
            run = self._runs.get(job_id)
            if run is None:
                self._refuse(job)
                run = _Run(JobStatus(job_id=job_id, job=job))
                thread = threading.Thread(
                    target=self._carry_out, args=(run,), name="leasehold-job", daemon=True
                )
                self._runs[job_id] = run
                try:
                    thread.start()
                except BaseException:  # Ctrl-C: it may have been started, or never will.
                    run.is_cancelled = True
                    del self._runs[job_id]
                    raise
            elif run.status.job != job:
                raise InvalidInput(f"{job_id} is the id of another job; choose a new one", field="job_id")
            return run.status

    def find(self, job_id: str, *, seen: int | None = None, timeout: float = 0.0) -> JobStatus:
        """Return how a job stands: once it has ended, or done another amount than `seen`, or time is up."""
        with self._lock:
            run = self._known(job_id)
        self._news.wait_for(
            lambda: run.status.is_finished or (seen is not None and run.status.done != seen), timeout
        )
        return run.status

    def cancel(self, job_id: str) -> JobStatus:
        """Let a job end before its next step; return how it stands now."""
        with self._lock:
            run = self._known(job_id)
            run.is_cancelled = True
            return run.status

    def close(self, patience_seconds: float) -> bool:
        """Take no more jobs, cancel those that run, and say whether all have ended in time."""
        with self._lock:
            self._closed = True
            for run in self._running():
                run.is_cancelled = True
        return self._news.wait_for(self._is_idle, patience_seconds)

    def _is_idle(self) -> bool:
        with self._lock:
            return not self._running()

    def after_fork_in_child(self) -> None:
        """Start anew: the parent's jobs are none of ours."""
        self._reset()

    def _refuse(self, job: Job) -> None:
        if self._closed:
            raise ClientClosed("this client was closed; connect again")
        running = self._running()
        for one in running:
            if job.runs_alone and type(one.status.job) is type(job):
                raise StoreBusy(
                    f"another such job is running, {one.status.job_id}; nothing was changed. "
                    "Start this one when that has ended"
                )
        if len(running) >= RUNNING_JOBS:
            raise LimitExceeded(
                f"{RUNNING_JOBS} jobs are running, which is the limit; try again when one has ended",
                limit=RUNNING_JOBS,
            )

    def _known(self, job_id: str) -> _Run:
        self._forget()
        run = self._runs.get(job_id)
        if run is None:
            raise JobUnknown(
                f"this registrar knows no job {job_id}: it never began, or ended long ago, or the registrar "
                "was started again since; look at what it was to do, or start it again under a new id"
            )
        return run

    def _running(self) -> list[_Run]:
        return [run for run in self._runs.values() if not run.status.is_finished]

    def _forget(self) -> None:
        """Drop finished jobs that are too old, or too many."""
        finished = [run for run in self._runs.values() if run.status.is_finished]
        finished.sort(key=lambda run: run.ended, reverse=True)
        since = self._now() - FINISHED_SECONDS
        for place, run in enumerate(finished):
            if place >= FINISHED_JOBS or run.ended <= since:
                del self._runs[run.status.job_id]

    def _carry_out(self, run: _Run) -> None:
        job = run.status.job

        def step(done: int, total: int) -> None:
            if run.is_cancelled:
                raise JobCancelled("the job was cancelled, and has ended between two of its steps")
            self._tell(run, replace(run.status, done=done, total=total))

        try:
            step(0, 0)
            result = self._carriers[type(job)](job, self._store, step)
            ended = replace(run.status, result=result)
        except Exception as error:
            traceback.clear_frames(error.__traceback__)  # They may hold all that the job had read.
            ended = replace(run.status, failure=Failure.of(error))
        run.ended = self._now()
        self._tell(run, ended)

    def _tell(self, run: _Run, status: JobStatus) -> None:
        run.status = status
        self._news.tell()


_runners: weakref.WeakSet[JobRunner] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for runner in list(_runners):
        runner.after_fork_in_child()


os.register_at_fork(after_in_child=_after_fork_in_child)

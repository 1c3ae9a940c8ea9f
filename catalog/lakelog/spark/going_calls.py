"""Calls of procedures that ask Spark for jobs while they run, so that no data of a table's size comes to this
process.

Each call runs in its own thread, which waits while Spark works. A request goes on with it up to its next job,
or its end. Calls live in this process only. A call that it does not know was lost with another process, and
is begun again. Its commits stay, so it goes on from there.
"""

from __future__ import annotations

import queue
import threading
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from lakelog.log.errors import LakelogError
from lakelog.spark.requests.jobs import AnyJob, AnyResult

if TYPE_CHECKING:
    import pyarrow as pa

R = TypeVar("R", bound=AnyResult)

Rows = Iterable[Sequence[Any]]


class CallLost(LakelogError):
    """The process that ran the call is gone."""

    kind = "call-lost"


class JobFailed(LakelogError):
    """A job of a call failed in Spark, whose error says more. If a user has cancelled it, the call ends."""

    kind = "job-failed"

    def __init__(self, message: str, *, cancelled: bool) -> None:
        super().__init__(message)
        self.cancelled = cancelled


class CallJobs:
    """The jobs that a running call has Spark do."""

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[AnyJob | Rows | BaseException] = queue.SimpleQueue()
        self._came: queue.SimpleQueue[AnyResult | BaseException] = queue.SimpleQueue()
        self.files: pa.Table | None = None

    def run(self, job: AnyJob, kind: type[R], files: pa.Table | None = None) -> R:
        """Return the result of a job, which is of that kind.

        Spark gets the job's `files`, if there are any. Raises JobFailed.
        """
        self.files = files
        self._asked.put(job)
        result = self._came.get()
        if isinstance(result, BaseException):
            raise result
        assert isinstance(result, kind), f"the job's result is {result!r}"
        return result

    def go_on(self, came: AnyResult | BaseException | None) -> AnyJob | Rows:
        """Give the call the result of its job, and return its next job, or its rows."""
        if came is not None:
            self._came.put(came)
        next_step = self._asked.get()
        if isinstance(next_step, BaseException):
            raise next_step
        return next_step

    def end(self, asked: Rows | BaseException) -> None:
        self._asked.put(asked)

    def abandon(self) -> None:
        """End a call that waits for a job."""
        self._came.put(JobFailed("the catalog was closed", cancelled=True))


class RunningCalls:
    """The running calls of a catalog. Safe to share between threads."""

    def __init__(self) -> None:
        self._going: dict[str, CallJobs] = {}
        self._lock = threading.Lock()

    def begin(self, work: Callable[[CallJobs], Rows]) -> tuple[str | None, AnyJob | Rows]:
        """Run `work` up to its first job. Return the call's name and the job, or None and its rows."""
        jobs = CallJobs()

        def run() -> None:
            try:
                jobs.end(tuple(work(jobs)))
            except BaseException as error:
                jobs.end(error)

        name = uuid.uuid4().hex
        with self._lock:
            self._going[name] = jobs
        # The thread gets the context, so that commits name the user and the statement.
        threading.Thread(target=copy_context().run, args=(run,), name=f"call-{name[:8]}", daemon=True).start()
        return self._until(name, jobs, None)

    def go_on(self, name: str, came: AnyResult | BaseException) -> tuple[str | None, AnyJob | Rows]:
        """Go on with a call up to its next job, as `begin`. Raises CallLost."""
        return self._until(name, self.get(name), came)

    def get(self, name: str) -> CallJobs:
        """Return the jobs of a call. Raises CallLost."""
        with self._lock:
            jobs = self._going.get(name)
        if jobs is None:
            raise CallLost(
                "lakelog's Python process ended while the call waited for a job of Spark's. What it had committed "
                "stays: make the same call again, and it goes on"
            )
        return jobs

    def abandon_all(self) -> None:
        with self._lock:
            abandoned_jobs, self._going = list(self._going.values()), {}
        for jobs in abandoned_jobs:
            jobs.abandon()

    def _until(
        self, name: str, jobs: CallJobs, came: AnyResult | BaseException | None
    ) -> tuple[str | None, AnyJob | Rows]:
        try:
            next_step = jobs.go_on(came)
        except BaseException:
            self._ended(name)
            raise
        if isinstance(next_step, tuple):
            self._ended(name)
            return None, next_step
        return name, next_step

    def _ended(self, name: str) -> None:
        with self._lock:
            self._going.pop(name, None)

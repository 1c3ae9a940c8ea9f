"""Calls of procedures that ask Spark for jobs while they run, so that nothing of a table's size comes to this process.

Each runs in a thread of its own, which waits while Spark works; a request goes on with it up to its next job, or its
end. They live in this process only. One that it does not know was lost with another process, and is begun again: what
it has committed until then stays, so it goes on from there.
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
    """A job of a call failed in Spark, which has said more. Where a user has cancelled it, the call ends."""

    kind = "job-failed"

    def __init__(self, message: str, *, cancelled: bool) -> None:
        super().__init__(message)
        self.cancelled = cancelled


class Jobs:
    """What a running call has Spark do."""

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[AnyJob | Rows | BaseException] = queue.SimpleQueue()
        self._came: queue.SimpleQueue[AnyResult | BaseException] = queue.SimpleQueue()
        self.files: pa.Table | None = None

    def run(self, job: AnyJob, kind: type[R], files: pa.Table | None = None) -> R:
        """Return what comes of a job, which is of that kind. Spark gets the `files` that it is about, if there are any.
        JobFailed."""
        self.files = files
        self._asked.put(job)
        came = self._came.get()
        if isinstance(came, BaseException):
            raise came
        assert isinstance(came, kind), f"the job's result is {came!r}"
        return came

    def go_on(self, came: AnyResult | BaseException | None) -> AnyJob | Rows:
        """Give the call what came of its job, and return its next one, or its rows."""
        if came is not None:
            self._came.put(came)
        asked = self._asked.get()
        if isinstance(asked, BaseException):
            raise asked
        return asked

    def end(self, asked: Rows | BaseException) -> None:
        self._asked.put(asked)

    def abandon(self) -> None:
        """End a call that waits for a job."""
        self._came.put(JobFailed("the catalog was closed", cancelled=True))


class GoingCalls:
    """Safe to share between threads."""

    def __init__(self) -> None:
        self._going: dict[str, Jobs] = {}
        self._lock = threading.Lock()

    def begin(self, work: Callable[[Jobs], Rows]) -> tuple[str | None, AnyJob | Rows]:
        """Run `work` up to its first job; return what it is known by, and the job; or nothing, and its rows."""
        jobs = Jobs()

        def run() -> None:
            try:
                jobs.end(tuple(work(jobs)))
            except BaseException as error:
                jobs.end(error)

        name = uuid.uuid4().hex
        with self._lock:
            self._going[name] = jobs
        # With what commits name: the user and the statement.
        threading.Thread(target=copy_context().run, args=(run,), name=f"call-{name[:8]}", daemon=True).start()
        return self._until(name, jobs, None)

    def go_on(self, name: str, came: AnyResult | BaseException) -> tuple[str | None, AnyJob | Rows]:
        """Go on with a call up to its next job, as `begin`. CallLost."""
        return self._until(name, self.get(name), came)

    def get(self, name: str) -> Jobs:
        """Return what a call has asked for. CallLost."""
        with self._lock:
            found = self._going.get(name)
        if found is None:
            raise CallLost(
                "lakelog's Python process ended while the call waited for a job of Spark's. What it had committed "
                "stays: make the same call again, and it goes on"
            )
        return found

    def abandon_all(self) -> None:
        with self._lock:
            going, self._going = list(self._going.values()), {}
        for jobs in going:
            jobs.abandon()

    def _until(
        self, name: str, jobs: Jobs, came: AnyResult | BaseException | None
    ) -> tuple[str | None, AnyJob | Rows]:
        try:
            asked = jobs.go_on(came)
        except BaseException:
            self._ended(name)
            raise
        if isinstance(asked, tuple):
            self._ended(name)
            return None, asked
        return name, asked

    def _ended(self, name: str) -> None:
        with self._lock:
            self._going.pop(name, None)

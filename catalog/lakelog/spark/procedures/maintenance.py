"""Deleting the past: expire and vacuum. Spark's executors help if there is much to delete."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from lakelog.catalog.operations.maintaining import EXPIRE, VACUUM
from lakelog.log.errors import InvalidInput
from lakelog.spark.going_calls import CallJobs, JobFailed
from lakelog.spark.procedures.declare import ProcedureCall, Rows, procedure_of
from lakelog.spark.requests.jobs import (
    AnyJob,
    AnyResult,
    BuryResult,
    BuryVersions,
    DeleteObjects,
    ObjectsDeleted,
)

if TYPE_CHECKING:
    from lakelog.catalog.keeping.maintenance import Engine, VersionsToBury
    from lakelog.catalog.keeping.maintenance import VersionsBuried as Buried
    from lakelog.catalog.names import Identifier

R = TypeVar("R", bound=AnyResult)

SCOPE = ("table", "namespace")
"""The parameters that say which table or namespace a call is about."""


def subject(call: ProcedureCall) -> dict[str, Any]:
    """Return the table or the namespace that a call is about. Empty for the whole warehouse."""
    if call["table"] is not None and call["namespace"] is not None:
        raise InvalidInput("both a table and a namespace are given: give one of them")
    if call["table"] is not None:
        return {"table": call.table("table")}
    return {} if call["namespace"] is None else {"namespace": call.namespace("namespace")}


def subject_name(call: ProcedureCall) -> Identifier | None:
    """Return the name of the table or the namespace that a call is about. None for the whole warehouse."""
    return next(iter(subject(call).values()), None)


class JobsOfCall:
    """The executors' part of a call's expiry and vacuum.

    Jobs of several logs run in turn. After a user has cancelled a job, no other job begins, and the call ends
    by it, though each log has its own outcome.
    """

    def __init__(self, jobs: CallJobs) -> None:
        self._jobs = jobs
        self._lock = threading.Lock()
        self._cancelled: JobFailed | None = None

    @contextmanager
    def engine(self) -> Iterator[Engine]:
        """Yield the executors' work. At the end, raise a user's cancelling in place of its result."""
        from lakelog.catalog.keeping.maintenance import Engine

        try:
            yield Engine(bury=self._bury, delete=self._delete)
        finally:
            self._check()

    def _check(self) -> None:
        if self._cancelled is not None:
            raise self._cancelled

    def _bury(self, asked: VersionsToBury) -> Buried:
        from lakelog.catalog.keeping.maintenance import VersionsBuried as Buried

        result = self._run(
            BuryVersions(
                what=asked.name,
                log=asked.log,
                first=asked.first,
                until=asked.until,
                last=asked.last,
                features=asked.features,
            ),
            BuryResult,
        )
        return Buried(commits=result.commits, size_bytes=result.size_bytes, left=result.left)

    def _delete(self, urls: Sequence[str]) -> None:
        self._run(DeleteObjects(work="", what="vacuum", objects=tuple(urls)), ObjectsDeleted)

    def _run(self, job: AnyJob, kind: type[R]) -> R:
        with self._lock:
            self._check()
            try:
                return self._jobs.run(job, kind)
            except JobFailed as failure:
                if failure.cancelled:
                    self._cancelled = failure
                raise


def _expire(call: ProcedureCall) -> Rows:
    with JobsOfCall(call.asked()).engine() as engine:
        return EXPIRE.rows(call.catalog.expire(**call.keywords(*SCOPE), **subject(call), engine=engine))


def _vacuum(call: ProcedureCall) -> Rows:
    with JobsOfCall(call.asked()).engine() as engine:
        return VACUUM.rows(call.catalog.vacuum(**call.keywords(*SCOPE), **subject(call), engine=engine))


PROCEDURES = (
    procedure_of(EXPIRE, _expire, in_transaction=False, asks=True),
    procedure_of(VACUUM, _vacuum, in_transaction=False, asks=True),
)

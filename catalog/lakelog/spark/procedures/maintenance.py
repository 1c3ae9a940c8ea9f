"""Deleting the past: expire and vacuum. Both only report what they would do, unless dry_run is false."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from lakelog.log.errors import InvalidInput
from lakelog.spark.going_calls import JobFailed, Jobs
from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows
from lakelog.spark.requests.jobs import (
    AnyJob,
    AnyResult,
    BuryVersions,
    DeleteObjects,
    ObjectsDeleted,
    VersionsBuried,
)

if TYPE_CHECKING:
    from lakelog.catalog.keeping.maintenance import Engine, VersionsToBury
    from lakelog.catalog.keeping.maintenance import VersionsBuried as Buried
    from lakelog.catalog.names import Identifier

R = TypeVar("R", bound=AnyResult)

TABLE = Parameter("table", "STRING", "one table; NULL: all of the namespace", default="NULL")
NAMESPACE = Parameter(
    "namespace", "STRING", "all of a namespace; NULL: the table, or the whole catalog", default="NULL"
)
_DRY_RUN = Parameter("dry_run", "BOOLEAN", "only report what would be deleted", default="true")
_TRUST_CLOCK = Parameter(
    "trust_clock",
    "BOOLEAN",
    "the driver's clock is right, though in a folder nothing was committed for more than a day",
    default="false",
)


def _age(parameter: str, comment: str) -> Parameter:
    return Parameter(parameter, "INTERVAL DAY TO SECOND", comment, default="NULL")


def subject(call: Call) -> dict[str, Any]:
    if call["table"] is not None and call["namespace"] is not None:
        raise InvalidInput("both a table and a namespace are given: give one of them")
    if call["table"] is not None:
        return {"table": call.table("table")}
    return {} if call["namespace"] is None else {"namespace": call.namespace("namespace")}


def subject_name(call: Call) -> Identifier | None:
    """Return the name of the table or the namespace that a call is about; None: of the whole warehouse."""
    return next(iter(subject(call).values()), None)


def _duration(call: Call, parameter: str) -> dt.timedelta | None:
    micros = call[parameter]
    return None if micros is None else dt.timedelta(microseconds=micros)


class JobsOfCall:
    """What executors do of a call's expiry and vacuum. Jobs of several logs follow one another. Once a user has
    cancelled one, the others are not begun, and the call ends by it, though each log has its own outcome."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._lock = threading.Lock()
        self._cancelled: JobFailed | None = None

    @contextmanager
    def engine(self) -> Iterator[Engine]:
        """Yield what is done by executors; at the end, raise a user's cancelling in place of what came of it."""
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

        done = self._run(
            BuryVersions(
                what=asked.name,
                log=asked.log,
                first=asked.first,
                until=asked.until,
                last=asked.last,
                features=asked.features,
            ),
            VersionsBuried,
        )
        return Buried(commits=done.commits, size_bytes=done.size_bytes, left=done.left)

    def _delete(self, urls: Sequence[str]) -> None:
        self._run(DeleteObjects(work="", what="vacuum", objects=tuple(urls)), ObjectsDeleted)

    def _run(self, job: AnyJob, kind: type[R]) -> R:
        with self._lock:
            self._check()
            try:
                return self._jobs.run(job, kind)
            except JobFailed as failed:
                if failed.cancelled:
                    self._cancelled = failed
                raise


def _expire(call: Call) -> Rows:
    with JobsOfCall(call.asked()).engine() as engine:
        found = call.catalog.expire(
            **subject(call),
            older_than=_duration(call, "older_than"),
            version=call["version"],
            retain_last=call["retain_last"],
            dry_run=call["dry_run"],
            trust_clock=call["trust_clock"],
            engine=engine,
        )
    return [
        (
            each.kind, each.name, each.location, each.versions, each.first, each.head, each.commits, each.size_bytes,
            each.files, each.file_bytes, each.kept_for_cuts, each.error,
        )
        for each in found
    ]  # fmt: skip


def _vacuum(call: Call) -> Rows:
    with JobsOfCall(call.asked()).engine() as engine:
        found = call.catalog.vacuum(
            **subject(call),
            older_than=_duration(call, "older_than"),
            dropped_older_than=_duration(call, "dropped_older_than"),
            dry_run=call["dry_run"],
            trust_clock=call["trust_clock"],
            engine=engine,
        )
    return [
        (
            each.kind, each.name, each.location, each.files, each.size_bytes, each.objects, each.object_bytes,
            each.waiting, each.foreign, each.fence, each.kept_for_cuts, each.error, list(each.kept_for_clones),
        )
        for each in found
    ]  # fmt: skip


_PLACE = (
    Column("kind", "STRING"),
    Column("name", "STRING"),
    Column("location", "STRING", "relative to the warehouse"),
)
_END = (
    Column("kept_for_cuts", "BOOLEAN", "saved cuts keep more than was requested"),
    Column("error", "STRING", "why nothing was done here"),
)

PROCEDURES = (
    Procedure(
        name="expire",
        description="Expire versions that were replaced long ago; the current one, and those that cuts need, stay.",
        run=_expire,
        parameters=(
            TABLE,
            _age(
                "older_than",
                "versions replaced longer ago; NULL, without retain_last and version: as keep-for says, or 7 days",
            ),
            Parameter("retain_last", "INT", "all but so many versions", default="NULL"),
            Parameter("version", "BIGINT", "versions before this one, of a table", default="NULL"),
            NAMESPACE,
            _DRY_RUN,
            _TRUST_CLOCK,
        ),
        columns=(
            *_PLACE,
            Column("versions", "BIGINT", "how many expire"),
            Column("first_version", "BIGINT", "the first that can be read afterwards"),
            Column("head_version", "BIGINT"),
            Column("commits", "BIGINT"),
            Column("commit_bytes", "BIGINT"),
            Column("files", "BIGINT", "data files that vacuum can delete then"),
            Column("file_bytes", "BIGINT"),
            *_END,
        ),
        in_transaction=False,
        asks=True,
    ),
    Procedure(
        name="vacuum",
        description="Delete files that nothing can reach any more, and purge what was dropped long ago.",
        run=_vacuum,
        parameters=(
            TABLE,
            _age("older_than", "writes that began longer ago fail from then on; NULL: 3 days"),
            _age("dropped_older_than", "what was dropped longer ago is purged; NULL: 7 days"),
            NAMESPACE,
            _DRY_RUN,
            _TRUST_CLOCK,
        ),
        columns=(
            *_PLACE,
            Column("files", "BIGINT", "data files"),
            Column("file_bytes", "BIGINT"),
            Column("objects", "BIGINT", "all others except commits"),
            Column("object_bytes", "BIGINT"),
            Column("waiting_files", "BIGINT", "of writes that began after older_than: they may be under way"),
            Column("foreign_files", "BIGINT", "not lakelog's; they stay"),
            Column("fence", "BIGINT", "the first version whose writes go on"),
            *_END,
            Column("kept_for_clones", "ARRAY<STRING>", "clones that need what was dropped"),
        ),
        in_transaction=False,
        asks=True,
    ),
)

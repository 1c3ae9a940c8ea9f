"""Deleting the past: expire and vacuum. Both only report what they would do, unless dry_run is false."""

from __future__ import annotations

import datetime as dt
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lakelog.log import new_id
from lakelog.log.errors import InvalidInput
from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows
from lakelog.spark.requests.jobs import DeleteObjects, ObjectsDeleted

if TYPE_CHECKING:
    from lakelog.catalog.names import Identifier

DELETED_AT_ONCE = 100_000
"""Objects of one job."""

KEPT_MAX = 8

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


def _expire(call: Call) -> Rows:
    found = call.catalog.expire(
        **subject(call),
        older_than=_duration(call, "older_than"),
        version=call["version"],
        retain_last=call["retain_last"],
        dry_run=call["dry_run"],
        trust_clock=call["trust_clock"],
    )
    return [
        (
            each.kind, each.name, each.location, each.versions, each.first, each.head, each.commits, each.size_bytes,
            each.files, each.file_bytes, each.kept_for_cuts, each.error,
        )
        for each in found
    ]  # fmt: skip


class _Deletions:
    """A vacuum whose commits stand, and the objects that are left to delete."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.urls: list[str] = []


_under_way: OrderedDict[str, _Deletions] = OrderedDict()


def _prepare_vacuum(call: Call) -> DeleteObjects | None:
    """Vacuum, and return a job that deletes the objects of tables with many: what is lost before it is done, with this
    process too, the next vacuum finds."""
    if call["dry_run"]:
        return None
    id = None if call.result is None else call.came_of(ObjectsDeleted).work
    work = None if id is None else _under_way.get(id)
    if work is None or id is None:
        id, work = new_id(), _Deletions()
        work.rows = _vacuumed(call, work.urls.extend)
        _under_way[id] = work
        while len(_under_way) > KEPT_MAX:
            _under_way.popitem(last=False)
        if not work.urls:
            return DeleteObjects(work=id, what="vacuum", objects=())
    some = tuple(work.urls[-DELETED_AT_ONCE:])
    del work.urls[-DELETED_AT_ONCE:]
    return DeleteObjects(work=id, what="vacuum", objects=some) if some else None


def _vacuum(call: Call) -> Rows:
    done = None if call.result is None else _under_way.pop(call.came_of(ObjectsDeleted).work, None)
    return _vacuumed(call, None) if done is None else done.rows


def _vacuumed(call: Call, delete: Callable[[Sequence[str]], None] | None) -> list[tuple[Any, ...]]:
    found = call.catalog.vacuum(
        **subject(call),
        older_than=_duration(call, "older_than"),
        dropped_older_than=_duration(call, "dropped_older_than"),
        dry_run=call["dry_run"],
        trust_clock=call["trust_clock"],
        delete=delete,
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
    ),
    Procedure(
        name="vacuum",
        description="Delete files that nothing can reach any more, and purge what was dropped long ago.",
        run=_vacuum,
        prepare=_prepare_vacuum,
        in_parts=True,
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
            Column("waiting_files", "BIGINT", "of writes that may be under way"),
            Column("foreign_files", "BIGINT", "not lakelog's; they stay"),
            Column("fence", "BIGINT", "the first version whose writes go on"),
            *_END,
            Column("kept_for_clones", "ARRAY<STRING>", "clones that need what was dropped"),
        ),
        in_transaction=False,
    ),
)

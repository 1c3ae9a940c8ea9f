"""Small files become larger ones: Python selects and commits them, Spark's executors read and write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows
from lakelog.spark.requests.jobs import Compact, Compacted
from lakelog.spark.requests.writes import CompactionGoal

if TYPE_CHECKING:
    from lakelog.catalog.table import Table


def job(call: Call, table: Table, target_size: int | None, deleted_ratio: float | None) -> Compact:
    """Return what Spark is to do for a call that names a table and, by `where`, its files."""
    from lakelog.catalog.state import goal_of

    goal = goal_of(table.properties, target_size, deleted_ratio)
    return Compact(
        table=tuple(call.table("table")),
        where=call["where"],
        goal=CompactionGoal(target_size_bytes=goal.target_size_bytes, deleted_ratio=goal.deleted_ratio),
        most_bytes=goal.most_bytes,
    )


def _prepare(call: Call) -> Compact:
    return job(call, call.loaded("table"), call["target_size"], call["deleted_ratio"])


def _compact(call: Call) -> Rows:
    """Return what the job has done, which has committed already."""
    done = call.came_of(Compacted)
    return [[getattr(done, column.name) for column in _COLUMNS]]


_COLUMNS = (
    Column("rewritten_files", "BIGINT", "that the table no longer has"),
    Column("rewritten_bytes", "BIGINT"),
    Column("added_files", "BIGINT", "in their place"),
    Column("added_bytes", "BIGINT"),
    Column("deleted_rows", "BIGINT", "that were still in those files"),
    Column("current_version", "BIGINT"),
)

PROCEDURES = (
    Procedure(
        name="compact",
        description="Rewrite small files of a table into larger ones, and files of which many rows are deleted.",
        prepare=_prepare,
        run=_compact,
        parameters=(
            Parameter("table", "STRING", "the table"),
            Parameter(
                "where", "STRING", "only files that may have rows that match; NULL: all", default="NULL"
            ),
            Parameter(
                "target_size",
                "BIGINT",
                "how many bytes a file should have; NULL: the table's property",
                default="NULL",
            ),
            Parameter(
                "deleted_ratio",
                "DOUBLE",
                "the share of deleted rows from which on any file is rewritten; NULL: 0.3",
                default="NULL",
            ),
        ),
        columns=_COLUMNS,
    ),
)

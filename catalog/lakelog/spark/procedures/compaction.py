"""Small files become larger ones: Python says which ones and commits, Spark's executors read and write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows


def _prepare(call: Call) -> Mapping[str, Any]:
    from lakelog.catalog.state import goal_of

    path = call.table("table")
    goal = goal_of(call.loaded("table").properties, call["target_size"], call["deleted_ratio"])
    return {
        "kind": "compact",
        "table": list(path),
        "where": call["where"],
        "goal": {"target_size_bytes": goal.target_size_bytes, "deleted_ratio": goal.deleted_ratio},
        "most_bytes": goal.most_bytes,
    }


def _compact(call: Call) -> Rows:
    """Tell what the job has done, which has committed it."""
    return [[call.result[column.name] for column in _COLUMNS]]


_COLUMNS = (
    Column("rewritten_files", "BIGINT", "that the table does not have any more"),
    Column("rewritten_bytes", "BIGINT"),
    Column("added_files", "BIGINT", "in their place"),
    Column("added_bytes", "BIGINT"),
    Column("deleted_rows", "BIGINT", "that were still in those files"),
    Column("current_version", "BIGINT"),
)

PROCEDURES = (
    Procedure(
        name="compact",
        description="Write small files of a table anew as larger ones, and files of which many rows are deleted.",
        prepare=_prepare,
        run=_compact,
        parameters=(
            Parameter("table", "STRING", "the table"),
            Parameter(
                "where", "STRING", "only files that may have rows like these; NULL: all", default="NULL"
            ),
            Parameter(
                "target_size",
                "BIGINT",
                "how many bytes a file shall have; NULL: as the table's property says",
                default="NULL",
            ),
            Parameter(
                "deleted_ratio",
                "DOUBLE",
                "a share of deleted rows from which on a file is written anew anyway; NULL: 0.3",
                default="NULL",
            ),
        ),
        columns=_COLUMNS,
    ),
)

"""Small files become larger ones: Python selects and commits them, Spark's executors read and write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows
from lakelog.spark.requests.jobs import Cluster, Compact, Compacted
from lakelog.spark.requests.writes import ClusteringGoal, CompactionGoal

if TYPE_CHECKING:
    from lakelog.catalog.table import Table


def job(call: Call, table: Table, target_size: int | None, deleted_ratio: float | None) -> Compact:
    """Return what Spark is to do for a call that names a table and, by `where`, its files."""
    from lakelog.catalog.core.state import goal_of

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


def _prepare_clustering(call: Call) -> Cluster:
    """Boundaries that divide the rows are there before the job begins: they are computed from a sample."""
    from lakelog.catalog.core.state import clustering_goal

    limit_bytes = call["limit_bytes"]
    table = call.loaded("table")
    goal = clustering_goal(table.properties, limit_bytes, full=call["full"])
    table = table.ranked(dry_run=call["dry_run"])
    return Cluster(
        table=tuple(call.table("table")),
        where=call["where"],
        goal=ClusteringGoal(
            target_size_bytes=goal.target_size_bytes, key=table.metadata.clustering, full=goal.full
        ),
        limit_bytes=limit_bytes,
        dry=call["dry_run"],
        overlap=table.clustering_overlap(),
    )


def _cluster(call: Call) -> Rows:
    done = call.came_of(Compacted)
    if not call["dry_run"]:
        done = msgspec.structs.replace(done, overlap_after=call.loaded("table").clustering_overlap())
    return [[getattr(done, column.name) for column in _CLUSTERED]]


_TABLE = Parameter("table", "STRING", "the table")

_COLUMNS = (
    Column("rewritten_files", "BIGINT", "that the table no longer has"),
    Column("rewritten_bytes", "BIGINT"),
    Column("added_files", "BIGINT", "in their place"),
    Column("added_bytes", "BIGINT"),
    Column("deleted_rows", "BIGINT", "that were still in those files"),
    Column("current_version", "BIGINT"),
)

_CLUSTERED = (
    *_COLUMNS,
    Column("is_left", "BOOLEAN", "the limit was reached before the end: call it again"),
    Column("overlap_before", "DOUBLE", "files that a value of each key column may be in, on average"),
    Column("overlap_after", "DOUBLE"),
)

PROCEDURES = (
    Procedure(
        name="cluster",
        description="Put the rows of a table in the order of its CLUSTER BY, as far as that is worth its writing.",
        prepare=_prepare_clustering,
        run=_cluster,
        parameters=(
            _TABLE,
            Parameter(
                "where", "STRING", "only files that may have rows that match; NULL: all", default="NULL"
            ),
            Parameter(
                "limit_bytes",
                "BIGINT",
                "begin nothing more once so much was read; NULL: no limit",
                default="NULL",
            ),
            Parameter(
                "full",
                "BOOLEAN",
                "leave no two files that overlap, whatever that rewrites",
                default="false",
            ),
            Parameter(
                "dry_run",
                "BOOLEAN",
                "only report what would be rewritten, and how files would lie then",
                default="false",
            ),
        ),
        columns=_CLUSTERED,
        in_transaction=False,
    ),
    Procedure(
        name="compact",
        description="Rewrite small files of a table into larger ones, and files of which many rows are deleted.",
        prepare=_prepare,
        run=_compact,
        parameters=(
            _TABLE,
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

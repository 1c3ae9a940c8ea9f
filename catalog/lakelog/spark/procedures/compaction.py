"""Compaction and clustering: Python selects and commits files, Spark's executors read and write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lakelog.catalog import engine
from lakelog.catalog.operations.maintaining import CLUSTER, COMPACT
from lakelog.spark.procedures.declare import ProcedureCall, Rows, procedure_of
from lakelog.spark.requests.jobs import ClusterFiles, CompactFiles, CompactResult
from lakelog.spark.requests.writes import ClusteringGoal, CompactionGoal

if TYPE_CHECKING:
    from lakelog.catalog import Table


def job(
    call: ProcedureCall, table: Table, target_size: int | None, deleted_ratio: float | None
) -> CompactFiles:
    """Return Spark's job for a call that names a table and, by `where`, its files."""
    from lakelog.catalog.engine import goal_of

    goal = goal_of(table.properties, target_size, deleted_ratio)
    return CompactFiles(
        table=tuple(call.table("table")),
        where=call["where"],
        goal=CompactionGoal(target_size_bytes=goal.target_size_bytes, deleted_ratio=goal.deleted_ratio),
        most_bytes=goal.most_bytes,
    )


def _prepare(call: ProcedureCall) -> CompactFiles:
    return job(call, call.loaded("table"), call["target_size"], call["deleted_ratio"])


def _compact(call: ProcedureCall) -> Rows:
    """Return the result of the job, which has committed its work."""
    return COMPACT.rows([call.came_of(CompactResult)])


def _prepare_clustering(call: ProcedureCall) -> ClusterFiles:
    """Return Spark's job.

    Boundaries that divide the rows are computed from a sample before the job begins.
    """
    from lakelog.catalog.engine import clustering_goal

    limit_bytes = call["limit_bytes"]
    table = call.loaded("table")
    goal = clustering_goal(table.properties, limit_bytes, full=call["full"])
    table = engine.ranked(table, dry_run=call["dry_run"])
    return ClusterFiles(
        table=tuple(call.table("table")),
        where=call["where"],
        goal=ClusteringGoal(
            target_size_bytes=goal.target_size_bytes, key=table.metadata.clustering, full=goal.full
        ),
        limit_bytes=limit_bytes,
        dry=call["dry_run"],
        overlap=engine.clustering_overlap(table),
    )


def _cluster(call: ProcedureCall) -> Rows:
    result = call.came_of(CompactResult)
    if not call["dry_run"]:
        result = msgspec.structs.replace(
            result, overlap_after=engine.clustering_overlap(call.loaded("table"))
        )
    return CLUSTER.rows([result])


PROCEDURES = (
    procedure_of(CLUSTER, _cluster, prepare=_prepare_clustering, in_transaction=False),
    procedure_of(COMPACT, _compact, prepare=_prepare),
)

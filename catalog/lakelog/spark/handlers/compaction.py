"""Which files a compaction or a clustering rewrites, and its commit."""

from __future__ import annotations

import pyarrow as pa

from lakelog.catalog.core.state import ClusteringGoal, Goal, Group
from lakelog.catalog.core.writes import Rewritten
from lakelog.spark.arrow_streams import files_in_arrow
from lakelog.spark.frames import Beside
from lakelog.spark.open_catalog import OpenCatalog
from lakelog.spark.requests import writes as ask


def plan(at: OpenCatalog, asked: ask.PlanCompaction) -> tuple[ask.CompactionPlan, Beside]:
    """The files of each group follow one another."""
    goal = Goal(
        target_size_bytes=asked.goal.target_size_bytes,
        deleted_ratio=asked.goal.deleted_ratio,
        fan_in=asked.goal.fan_in,
        joins=asked.goal.joins,
    )
    files, groups = at.loaded(asked).plan_compaction(
        goal, asked.predicate, until=asked.until, limit_bytes=asked.limit_bytes
    )
    return _planned(files, groups)


def plan_clustering(at: OpenCatalog, asked: ask.PlanClustering) -> tuple[ask.CompactionPlan, Beside]:
    """The files of each group follow one another."""
    goal = ClusteringGoal(
        target_size_bytes=asked.goal.target_size_bytes,
        limit_bytes=asked.limit_bytes,
        fresh_min=asked.goal.fresh_min,
        full=asked.goal.full,
    )
    files, groups = at.loaded(asked).plan_clustering(
        goal, asked.predicate, until=asked.until, key=asked.goal.key
    )
    return _planned(files, groups)


def expect_clustering(at: OpenCatalog, asked: ask.ExpectClustering) -> ask.ExpectedClustering:
    found = at.loaded(asked).expected_of_clustering(
        asked.predicate, limit_bytes=asked.limit_bytes, full=asked.goal.full
    )
    return ask.ExpectedClustering(
        **{name: getattr(found, name) for name in ask.ExpectedClustering.__struct_fields__}
    )


def _planned(files: pa.Table, groups: list[Group]) -> tuple[ask.CompactionPlan, Beside]:
    found = tuple(
        ask.CompactionGroup(
            files=group.files,
            rows=group.rows,
            size_bytes=group.size_bytes,
            deleted=group.deleted,
            tasks=group.tasks,
            spread=group.spread,
            cut=group.cut,
            cell=group.cell,
        )
        for group in groups
    )
    return ask.CompactionPlan(groups=found), files_in_arrow(files)


def commit(at: OpenCatalog, asked: ask.CommitCompaction) -> ask.Lost:
    groups = [Rewritten(removed=group.removed, files=group.files) for group in asked.groups]
    _, lost = at.writable(asked).commit_compaction(asked.write, groups, token=asked.token)
    return ask.Lost(lost=tuple(lost))

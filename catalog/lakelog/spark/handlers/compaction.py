"""The files that a compaction or a clustering rewrites, and its commit."""

from __future__ import annotations

import pyarrow as pa

from lakelog.catalog import engine
from lakelog.catalog.engine import ClusteringTarget, CompactionTarget, FileGroup, RewrittenFiles
from lakelog.spark.arrow_streams import files_in_arrow
from lakelog.spark.frames import Beside
from lakelog.spark.open_catalog import ServedCatalog
from lakelog.spark.requests import writes as ask


def plan(at: ServedCatalog, asked: ask.PlanCompaction) -> tuple[ask.CompactionPlan, Beside]:
    """The files of each group follow one another."""
    goal = CompactionTarget(
        target_size_bytes=asked.goal.target_size_bytes,
        deleted_ratio=asked.goal.deleted_ratio,
        fan_in=asked.goal.fan_in,
        joins=asked.goal.joins,
    )
    files, groups = engine.plan_compaction(
        at.loaded(asked), goal, asked.predicate, until=asked.until, limit_bytes=asked.limit_bytes
    )
    return _planned(files, groups)


def plan_clustering(at: ServedCatalog, asked: ask.PlanClustering) -> tuple[ask.CompactionPlan, Beside]:
    """The files of each group follow one another."""
    goal = ClusteringTarget(
        target_size_bytes=asked.goal.target_size_bytes,
        limit_bytes=asked.limit_bytes,
        fresh_min=asked.goal.fresh_min,
        full=asked.goal.full,
    )
    files, groups = engine.plan_clustering(
        at.loaded(asked), goal, asked.predicate, until=asked.until, key=asked.goal.key
    )
    return _planned(files, groups)


def expect_clustering(at: ServedCatalog, asked: ask.ExpectClustering) -> ask.ClusteringExpectation:
    expected = at.loaded(asked).expected_of_clustering(
        asked.predicate, limit_bytes=asked.limit_bytes, full=asked.goal.full
    )
    return ask.ClusteringExpectation(
        **{name: getattr(expected, name) for name in ask.ClusteringExpectation.__struct_fields__}
    )


def _planned(files: pa.Table, groups: list[FileGroup]) -> tuple[ask.CompactionPlan, Beside]:
    plan_groups = tuple(
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
    return ask.CompactionPlan(groups=plan_groups), files_in_arrow(files)


def commit(at: ServedCatalog, asked: ask.CommitCompaction) -> ask.LostGroups:
    groups = [RewrittenFiles(removed=group.removed, files=group.files) for group in asked.groups]
    _, lost_groups = engine.commit_compaction(at.writable(asked), asked.write, groups, token=asked.token)
    return ask.LostGroups(lost=tuple(lost_groups))

"""Which files a compaction rewrites, and its commit."""

from __future__ import annotations

from lakelog.catalog.state import Goal
from lakelog.catalog.writes import Rewritten
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
    )
    files, groups = at.loaded(asked).plan_compaction(
        goal, asked.predicate, until=asked.until, limit_bytes=asked.limit_bytes
    )
    found = tuple(
        ask.CompactionGroup(
            files=group.files,
            rows=group.rows,
            size_bytes=group.size_bytes,
            deleted=group.deleted,
            tasks=group.tasks,
            spread=group.spread,
        )
        for group in groups
    )
    return ask.CompactionPlan(groups=found), files_in_arrow(files)


def commit(at: OpenCatalog, asked: ask.CommitCompaction) -> ask.Lost:
    groups = [Rewritten(removed=group.removed, files=group.files) for group in asked.groups]
    _, lost = at.writable(asked).commit_compaction(asked.write, groups, token=asked.token)
    return ask.Lost(lost=tuple(lost))

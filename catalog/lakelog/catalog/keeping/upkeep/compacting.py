"""Compaction by upkeep: a step at a time, each in a commit, so that it can stop between any two steps.

A step takes files of about the same size (`CompactionTarget.fan_in`). So however often it runs, a row is
rewritten about once each time that its file grows by that factor. A step that loses to another client has
cost work, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec
import pyarrow as pa

from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.core.parquet import copied_files, leftovers
from lakelog.catalog.core.planning import ConstantCondition
from lakelog.catalog.core.policies import FAN_IN
from lakelog.catalog.core.schema import MaintenancePolicy, Metadata
from lakelog.catalog.core.state import ClusteringTarget, CompactionTarget, FileGroup, clustering_goal, goal_of
from lakelog.catalog.core.writes import RewrittenFiles, compaction_commit
from lakelog.log import WriteRef

FILES_AT_ONCE = 8
"""About this many files of the target size are written before they are committed."""


class Compacted(msgspec.Struct, frozen=True, kw_only=True):
    """The totals that were read, and written in their place.

    In `lost` steps, other clients committed first, or changed the files so that the new files cannot replace
    them. Files of these steps, `wasted_bytes`, are deleted again.
    """

    read_files: int = 0
    read_bytes: int = 0
    written_files: int = 0
    written_bytes: int = 0
    deleted_rows: int = 0
    lost: int = 0
    wasted_bytes: int = 0

    def and_(self, other: Compacted) -> Compacted:
        names = self.__struct_fields__
        return Compacted(**{name: getattr(self, name) + getattr(other, name) for name in names})


def goal_by(head: TableHead, policy: MaintenancePolicy, *, joins: bool = True) -> CompactionTarget:
    """Return upkeep's goal for a table's files. Unless it `joins`, small files are left to a clustering."""
    goal = goal_of(head.metadata.properties, None, policy.deleted_ratio)
    return CompactionTarget(
        target_size_bytes=goal.target_size_bytes,
        deleted_ratio=goal.deleted_ratio,
        fan_in=FAN_IN,
        joins=joins,
    )


def clustering_by(metadata: Metadata) -> ClusteringTarget | None:
    """Return how upkeep clusters a table.

    Rows without order wait until there are enough. None without a clustering.
    """
    if not metadata.clustering:
        return None
    return replace(clustering_goal(metadata.properties, None), fresh_min=FAN_IN)


def due(
    head: TableHead, goal: CompactionTarget, *, until: int, limit_bytes: int, only_own: bool = False
) -> tuple[pa.Table, list[FileGroup]]:
    """Return the next files to rewrite, up to about `limit_bytes` but at least a group, and their groups.

    Only files that existed at the version `until` count. With `only_own`, only files in the table's folder
    count.
    """
    return compaction_commit.plan_groups(
        head, goal, None, until=until, limit_bytes=limit_bytes, only_own=only_own
    )


def step(
    head: TableHead,
    goal: CompactionTarget,
    files: pa.Table,
    groups: list[FileGroup],
    check: Callable[[], None],
    *,
    unless_branched: bool = False,
) -> tuple[TableHead, Compacted]:
    """Rewrite `files`, which are due, in a single commit. Return the newest version.

    `check` is called before each batch of rows and before the commit. An error that it raises stops the step,
    and nothing is left of it. With `unless_branched`, the step is lost if the table has branches by then.
    """
    write = head.begin_write()
    copies = copied_files(
        head, files, ConstantCondition(False), write, target_size_bytes=goal.most_bytes, check=check
    )
    written_bytes = sum(file.size_bytes for file in copies)
    groups_of = [RewrittenFiles(files["path"].to_pylist(), copies)]
    head, lost_groups = committed(head, groups_of, write, check, unless_branched=unless_branched)
    if lost_groups:
        return head, Compacted(lost=1, wasted_bytes=written_bytes)
    return head, Compacted(
        read_files=files.num_rows,
        read_bytes=sum(group.size_bytes for group in groups),
        written_files=len(copies),
        written_bytes=written_bytes,
        deleted_rows=sum(group.deleted for group in groups),
    )


def committed(
    head: TableHead,
    groups: Sequence[RewrittenFiles],
    write: WriteRef,
    check: Callable[[], None],
    *,
    unless_branched: bool = False,
) -> tuple[TableHead, list[int]]:
    """Commit the copies of groups of files. Return the newest version, and the groups lost to other writers.

    Nothing is left of lost groups, or of any group if `check` raises.
    """
    with leftovers.kept_by_commit(head.tracked, [file for group in groups for file in group.files]):
        check()
        head, lost_groups = compaction_commit.commit(
            head, groups, write=write, token=None, unless_branched=unless_branched
        )
    if lost_groups:
        leftovers.delete(head.tracked, [file.path for at in lost_groups for file in groups[at].files])
    return head, lost_groups

"""Compaction by upkeep: a step at a time, each one commit, so that it can stop between any two.

It takes files of about one size (`Goal.fan_in`): however often it runs, a row is rewritten about once for each time
that its file grows by that factor. A step that loses to another client has cost work, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec
import pyarrow as pa

from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.core.parquet import copied_files, leftovers
from lakelog.catalog.core.planning import Constant
from lakelog.catalog.core.schema import Metadata, Policy
from lakelog.catalog.core.state import ClusteringGoal, Goal, Group, clustering_goal, goal_of
from lakelog.catalog.core.writes import Rewritten, compaction_commit
from lakelog.log import WriteRef

FAN_IN = 8
FILES_AT_ONCE = 8
"""About this many files of the target size are written before they are committed."""


class Compacted(msgspec.Struct, frozen=True, kw_only=True):
    """What was read, and written in place of it. `lost` steps were committed by others first, or their files changed so
    that the new ones cannot stand for them: what was written then, `wasted_bytes`, is deleted again."""

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


def goal_by(head: TableHead, policy: Policy, *, joins: bool = True) -> Goal:
    """Return what upkeep makes of a table's files; unless it `joins`, small ones are left to a clustering."""
    goal = goal_of(head.metadata.properties, None, policy.deleted_ratio)
    return Goal(
        target_size_bytes=goal.target_size_bytes,
        deleted_ratio=goal.deleted_ratio,
        fan_in=FAN_IN,
        joins=joins,
    )


def clustering_by(metadata: Metadata) -> ClusteringGoal | None:
    """Return how upkeep clusters a table: what has no order waits until there is enough of it. None for one that is not
    clustered."""
    if not metadata.clustering:
        return None
    return replace(clustering_goal(metadata.properties, None), fresh_min=FAN_IN)


def due(
    head: TableHead, goal: Goal, *, until: int, limit_bytes: int, only_own: bool = False
) -> tuple[pa.Table, list[Group]]:
    """Return the next files to be rewritten, up to about `limit_bytes` but one group at least, and their groups; of
    those that were there at the version `until`, and, with `only_own`, that lie in the table's folder."""
    return compaction_commit.plan_groups(
        head, goal, None, until=until, limit_bytes=limit_bytes, only_own=only_own
    )


def step(
    head: TableHead,
    goal: Goal,
    files: pa.Table,
    groups: list[Group],
    check: Callable[[], None],
    *,
    unless_branched: bool = False,
) -> tuple[TableHead, Compacted]:
    """Rewrite `files`, which are due, as one commit; return the newest version. What `check` raises, before each batch
    of rows and before the commit, stops it: then nothing is left of the step. `unless_branched`: it is lost where the
    table has branches by then."""
    write = head.begin_write()
    copied = copied_files(head, files, Constant(False), write, target_size_bytes=goal.most_bytes, check=check)
    written = sum(file.size_bytes for file in copied)
    groups_of = [Rewritten(files["path"].to_pylist(), copied)]
    head, lost = committed(head, groups_of, write, check, unless_branched=unless_branched)
    if lost:
        return head, Compacted(lost=1, wasted_bytes=written)
    return head, Compacted(
        read_files=files.num_rows,
        read_bytes=sum(group.size_bytes for group in groups),
        written_files=len(copied),
        written_bytes=written,
        deleted_rows=sum(group.deleted for group in groups),
    )


def committed(
    head: TableHead,
    groups: Sequence[Rewritten],
    write: WriteRef,
    check: Callable[[], None],
    *,
    unless_branched: bool = False,
) -> tuple[TableHead, list[int]]:
    """Commit the copies of groups of files; return the newest version, and which were lost to other writers. Of those,
    and of all where `check` raises, nothing is left."""
    with leftovers.kept_by_commit(head.tracked, [file for group in groups for file in group.files]):
        check()
        head, lost = compaction_commit.commit(
            head, groups, write=write, token=None, unless_branched=unless_branched
        )
    if lost:
        leftovers.delete(head.tracked, [file.path for at in lost for file in groups[at].files])
    return head, lost

"""A table's health, computed from its files' entries and its commits. Pure: no request, no clock.

The real planner of an action plans its reads and writes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.choices import CLUSTER, COMPACT, EXPIRE, STATISTICS, VACUUM
from lakelog.catalog.core.files import DELETED, TableEstimates, physical_rows
from lakelog.catalog.core.schema import Metadata, dotted
from lakelog.catalog.core.state import (
    HistoryEntry,
    OperationKind,
    curve_to_plan_by,
    goal_of,
    plan_clustering,
    plan_compaction,
)
from lakelog.catalog.keeping.maintenance.expire import EXPIRE_DEFAULT_AGE
from lakelog.catalog.keeping.upkeep.compacting import clustering_by
from lakelog.catalog.keeping.upkeep.model import Advice, LastDay, SizeClass
from lakelog.catalog.keeping.upkeep.words import call, command_name, size_text
from lakelog.catalog.names import Identifier
from lakelog.catalog.retention import DAY_US
from lakelog.catalog.times import age_text, time_us

SMALL = 0.75
"""Files below this share of the target size are small.

A compaction joins small files (see `state.compaction`).
"""

_ALL_BYTES = 1 << 62
_UPKEEP = {COMPACT, EXPIRE, VACUUM, OperationKind.COMPUTE_STATISTICS.value}
_CLASSES = (
    16 << 10,
    128 << 10,
    1 << 20,
    4 << 20,
    16 << 20,
    64 << 20,
    128 << 20,
    256 << 20,
    512 << 20,
    1 << 30,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFacts:
    """The facts of a commit that count: its operations, the versions it was rebased over, and its removals."""

    version: int
    time_us: int
    operations: frozenset[str]
    passed: int = 0
    removed_files: int = 0
    removed_bytes: int = 0

    @property
    def is_upkeep(self) -> bool:
        return bool(self.operations) and self.operations <= _UPKEEP


def done_of(entry: HistoryEntry) -> CommitFacts:
    """Return the facts of a history entry that count."""
    parts = entry.details.get("changes")
    changes = parts if isinstance(parts, list) else [entry.details]

    def total(name: str) -> int:
        numbers = [part.get(name) for part in changes if isinstance(part, dict)]
        return sum(number for number in numbers if isinstance(number, int) and number > 0)

    return CommitFacts(
        version=entry.version,
        time_us=time_us(entry.committed_at),
        operations=frozenset(entry.operation.split(", ")),
        passed=max(0, entry.version - 1 - entry.base),
        removed_files=total("removed_files"),
        removed_bytes=total("removed_bytes"),
    )


def last_day(commit_facts: Iterable[CommitFacts], now_us: int) -> LastDay:
    """Return the counts of the last 24 hours."""
    recent = [commit for commit in commit_facts if commit.time_us > now_us - DAY_US]
    data_commits = [commit for commit in recent if not commit.is_upkeep]
    return LastDay(
        commits=len(recent),
        upkeep=len(recent) - len(data_commits),
        rebased=sum(1 for commit in data_commits if commit.passed),
        passed=sum(commit.passed for commit in data_commits),
    )


def size_classes(files: pa.Table) -> tuple[SizeClass, ...]:
    """Return the files by size."""
    sizes = files["size"]
    classes, lower_bytes = [], 0
    for below in (*_CLASSES, 1 << 62):
        class_sizes = pc.filter(sizes, pc.and_(pc.greater_equal(sizes, lower_bytes), pc.less(sizes, below)))
        if len(class_sizes):
            total = int(pc.sum(class_sizes).as_py())
            classes.append(SizeClass(below_bytes=below, files=len(class_sizes), size_bytes=total))
        lower_bytes = below
    return tuple(classes)


def deleted_rows(files: pa.Table) -> int:
    return int(pc.sum(files[DELETED]).as_py() or 0) if DELETED in files.column_names else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceSubject:
    """The table that advice is for.

    `oldest` is the first readable version. `newest` is the present version. `done` has commits, the newest
    first. It need not have all of them.
    """

    path: Identifier | None
    location: str
    metadata: Metadata
    estimates: TableEstimates | None
    oldest: int
    newest: int
    done: Sequence[CommitFacts]
    now_us: int
    deleted_ratio: float | None = None
    keep_for: dt.timedelta | None = None
    keeps_all: bool = False

    @property
    def name(self) -> str:
        return command_name(self.path, self.location)

    @property
    def old_versions(self) -> int:
        return self.newest - self.oldest


def advice_for(table: AdviceSubject, files: pa.Table) -> tuple[Advice, ...]:
    """Return advice on good and bad facts, each bad fact with its remedy."""
    advice = [
        *_compaction(table, files),
        *_clustering(table, files),
        *_expiry(table),
        *_vacuum(table),
        *_statistics(table, files),
    ]
    return tuple(advice) or (_nothing_to_do(table),)


def _nothing_to_do(table: AdviceSubject) -> Advice:
    """Return advice on a table that needs no work.

    It names the command that expires young versions.
    """
    if not table.old_versions:
        return Advice(level="good", what="No file needs to be rewritten, and no old version is kept.")
    count = table.old_versions
    count_text = "1 old version is kept" if count == 1 else f"{count:,} old versions are kept"
    if table.keeps_all:
        return Advice(level="good", what=f"No file needs to be rewritten. {count_text}, as the policy says.")
    return Advice(
        level="good",
        what=f"No file needs to be rewritten. {count_text}, replaced less than {_words_of(_keep_age(table))} ago. "
        "To keep only the present version:",
        command=f"lakelog expire {table.name} --retain-last 1 --apply",
        sql=call("expire", table.path, ", retain_last => 1, dry_run => false"),
    )


def _compaction(table: AdviceSubject, files: pa.Table) -> list[Advice]:
    goal = goal_of(table.metadata.properties, None, table.deleted_ratio)
    is_own = goal == goal_of(table.metadata.properties, None, None)
    # In a clustered table, the clustering decides which rows belong together.
    plan_goal = replace(goal, joins=not table.metadata.clustering)
    rewritten, groups = plan_compaction(
        files, table.metadata, plan_goal, until=_ALL_BYTES, limit_bytes=_ALL_BYTES
    )
    old_count, new_count = sum(group.files for group in groups), sum(group.tasks for group in groups)
    advice: list[Advice] = []
    dead_rows, live = deleted_rows(files), int(pc.sum(files["rows"]).as_py() or 0)
    share = f"{dead_rows / (live + dead_rows):.0%}" if live + dead_rows else "none"
    if groups:
        read_bytes = sum(group.size_bytes for group in groups)
        removed_rows = sum(group.deleted for group in groups)
        text = (
            f"A compaction would turn {old_count:,} files ({size_text(read_bytes)}) into about {new_count:,}"
        )
        if removed_rows:
            text += f", without {removed_rows:,} deleted rows"
        is_urgent = old_count >= 100 or old_count > 10 * new_count
        of_all = pc.divide(rewritten["rows"].cast(pa.float64()), physical_rows(rewritten).cast(pa.float64()))
        advice.append(
            Advice(
                level="should" if is_urgent else "could",
                what=f"{text}.",
                command=f"lakelog compact {table.name}"
                + ("" if is_own else f" --deleted-ratio {goal.deleted_ratio:g}"),
                sql=call(
                    "compact", table.path, "" if is_own else f", deleted_ratio => {goal.deleted_ratio:g}"
                ),
                action=COMPACT,
                reads_files=old_count,
                reads_bytes=read_bytes,
                writes_files=new_count,
                writes_bytes=int(pc.sum(pc.multiply(rewritten["size"].cast(pa.float64()), of_all)).as_py()),
                saves_files=old_count - new_count,
            )
        )
    if dead_rows and not any(group.deleted for group in groups):
        text = f"{dead_rows:,} rows ({share}) are deleted and still in their files, fewer than a compaction looks for."
        advice.append(Advice(level="good", what=text))
    return advice


def _clustering(table: AdviceSubject, files: pa.Table) -> list[Advice]:
    """Return advice on the files that upkeep would cluster next."""
    goal = clustering_by(table.metadata)
    if goal is None:
        return []
    stale, groups = plan_clustering(
        files,
        table.metadata,
        curve_to_plan_by(table.metadata),
        replace(goal, limit_bytes=_ALL_BYTES),
        until=_ALL_BYTES,
    )
    if not groups:
        return []
    size_bytes, new_count = sum(group.size_bytes for group in groups), sum(group.tasks for group in groups)
    keys = ", ".join(map(dotted, map(table.metadata.schema.path_of, table.metadata.clustering)))
    return [
        Advice(
            level="should" if stale.num_rows * 2 > files.num_rows else "could",
            what=f"{stale.num_rows:,} of {files.num_rows:,} files ({size_text(size_bytes)}) are not in the order of "
            f"CLUSTER BY ({keys}), or overlap too many others: clustering them would make about {new_count:,} files.",
            command=f"lakelog cluster {table.name}",
            sql=call("cluster", table.path),
            action=CLUSTER,
            reads_files=stale.num_rows,
            reads_bytes=size_bytes,
            writes_files=new_count,
            writes_bytes=size_bytes,
            saves_files=max(0, stale.num_rows - new_count),
        )
    ]


def _expiry(table: AdviceSubject) -> list[Advice]:
    """Return advice on versions that were replaced long ago.

    For each version, the time of the next version counts.
    """
    if table.keeps_all:
        return []
    age = _keep_age(table)
    until_us = table.now_us - age // dt.timedelta(microseconds=1)
    # Several changes may share a version.
    times = {commit.version: commit.time_us for commit in table.done}
    old = [version for version in times if times.get(version + 1, until_us) < until_us]
    if not old:
        return []
    first_kept, first = max(old) + 1, min(times)
    count = first_kept - table.oldest
    older = "" if table.keep_for is None else f" --older-than {age_text(age)}"
    sql = "" if table.keep_for is None else f", older_than => INTERVAL '{round(age.total_seconds())}' SECOND"
    return [
        Advice(
            level="could",
            what=f"{count:,} versions were replaced more than {_words_of(age)} ago and are still kept.",
            command=f"lakelog expire {table.name}{older} --apply",
            sql=call("expire", table.path, f"{sql}, dry_run => false"),
            action=EXPIRE,
            frees_bytes=sum(commit.removed_bytes for commit in table.done if commit.version <= first_kept)
            if first <= table.oldest + 1
            else None,
            requests=4 * count,
        )
    ]


def _keep_age(table: AdviceSubject) -> dt.timedelta:
    return EXPIRE_DEFAULT_AGE if table.keep_for is None else table.keep_for


def _words_of(age: dt.timedelta) -> str:
    return f"{age.days} days" if age >= dt.timedelta(days=1) else age_text(age)


def _vacuum(table: AdviceSubject) -> list[Advice]:
    last_expiry = max((commit.version for commit in table.done if EXPIRE in commit.operations), default=0)
    last_vacuum = max((commit.version for commit in table.done if VACUUM in commit.operations), default=0)
    if last_expiry <= last_vacuum:
        return []
    return [vacuum_advice(table.path, table.location, None, None)]


def vacuum_advice(
    path: Identifier | None, location: str, files: int | None, size_bytes: int | None
) -> Advice:
    """Return the advice that a vacuum would delete so many objects, if they were counted."""
    summary = "Versions have expired, and no vacuum has deleted since what only they had."
    if files is not None:
        summary = (
            f"A vacuum would delete {files:,} objects ({size_text(size_bytes or 0)}), which no version has."
        )
    return Advice(
        level="could",
        what=summary,
        command=f"lakelog vacuum {command_name(path, location)} --apply",
        sql=call("vacuum", path, ", dry_run => false"),
        action=VACUUM,
        frees_bytes=size_bytes,
    )


def _statistics(table: AdviceSubject, files: pa.Table) -> list[Advice]:
    stats = table.estimates
    if stats is None or not stats.added_since:
        return []
    return [
        Advice(
            level="could",
            what=f"The statistics for query planners are of version {stats.version:,}, and {stats.added_since:,} rows "
            "were added since: planners do not rely on them.",
            sql=call("compute_statistics", table.path),
            action=STATISTICS,
            reads_files=files.num_rows,
            reads_bytes=int(pc.sum(files["size"]).as_py() or 0),
            writes_files=0,
            writes_bytes=0,
        )
    ]

"""A table's health, computed from its files' entries and its commits. Pure: no request, no clock.

What an action would read and write is planned in earnest, by the piece that plans it when it is done.
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
    Operation,
    curve_to_plan_by,
    goal_of,
    plan_clustering,
    plan_compaction,
)
from lakelog.catalog.keeping.maintenance import EXPIRE_DEFAULT_AGE
from lakelog.catalog.keeping.upkeep.compacting import clustering_by
from lakelog.catalog.keeping.upkeep.model import Advice, LastDay, SizeClass
from lakelog.catalog.keeping.upkeep.words import call, command_name, size_text
from lakelog.catalog.names import Identifier
from lakelog.catalog.retention import DAY_US
from lakelog.catalog.times import age_text

SMALL = 0.75
"""Files below this share of the target size are small: a compaction joins those (see `state.compaction`)."""

_ALL_BYTES = 1 << 62
_UPKEEP = {COMPACT, EXPIRE, VACUUM, Operation.COMPUTE_STATISTICS.value}
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
class Done:
    """What counts of a commit: its operations, the versions that it was rebased over, and what it removed."""

    version: int
    time_us: int
    operations: frozenset[str]
    passed: int = 0
    removed_files: int = 0
    removed_bytes: int = 0

    @property
    def is_upkeep(self) -> bool:
        return bool(self.operations) and self.operations <= _UPKEEP


def done_of(entry: HistoryEntry) -> Done:
    """Return what counts of an entry of the history."""
    parts = entry.details.get("changes")
    each = parts if isinstance(parts, list) else [entry.details]

    def total(name: str) -> int:
        numbers = [part.get(name) for part in each if isinstance(part, dict)]
        return sum(number for number in numbers if isinstance(number, int) and number > 0)

    return Done(
        version=entry.version,
        time_us=entry.timestamp_us,
        operations=frozenset(entry.operation.split(", ")),
        passed=max(0, entry.version - 1 - entry.base),
        removed_files=total("removed_files"),
        removed_bytes=total("removed_bytes"),
    )


def last_day(done: Iterable[Done], now_us: int) -> LastDay:
    """Return the counts of the last 24 hours."""
    recent = [each for each in done if each.time_us > now_us - DAY_US]
    written = [each for each in recent if not each.is_upkeep]
    return LastDay(
        commits=len(recent),
        upkeep=len(recent) - len(written),
        rebased=sum(1 for each in written if each.passed),
        passed=sum(each.passed for each in written),
    )


def size_classes(files: pa.Table) -> tuple[SizeClass, ...]:
    """Return the files by size."""
    sizes = files["size"]
    found, before = [], 0
    for below in (*_CLASSES, 1 << 62):
        those = pc.filter(sizes, pc.and_(pc.greater_equal(sizes, before), pc.less(sizes, below)))
        if len(those):
            total = int(pc.sum(those).as_py())
            found.append(SizeClass(below_bytes=below, files=len(those), size_bytes=total))
        before = below
    return tuple(found)


def deleted_rows(files: pa.Table) -> int:
    return int(pc.sum(files[DELETED]).as_py() or 0) if DELETED in files.column_names else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The table that advice is for. `oldest` is the first version that can be read; `done` are commits, the newest
    first, not always all."""

    path: Identifier | None
    location: str
    metadata: Metadata
    estimates: TableEstimates | None
    oldest: int
    done: Sequence[Done]
    now_us: int
    deleted_ratio: float | None = None
    keep_for: dt.timedelta | None = None
    keeps_all: bool = False

    @property
    def name(self) -> str:
        return command_name(self.path, self.location)


def advice_for(table: Subject, files: pa.Table) -> tuple[Advice, ...]:
    """Return what is well and what is not, each with the command that mends it."""
    found = [
        *_compaction(table, files),
        *_clustering(table, files),
        *_expiry(table),
        *_vacuum(table),
        *_statistics(table, files),
    ]
    return tuple(found) or (
        Advice(level="good", what="No file needs to be rewritten, and no old version is kept."),
    )


def _compaction(table: Subject, files: pa.Table) -> list[Advice]:
    goal = goal_of(table.metadata.properties, None, table.deleted_ratio)
    is_own = goal == goal_of(table.metadata.properties, None, None)
    # What belongs together in a clustered table is for its clustering to say.
    planned = replace(goal, joins=not table.metadata.clustering)
    rewritten, groups = plan_compaction(
        files, table.metadata, planned, until=_ALL_BYTES, limit_bytes=_ALL_BYTES
    )
    before, after = sum(group.files for group in groups), sum(group.tasks for group in groups)
    found: list[Advice] = []
    deleted, live = deleted_rows(files), int(pc.sum(files["rows"]).as_py() or 0)
    share = f"{deleted / (live + deleted):.0%}" if live + deleted else "none"
    if groups:
        read = sum(group.size_bytes for group in groups)
        gone = sum(group.deleted for group in groups)
        what = f"A compaction would turn {before:,} files ({size_text(read)}) into about {after:,}"
        if gone:
            what += f", without {gone:,} deleted rows"
        is_urgent = before >= 100 or before > 10 * after
        of_all = pc.divide(rewritten["rows"].cast(pa.float64()), physical_rows(rewritten).cast(pa.float64()))
        found.append(
            Advice(
                level="should" if is_urgent else "could",
                what=f"{what}.",
                command=f"lakelog compact {table.name}"
                + ("" if is_own else f" --deleted-ratio {goal.deleted_ratio:g}"),
                sql=call(
                    "compact", table.path, "" if is_own else f", deleted_ratio => {goal.deleted_ratio:g}"
                ),
                action=COMPACT,
                reads_files=before,
                reads_bytes=read,
                writes_files=after,
                writes_bytes=int(pc.sum(pc.multiply(rewritten["size"].cast(pa.float64()), of_all)).as_py()),
                saves_files=before - after,
            )
        )
    if deleted and not any(group.deleted for group in groups):
        what = f"{deleted:,} rows ({share}) are deleted and still in their files, fewer than a compaction looks for."
        found.append(Advice(level="good", what=what))
    return found


def _clustering(table: Subject, files: pa.Table) -> list[Advice]:
    """What its upkeep would put in order next."""
    goal = clustering_by(table.metadata)
    if goal is None:
        return []
    found, groups = plan_clustering(
        files,
        table.metadata,
        curve_to_plan_by(table.metadata),
        replace(goal, limit_bytes=_ALL_BYTES),
        until=_ALL_BYTES,
    )
    if not groups:
        return []
    size_bytes, after = sum(group.size_bytes for group in groups), sum(group.tasks for group in groups)
    keys = ", ".join(map(dotted, map(table.metadata.schema.path_of, table.metadata.clustering)))
    return [
        Advice(
            level="should" if found.num_rows * 2 > files.num_rows else "could",
            what=f"{found.num_rows:,} of {files.num_rows:,} files ({size_text(size_bytes)}) are not in the order of "
            f"CLUSTER BY ({keys}), or overlap too many others: clustering them would make about {after:,} files.",
            command=f"lakelog cluster {table.name}",
            sql=call("cluster", table.path),
            action=CLUSTER,
            reads_files=found.num_rows,
            reads_bytes=size_bytes,
            writes_files=after,
            writes_bytes=size_bytes,
            saves_files=max(0, found.num_rows - after),
        )
    ]


def _expiry(table: Subject) -> list[Advice]:
    """Versions that were replaced long ago: of each, the time of the next one counts."""
    if table.keeps_all:
        return []
    age = EXPIRE_DEFAULT_AGE if table.keep_for is None else table.keep_for
    until_us = table.now_us - age // dt.timedelta(microseconds=1)
    # Several changes may share a version.
    times = {each.version: each.time_us for each in table.done}
    old = [version for version in times if times.get(version + 1, until_us) < until_us]
    if not old:
        return []
    kept, first = max(old) + 1, min(times)
    count = kept - table.oldest
    said = f"{age.days} days" if age >= dt.timedelta(days=1) else age_text(age)
    older = "" if table.keep_for is None else f" --older-than {age_text(age)}"
    sql = "" if table.keep_for is None else f", older_than => INTERVAL '{round(age.total_seconds())}' SECOND"
    return [
        Advice(
            level="could",
            what=f"{count:,} versions were replaced more than {said} ago and are still kept.",
            command=f"lakelog expire {table.name}{older} --apply",
            sql=call("expire", table.path, f"{sql}, dry_run => false"),
            action=EXPIRE,
            frees_bytes=sum(each.removed_bytes for each in table.done if each.version <= kept)
            if first <= table.oldest + 1
            else None,
            requests=4 * count,
        )
    ]


def _vacuum(table: Subject) -> list[Advice]:
    expired = max((each.version for each in table.done if EXPIRE in each.operations), default=0)
    vacuumed = max((each.version for each in table.done if VACUUM in each.operations), default=0)
    if expired <= vacuumed:
        return []
    return [vacuum_advice(table.path, table.location, None, None)]


def vacuum_advice(
    path: Identifier | None, location: str, files: int | None, size_bytes: int | None
) -> Advice:
    """Return that a vacuum would delete so many objects, where they were counted."""
    what = "Versions have expired, and no vacuum has deleted since what only they had."
    if files is not None:
        what = (
            f"A vacuum would delete {files:,} objects ({size_text(size_bytes or 0)}), which no version has."
        )
    return Advice(
        level="could",
        what=what,
        command=f"lakelog vacuum {command_name(path, location)} --apply",
        sql=call("vacuum", path, ", dry_run => false"),
        action=VACUUM,
        frees_bytes=size_bytes,
    )


def _statistics(table: Subject, files: pa.Table) -> list[Advice]:
    known = table.estimates
    if known is None or not known.added_since:
        return []
    return [
        Advice(
            level="could",
            what=f"The statistics for query planners are of version {known.version:,}, and {known.added_since:,} rows "
            "were added since: planners do not rely on them.",
            sql=call("compute_statistics", table.path),
            action=STATISTICS,
            reads_files=files.num_rows,
            reads_bytes=int(pc.sum(files["size"]).as_py() or 0),
            writes_files=0,
            writes_bytes=0,
        )
    ]

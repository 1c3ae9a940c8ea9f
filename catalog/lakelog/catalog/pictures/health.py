"""What can be said of a table's health from its metadata alone, each with the command that mends it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

import pyarrow as pa

from lakelog.catalog.maintenance import EXPIRE_DEFAULT_AGE
from lakelog.catalog.names import Identifier, quoted
from lakelog.catalog.pictures.model import Advice, Change, Layout, Log
from lakelog.catalog.pictures.words import quoted_where_needed, size_text
from lakelog.catalog.schema import Metadata
from lakelog.catalog.state import Goal, goal_of, plan_compaction
from lakelog.log.secrets import masked_urls

_ALL_BYTES = 1 << 62


def command_name(path: Identifier | None, location: str) -> str:
    """Return a table or namespace as a command line has it."""
    return shlex.quote(masked_urls(location) if path is None else quoted_where_needed(path))


def health_of_table(
    files: pa.Table,
    layout: Layout,
    metadata: Metadata,
    changes: Sequence[Change],
    path: Identifier | None,
    location: str,
    now_us: int,
) -> tuple[Advice, ...]:
    """Return what is well and what is not, of a table at its newest version."""
    name = command_name(path, location)
    found = list(damage_of(changes, path, location))
    found += _compaction(files, layout, metadata, name, path)
    found += _expiry(changes, name, path, now_us)
    found += _vacuum(changes, name, path)
    return tuple(found) or (
        Advice(level="good", what="No file needs to be rewritten, and no old version is kept."),
    )


def damage_of(changes: Iterable[Change], path: Identifier | None, location: str) -> list[Advice]:
    """Return the damage that was met where the log of a table or namespace, or those below it, were read."""
    met = [change for change in changes if change.kind == "damage"]
    if not met:
        return []
    if path is None:
        command = f"lakelog fsck {command_name(None, location)}"
    else:
        command = (
            f'lakelog fsck "$LAKELOG_WAREHOUSE" {command_name(path, location)}' if path else "lakelog fsck"
        )
    return [Advice(level="damage", what=f"{len(met):,} × damage: {met[0].text}", command=command)]


def damaged_logs(logs: Sequence[Log]) -> list[Advice]:
    """Return the logs that cannot be read."""
    return [
        Advice(
            level="damage",
            what=f"The {log.kind} {log.name} cannot be read: {log.problem}",
            command=f"lakelog fsck {shlex.quote(log.location)}" if log.location else "lakelog fsck",
        )
        for log in logs
        if log.problem is not None
    ]


def _compaction(
    files: pa.Table, layout: Layout, metadata: Metadata, name: str, path: Identifier | None
) -> list[Advice]:
    goal: Goal = goal_of(metadata.properties, None, None)
    _, groups = plan_compaction(files, metadata, goal, until=_ALL_BYTES, limit_bytes=_ALL_BYTES)
    before, after = sum(group.files for group in groups), sum(group.tasks for group in groups)
    found: list[Advice] = []
    deleted, all_rows = layout.deleted_rows, layout.rows + layout.deleted_rows
    share = f"{deleted / all_rows:.0%}" if all_rows else "none"
    if groups:
        size = size_text(sum(group.size_bytes for group in groups))
        gone = sum(group.deleted for group in groups)
        what = f"A compaction would turn {before:,} files ({size}) into about {after:,}"
        if gone:
            what += f", without {gone:,} deleted rows"
        is_urgent = before >= 100 or before > 10 * after
        found.append(
            Advice(
                level="should" if is_urgent else "could",
                what=f"{what}.",
                command=f"lakelog compact {name}",
                sql=None if path is None else _call("compact", path),
            )
        )
    if deleted and not any(group.deleted for group in groups):
        what = f"{deleted:,} rows ({share}) are deleted and still in their files, fewer than a compaction looks for."
        found.append(Advice(level="good", what=what))
    return found


def _call(procedure: str, path: Identifier, more: str = "") -> str:
    table = quoted(path).replace("\\", "\\\\").replace("'", "\\'")
    return f"CALL lake.system.{procedure}(table => '{table}'{more})"


def _expiry(changes: Sequence[Change], name: str, path: Identifier | None, now_us: int) -> list[Advice]:
    """Versions that were replaced long ago: of each, the time of the next one counts."""
    until_us = now_us - int(EXPIRE_DEFAULT_AGE.total_seconds() * 1e6)
    times = {change.version: change.time_us for change in changes if change.kind == "commit"}
    old = sum(
        1 for version in times if (replaced := times.get(version + 1)) is not None and replaced < until_us
    )
    older = any(change.kind == "older" for change in changes)
    if not old:
        return []
    days = EXPIRE_DEFAULT_AGE.days
    what = f"{old:,}{' or more' if older else ''} versions were replaced more than {days} days ago and are still kept."
    found = Advice(level="could", what=what, command=f"lakelog expire {name} --apply")
    return [found] if path is None else [_with_sql(found, _call("expire", path, ", dry_run => false"))]


def _vacuum(changes: Sequence[Change], name: str, path: Identifier | None) -> list[Advice]:
    expired = max((change.version for change in changes if _did(change, "expire")), default=0)
    vacuumed = max((change.version for change in changes if _did(change, "vacuum")), default=0)
    if expired <= vacuumed:
        return []
    what = "Versions have expired, and no vacuum has deleted since what only they had."
    found = Advice(level="could", what=what, command=f"lakelog vacuum {name} --apply")
    return [found] if path is None else [_with_sql(found, _call("vacuum", path, ", dry_run => false"))]


def _did(change: Change, operation: str) -> bool:
    return operation in change.operation.split(", ")


def _with_sql(advice: Advice, sql: str) -> Advice:
    return Advice(level=advice.level, what=advice.what, command=advice.command, sql=sql)

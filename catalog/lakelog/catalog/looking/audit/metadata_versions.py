"""The metadata tables about a table's versions: detail, history, snapshots, refs and log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

import msgspec
import pyarrow as pa

from lakelog.catalog.core.files import FileSet
from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.core.state import MAIN, TableState, entry_of, operation_of
from lakelog.log import Commit, LogView
from lakelog.log.errors import NotFound

ROWS_PER_CHUNK = 1024

_TIME = pa.timestamp("us", "UTC")
_TEXTS = pa.map_(pa.string(), pa.string())

_WRITER = ("user", "engine", "client", "application", "host", "query", "statement")
_COUNTED = ("inserted", "updated", "deleted", "copied")

HISTORY = pa.schema(
    [
        pa.field("made_current_at", _TIME, nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("is_current_ancestor", pa.bool_(), nullable=False),
        pa.field("operation", pa.string(), nullable=False),
        pa.field("details", pa.string()),
        *(pa.field(name, pa.string()) for name in _WRITER),
        pa.field("base", pa.int64(), nullable=False),
        pa.field("commit_id", pa.string(), nullable=False),
        *(pa.field(f"rows_{name}", pa.int64()) for name in _COUNTED),
    ]
)
"""A row for each commit, the newest first.

`details` is JSON. Row counts are NULL if they are not known, or if the commit changes no rows.
"""

SNAPSHOTS = pa.schema(
    [
        pa.field("committed_at", _TIME, nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("operation", pa.string()),
        pa.field("summary", _TEXTS, nullable=False),
    ]
)
"""A row for each version that can be read, the oldest first.

`summary` has counts by Iceberg's names. After an expiry, the oldest retained version has the `operation`
NULL, and only totals.
"""

DETAIL = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("created_at", _TIME),
        pa.field("modified_at", _TIME),
        pa.field("record_count", pa.int64(), nullable=False),
        pa.field("file_count", pa.int64(), nullable=False),
        pa.field("total_data_file_size_in_bytes", pa.int64(), nullable=False),
    ]
)
"""A single row that sums up a version.

Reads none of its files, and of its history only the first commit. `created_at` is NULL if that commit has
expired, or if another table was at the place before. Both times are NULL if the transaction creates the
table.
"""

REFS = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
    ]
)

LOG = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("committed_at", _TIME, nullable=False),
        pa.field("commit_id", pa.string(), nullable=False),
        pa.field("base", pa.int64(), nullable=False),
        pa.field("writer", pa.string(), nullable=False),
        pa.field("events", pa.string(), nullable=False),
        pa.field("sidecars", pa.int64(), nullable=False),
        pa.field("hash", pa.string(), nullable=False),
    ]
)
"""A row for each commit, the oldest first: `writer` and `events` are JSON as in the log."""

_SUMMARY = {
    "added_files": "added-data-files",
    "added_rows": "added-records",
    "added_bytes": "added-files-size",
    "removed_files": "deleted-data-files",
    "removed_rows": "deleted-records",
    "removed_bytes": "removed-files-size",
    "deleted_rows": "added-position-deletes",
}
_TOTALS = ("total-data-files", "total-records", "total-files-size")


def history(table: TableHead, wanted_schema: pa.Schema) -> Iterator[pa.Table]:
    return _chunks(_history_rows(table.changes(newest_first=True)), wanted_schema)


def _history_rows(newest_first: Iterable[Commit]) -> Iterator[dict[str, Any]]:
    rollback_target: int | None = None
    for commit in newest_first:
        entry = entry_of(commit)
        if rollback_target is not None and commit.version <= rollback_target:
            rollback_target = None
        is_ancestor = rollback_target is None
        yield {
            "made_current_at": commit.time_us,
            "version": entry.version,
            "is_current_ancestor": is_ancestor,
            "operation": entry.operation,
            "details": _json(entry.details) if entry.details else None,
            **{name: entry.writer.get(name) for name in _WRITER},
            "base": entry.base,
            "commit_id": entry.commit_id,
            **{
                f"rows_{name}": None if entry.rows is None else getattr(entry.rows, name) for name in _COUNTED
            },
        }
        if is_ancestor:
            rollback_target = _continues_from(commit)


def _continues_from(commit: Commit) -> int | None:
    """Return the version whose rows `commit` continues.

    None is the version before it, 0 no version at all.
    """
    for event in reversed(commit.events):
        if event["event"] == "rolled-back":
            return int(event["version"])
        if event["event"] == "table-replaced":
            return 0
    return None


def snapshots(table: TableHead, wanted_schema: pa.Schema) -> Iterator[pa.Table]:
    return _chunks(_snapshot_rows(table), wanted_schema)


def _snapshot_rows(table: TableHead) -> Iterator[dict[str, Any]]:
    if table.tracked.transaction.creates_log:
        return
    commits = table.commits()
    first = next(commits, None)
    oldest = _before(table, first)
    if oldest is not None:
        totals = _totals(oldest.state.files)
        yield _snapshot(oldest.version, oldest.time_us, None, totals)
    if first is None:
        return
    for commit in chain([first], commits):
        is_start = commit is first and oldest is None
        totals = (
            _totals(table.tracked.log.view_at(first.version).state.files)
            if is_start
            else _after(totals, commit)
        )
        event_counts = {
            spelling: sum(
                int(event.get(name, 0)) for event in commit.events if event["event"] == "files-changed"
            )
            for name, spelling in _SUMMARY.items()
        }
        summary = {name: count for name, count in event_counts.items() if count} | totals
        yield _snapshot(commit.version, commit.time_us, operation_of(commit), summary)


def _before(table: TableHead, first: Commit | None) -> LogView[TableState] | None:
    """Return the oldest version that can be read, if it is older than `first`, the oldest retained commit.

    Expiry keeps its state, but no commit.
    """
    if first is not None and first.version <= max(1, table.state.expired):
        return None
    try:
        view = table.tracked.log.view_at(table.version if first is None else first.version - 1)
    except NotFound:
        return None
    return view if view.log_id == table.id else None


def _snapshot(
    version: int, time_us: int, operation: str | None, summary: Mapping[str, int]
) -> dict[str, Any]:
    return {
        "committed_at": time_us,
        "version": version,
        "operation": operation,
        "summary": [(name, str(count)) for name, count in summary.items()],
    }


def _totals(files: FileSet) -> dict[str, int]:
    return dict(zip(_TOTALS, (files.file_count, files.row_count, files.size_bytes), strict=True))


def _after(totals: Mapping[str, int], commit: Commit) -> dict[str, int]:
    new_totals = dict(totals)
    for event in commit.events:
        if event["event"] in ("table-created", "table-replaced", "table-purged"):
            new_totals = dict.fromkeys(_TOTALS, 0)
        elif event["event"] == "files-changed":
            for total, unit in zip(_TOTALS, ("files", "rows", "bytes"), strict=True):
                new_totals[total] += int(event.get(f"added_{unit}", 0)) - int(event.get(f"removed_{unit}", 0))
            new_totals["total-records"] -= int(event.get("deleted_rows", 0))
    return new_totals


def detail(table: TableHead, wanted_schema: pa.Schema) -> Iterator[pa.Table]:
    yield from _chunks(_detail_rows(table, wanted_schema), wanted_schema)


def _detail_rows(table: TableHead, wanted_schema: pa.Schema) -> Iterator[dict[str, Any]]:
    files, is_new = table.state.files, table.tracked.transaction.creates_log
    yield {
        "version": table.version,
        "created_at": None if is_new or "created_at" not in wanted_schema.names else _created_us(table),
        "modified_at": None if is_new else table.time_us,
        "record_count": files.row_count,
        "file_count": files.file_count,
        "total_data_file_size_in_bytes": files.size_bytes,
    }


def _created_us(table: TableHead) -> int | None:
    # If it has expired, looking for it takes as long as finding the oldest retained version.
    first = None if table.state.expired > 1 else next(table.tracked.log.commits(last=1), None)
    return None if first is None or first.log_id != table.id else first.time_us


def refs(table: TableHead, wanted_schema: pa.Schema) -> Iterator[pa.Table]:
    rows = (
        []
        if table.tracked.transaction.creates_log
        else [{"name": MAIN, "type": "BRANCH", "version": table.version}]
    )
    for name, ref in sorted(table.state.refs.items()):
        rows.append({"name": name, "type": ref.kind.upper(), "version": ref.version})
    return _chunks(iter(rows), wanted_schema)


def log(table: TableHead, wanted_schema: pa.Schema) -> Iterator[pa.Table]:
    rows = (
        {
            "version": commit.version,
            "committed_at": commit.time_us,
            "commit_id": commit.commit_id,
            "base": commit.base,
            "writer": _json(commit.writer),
            "events": _json(commit.events),
            "sidecars": len(commit.sidecars),
            "hash": commit.hash,
        }
        for commit in table.changes()
    )
    return _chunks(rows, wanted_schema)


def _chunks(rows: Iterator[Mapping[str, Any]], wanted_schema: pa.Schema) -> Iterator[pa.Table]:
    while chunk := list(islice(rows, ROWS_PER_CHUNK)):
        yield pa.Table.from_arrays(
            [pa.array([row[field.name] for row in chunk], field.type) for field in wanted_schema],
            schema=wanted_schema,
        )


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()

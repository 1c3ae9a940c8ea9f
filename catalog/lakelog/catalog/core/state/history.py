"""The history of a table or a namespace, from its commits: for people, and for programs as plain values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from lakelog.catalog.core.state.conflicts import OperationKind
from lakelog.catalog.core.state.row_counts import RowCounts, rows_of
from lakelog.catalog.times import moment_of
from lakelog.log import Commit, Json, each_change
from lakelog.log.secrets import masked_properties

_WORDS = {
    "namespace-created": "create namespace",
    "namespace-altered": "set properties",
    "namespace-dropped": "drop namespace",
    "entry-linked": "link",
    "entry-defined": "define",
    "entry-unlinked": "unlink",
    "entry-renamed": "rename",
    "table-created": "create",
    "table-replaced": "replace",
    "schema-changed": "change schema",
    "partitioning-changed": "change partitioning",
    "sort-order-changed": "change sort order",
    "clustering-changed": "change clustering",
    "table-altered": "set properties",
    "constraint-added": "add constraint",
    "constraint-dropped": "drop constraint",
    "identity-taken": "take identity values",
    "fast-forwarded": OperationKind.FAST_FORWARD.value,
    "rolled-back": OperationKind.ROLLBACK.value,
    "stream-committed": "stream",
    "source-imported": OperationKind.IMPORT.value,
    "files-adopted": "adopt files",
    "adopted-files-deleted": "delete adopted files",
    "clone-promised": "promise a clone",
    "clone-released": "release clones",
    "table-cloned": OperationKind.CLONE.value,
    "origins-released": "release origins",
    "statistics-computed": OperationKind.COMPUTE_STATISTICS.value,
    "rows-appended": OperationKind.APPEND.value,
    "rows-erased": "forget rows",
    "erasure-ended": "end of forgetting",
    "table-dropped": "drop",
    "entry-forgotten": "forget",
    "entry-purged": "purge",
    "namespace-restored": "restore",
    "namespace-purged": "purge",
    "cut-saved": "save cut",
    "cut-dropped": "drop cut",
    "table-moved": "move",
    "table-restored": "restore",
    "table-purged": "purge",
    "history-expired": "expire",
    "files-vacuumed": "vacuum",
}
OPERATIONS = (
    frozenset(_WORDS.values())
    | {operation.word for operation in OperationKind}
    - {OperationKind.ALTER.value, OperationKind.SET_REF.value}
    | {f"{verb} {kind}" for verb in ("create", "drop") for kind in ("tag", "branch")}
)
"""Every operation of a commit."""

_OF_REFS = {"ref-set": "create", "ref-dropped": "drop"}
_OF_FILES = ("files-changed", "branch-files-changed")
_OF_SOURCES = ("format", "url", "snapshot", "time_us", "operation")

_SHOWN = {
    "ref-set": ("name", "kind", "version"),
    "ref-dropped": ("name", "kind"),
    "fast-forwarded": ("branch", "to"),
    "entry-linked": ("kind", "name"),
    "entry-defined": ("space", "name"),
    "entry-unlinked": ("name",),
    "entry-renamed": ("kind", "name", "new_name"),
    "entry-forgotten": ("id",),
    "entry-purged": ("id",),
    "namespace-restored": ("name",),
    "cut-saved": ("name", "logs"),
    "cut-dropped": ("name",),
    "constraint-dropped": ("name",),
    "stream-committed": ("stream", "batch"),
    "table-moved": ("name",),
    "table-restored": ("name",),
    "clone-promised": ("clone", "version"),
    "clone-released": ("clones",),
    "table-cloned": ("of", "version"),
    "origins-released": ("logs",),
    "rows-erased": ("erasure", "filter", "reference"),
    "erasure-ended": ("erasure", "statement", "signature", "signed_by"),
    "history-expired": ("version",),
    "identity-taken": ("first", "last"),
    "rolled-back": ("version",),
    "files-vacuumed": ("files", "size_bytes"),
}
_COUNTS = (
    "added_files", "added_rows", "added_bytes", "removed_files", "removed_rows", "removed_bytes", "changed_files",
    "deleted_rows",
)  # fmt: skip
_ROWS = ("inserted_rows", "updated_rows")


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A commit. `operation` is its operation, with `details` (counts of files and rows, names, a filter).

    `committed_at` is in UTC, by the log's time, which never decreases.

    `base` is the version that the commit was prepared on. If it is below `version` - 1, the commit was
    rebased over the commits between. `rows` has its counts of inserted, updated and deleted rows, or None if
    it changes no rows.
    """

    version: int
    committed_at: dt.datetime
    operation: str
    details: dict[str, Json]
    writer: dict[str, Json]
    commit_id: str
    write_id: str | None
    base: int
    rows: RowCounts | None = None

    @property
    def rebased(self) -> bool:
        return self.base < self.version - 1


def entries_of(commits: Iterable[Commit]) -> Iterator[HistoryEntry]:
    """Yield an entry for each change of `commits`, the newest first. Needs only the commits, and no state."""
    for commit in commits:
        for change in each_change(commit, newest_first=True):
            yield entry_of(change)


def entry_of(commit: Commit) -> HistoryEntry:
    """Return the history entry of a change."""
    return HistoryEntry(
        version=commit.version,
        committed_at=moment_of(commit.time_us),
        operation=operation_of(commit),
        details=details_of(commit),
        writer=dict(commit.writer),
        commit_id=commit.commit_id,
        write_id=commit.write.id if commit.write is not None else None,
        base=commit.base,
        rows=rows_of(commit),
    )


def operation_of(commit: Commit) -> str:
    """Return the operations of `commit` as a text."""
    return ", ".join(operations_of(commit)) or "nothing"


def operations_of(commit: Commit) -> tuple[str, ...]:
    """Return the operations of `commit`, each once."""
    return tuple(dict.fromkeys(_word(event) for event in commit.events))


def details_of(commit: Commit) -> dict[str, Json]:
    """Return the details of `commit`: counts of files and rows, names, a filter.

    If two of its events have different details of the same kind (it links a name and unlinks another),
    `changes` has each event's own.
    """
    shared_details: dict[str, Json] = {}
    for event in commit.events:
        details = _details(event)
        if any(shared_details.get(key, value) != value for key, value in details.items()):
            return {
                "changes": [
                    {"operation": _word(event_of_commit), **_details(event_of_commit)}
                    for event_of_commit in commit.events
                ]
            }
        shared_details.update(details)
    return shared_details


def _word(event: Mapping[str, Any]) -> str:
    kind = str(event.get("event"))
    if kind in _OF_REFS:
        return f"{_OF_REFS[kind]} {event.get('kind')}"
    if kind in _OF_FILES:
        return str(event.get("operation"))
    if kind == "rolled-back" and event.get("metadata") is None:
        return OperationKind.SET_CURRENT.value
    return _WORDS.get(kind, kind)


def _details(event: Mapping[str, Any]) -> dict[str, Json]:
    try:
        return _details_by_kind(event)
    except (AttributeError, KeyError, TypeError, ValueError):
        # A faulty client wrote this event. No fold accepts it, and the fold reports why. The history still
        # shows other events.
        return {}


def _details_by_kind(event: Mapping[str, Any]) -> dict[str, Json]:
    kind = event.get("event")
    if kind in _OF_FILES:
        counts = {name: event[name] for name in (*_COUNTS, "of_changes", "branch") if event.get(name)}
        counts |= {name: event[name] for name in _ROWS if event.get(name) is not None}
        if event.get("of_changes"):
            counts.pop("added_rows", None)  # those changes have them
        return counts | ({"filter": event["filter"]} if event.get("filter") else {})
    if kind == "rows-appended":
        return {"added_rows": event["rows"]}
    if kind in ("table-altered", "namespace-altered"):
        removed_names = {"removed": list(event["removed"])} if event.get("removed") else {}
        return ({"set": masked_properties(event["set"])} if event.get("set") else {}) | removed_names
    if kind == "files-adopted":
        return {"adopted_from": event["source"]["url"]}
    if kind == "source-imported":
        return {f"source_{name}": event["source"].get(name) for name in _OF_SOURCES}
    if kind in _SHOWN:
        return {key: event[key] for key in _SHOWN[str(kind)] if key in event}
    if kind == "constraint-added":
        return {"kind": event["constraint"]["kind"], "name": event["constraint"]["name"]}
    if kind == "statistics-computed":
        return {name: event["estimates"][name] for name in ("version", "rows")}
    if kind in ("schema-changed", "table-created", "table-replaced"):
        return {"columns": [column["name"] for column in event["schema"]["fields"]]}
    return {}

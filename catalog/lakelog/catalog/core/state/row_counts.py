"""The inserted, updated and deleted rows of a commit, from its events alone.

Most counts follow from an event's counts of files and rows. An UPDATE or a MERGE writes new values and copies
into the same files, so its event has the counts of each. Rule: an unknown count is None, and never 0. A
commit that only moves rows, or restores earlier rows, has no such counts. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

import msgspec

from lakelog.catalog.core.state.conflicts import OperationKind
from lakelog.log import Commit

_ADDING = {
    each.word for each in (OperationKind.APPEND, OperationKind.OVERWRITE, OperationKind.OVERWRITE_PARTITIONS)
}
_DELETING = {each.word for each in (OperationKind.DELETE, OperationKind.DELETE_ROWS, OperationKind.TRUNCATE)}
_CHANGING = {OperationKind.UPDATE.word, OperationKind.MERGE.word}
_OF_FILES = ("files-changed", "branch-files-changed")

LIMIT = 1 << 63
"""Numbers from here on come from a faulty client, and no column has them."""


class RowCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of rows, each None if unknown.

    `copied` rows were rewritten unchanged, because they shared a file with others.
    """

    inserted: int | None = 0
    updated: int | None = 0
    deleted: int | None = 0
    copied: int | None = 0

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(
            inserted=_sum(self.inserted, other.inserted),
            updated=_sum(self.updated, other.updated),
            deleted=_sum(self.deleted, other.deleted),
            copied=_sum(self.copied, other.copied),
        )


NO_ROWS = RowCounts()
UNKNOWN = RowCounts(inserted=None, updated=None, deleted=None, copied=None)


def rows_of(commit: Commit) -> RowCounts | None:
    """Return a commit's row counts over all of its statements, or None if it changes no rows."""
    return rows_of_events(commit.events)


def rows_of_events(events: Iterable[Mapping[str, Any]]) -> RowCounts | None:
    """Return the row counts of a commit's events in their stored form, like `rows_of`."""
    counts = [event_counts for event in events if (event_counts := rows_of_event(event)) is not None]
    return reduce(RowCounts.__add__, counts) if counts else None


def rows_of_event(event: Mapping[str, Any]) -> RowCounts | None:
    """Return the row counts of an event, like `rows_of`, or UNKNOWN if it contradicts itself."""
    try:
        counts = _counted(event)
    except (TypeError, ValueError, AttributeError):
        return UNKNOWN  # no fold accepts an event of such a client
    numbers = () if counts is None else (counts.inserted, counts.updated, counts.deleted, counts.copied)
    return UNKNOWN if any(number is not None and not 0 <= number < LIMIT for number in numbers) else counts


def _counted(event: Mapping[str, Any]) -> RowCounts | None:
    kind = event.get("event")
    if kind == "rows-appended":
        return RowCounts(inserted=int(event["rows"]))
    if kind not in _OF_FILES or event.get("of_changes"):
        return None  # each of those changes has its own count
    added_rows = int(event.get("added_rows", 0))
    removed_rows = int(event.get("removed_rows", 0)) + int(event.get("deleted_rows", 0))
    operation = event.get("operation")
    if operation in _ADDING:
        return RowCounts(inserted=added_rows, deleted=removed_rows)
    if operation in _DELETING:
        return RowCounts(deleted=removed_rows - added_rows, copied=added_rows)
    if operation == OperationKind.REPLACE.word:
        # No commit of the new table has the rows of the table that it replaces.
        return RowCounts(inserted=added_rows, deleted=None)
    if operation in _CHANGING:
        return _of_changed_rows(
            event, added_rows, removed_rows, is_update=operation == OperationKind.UPDATE.word
        )
    return None


def _of_changed_rows(event: Mapping[str, Any], added: int, gone: int, *, is_update: bool) -> RowCounts:
    updated_rows = event.get("updated_rows")
    if updated_rows is None:
        return RowCounts(updated=None, copied=None) if is_update else UNKNOWN
    inserted_rows = event.get("inserted_rows", 0)
    copied_rows = added - inserted_rows - updated_rows
    return RowCounts(
        inserted=inserted_rows,
        updated=updated_rows,
        deleted=gone - copied_rows - updated_rows,
        copied=copied_rows,
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None or one + other >= LIMIT else one + other

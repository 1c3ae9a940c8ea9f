"""How many rows a commit has inserted, updated and deleted, from its events alone.

Most follow from the counts of files that an event has anyway; of an UPDATE and a MERGE, which write new values and
copies into the same files, the event says how many rows are which. Rule: what is not known is None, and never 0. A
commit that only moves rows, or goes back to others, has no such numbers. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

import msgspec

from lakelog.catalog.core.state.conflicts import Operation
from lakelog.log import Commit

_ADDING = {each.word for each in (Operation.APPEND, Operation.OVERWRITE, Operation.OVERWRITE_PARTITIONS)}
_DELETING = {each.word for each in (Operation.DELETE, Operation.DELETE_ROWS, Operation.TRUNCATE)}
_CHANGING = {Operation.UPDATE.word, Operation.MERGE.word}
_OF_FILES = ("files-changed", "branch-files-changed")

LIMIT = 1 << 63
"""Numbers from here on are those of a faulty client, and no column has them."""


class RowCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of rows; None where one is not known. `copied` are rows that were written once more as they were,
    because they were in one file with others."""

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
    """Return how many rows a commit has changed, with those of all of its statements; None of one that changes none."""
    return rows_of_events(commit.events)


def rows_of_events(events: Iterable[Mapping[str, Any]]) -> RowCounts | None:
    """As `rows_of`, of the events of a commit, as it has them."""
    known = [found for event in events if (found := rows_of_event(event)) is not None]
    return reduce(RowCounts.__add__, known) if known else None


def rows_of_event(event: Mapping[str, Any]) -> RowCounts | None:
    """As `rows_of`, of one event. UNKNOWN for one that contradicts itself."""
    try:
        found = _counted(event)
    except (TypeError, ValueError, AttributeError):
        return UNKNOWN  # no fold takes what such a client wrote
    numbers = () if found is None else (found.inserted, found.updated, found.deleted, found.copied)
    return UNKNOWN if any(number is not None and not 0 <= number < LIMIT for number in numbers) else found


def _counted(event: Mapping[str, Any]) -> RowCounts | None:
    kind = event.get("event")
    if kind == "rows-appended":
        return RowCounts(inserted=int(event["rows"]))
    if kind not in _OF_FILES or event.get("of_changes"):
        return None  # of those changes, each says its own
    added = int(event.get("added_rows", 0))
    gone = int(event.get("removed_rows", 0)) + int(event.get("deleted_rows", 0))
    operation = event.get("operation")
    if operation in _ADDING:
        return RowCounts(inserted=added, deleted=gone)
    if operation in _DELETING:
        return RowCounts(deleted=gone - added, copied=added)
    if operation == Operation.REPLACE.word:
        # The rows of the table that it replaces are in no commit of it.
        return RowCounts(inserted=added, deleted=None)
    if operation in _CHANGING:
        return _of_changed_rows(event, added, gone, is_update=operation == Operation.UPDATE.word)
    return None


def _of_changed_rows(event: Mapping[str, Any], added: int, gone: int, *, is_update: bool) -> RowCounts:
    updated = event.get("updated_rows")
    if updated is None:
        return RowCounts(updated=None, copied=None) if is_update else UNKNOWN
    inserted = event.get("inserted_rows", 0)
    copied = added - inserted - updated
    return RowCounts(inserted=inserted, updated=updated, deleted=gone - copied - updated, copied=copied)


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None or one + other >= LIMIT else one + other

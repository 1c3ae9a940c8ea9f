"""Changes that a client decides for another one, by their data alone: appends, and names.

What only its author knows is refused here, and left to its author: a schema that changed since, rows that a
CHECK was not asked about, values of identity columns. So each rule here is narrower than the conflict matrix, and
agrees with it where it allows something.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import msgspec

from lakelog.catalog.core.files import DataFile, check_written_by, is_elsewhere, with_ids
from lakelog.catalog.core.schema import check_policy
from lakelog.catalog.core.state import (
    BranchFilesChanged,
    EntryDefined,
    EntryLinked,
    FilesChanged,
    FilesVacuumed,
    HistoryExpired,
    IdentityTaken,
    NamespaceAltered,
    NamespaceEvent,
    NamespaceState,
    Operation,
    RowsAppended,
    StatisticsComputed,
    StreamCommitted,
    TableEvent,
    TableState,
    decoded,
    encode,
)
from lakelog.catalog.errors import CommitConflict
from lakelog.log import Commit, Draft, Gathered, LogOptions, View
from lakelog.log.stores import ObjectStore

_PASSED_BY_APPENDS = {
    each.__struct_config__.tag
    for each in (
        FilesChanged,
        BranchFilesChanged,
        StreamCommitted,
        StatisticsComputed,
        HistoryExpired,
        FilesVacuumed,
        IdentityTaken,
        RowsAppended,
    )
}


GatherRows: TypeAlias = Callable[
    [ObjectStore, str, LogOptions, View[TableState], Sequence[bytes]], Gathered[TableState] | None
]
"""Writes the rows of several appends as files of the table at that prefix (see `ByData.gather`)."""


class TableByData:
    """Appends of rows; of files that were written for the table, perhaps as a batch of a stream."""

    def __init__(
        self, store: ObjectStore, prefix: str, *, gather: GatherRows | None, options: LogOptions
    ) -> None:
        self._gather = None if gather is None else partial(gather, store, prefix, options)

    def gather(self, view: View[TableState], rows: Sequence[bytes]) -> Gathered[TableState] | None:
        return None if self._gather is None else self._gather(view, rows)

    def lets_pass(self, commit: Commit) -> bool:
        """Return whether the table has its columns, constraints, partitions and name as before."""
        return {event.get("event") for event in commit.events} <= _PASSED_BY_APPENDS

    def redo(self, view: View[TableState], draft: Draft) -> Draft:
        """Return the append with ids for its rows from the first free one on. CommitConflict where the stream's batch
        was committed, or it is no such append."""
        next_row = view.state.next_row
        events: list[TableEvent] = []
        for event in _decoded(draft, TableEvent):
            if isinstance(event, FilesChanged):
                files = _files_of_append(event, draft)
                event = msgspec.structs.replace(event, added=tuple(with_ids(files, next_row)))
                next_row += sum(file.physical_rows for file in files)
            elif not (isinstance(event, StreamCommitted) and _is_new_batch(view.state, event)):
                raise _left_to_its_author()
            events.append(event)
        return replace(draft, events=encode(events))


def _is_new_batch(state: TableState, event: StreamCommitted) -> bool:
    last = state.streams.get(event.stream)
    return last is None or event.batch > last


def _files_of_append(event: FilesChanged, draft: Draft) -> tuple[DataFile, ...]:
    plain = FilesChanged(
        operation=Operation.APPEND.word,
        added=event.added,
        added_files=event.added_files,
        added_rows=event.added_rows,
        added_bytes=event.added_bytes,
    )
    if event != plain or draft.write is None or any(is_elsewhere(file.path) for file in event.added):
        raise _left_to_its_author()
    check_written_by(event.added, draft.write)
    return event.added


class NamespaceByData:
    """New names, and properties."""

    def lets_pass(self, commit: Commit) -> bool:
        """Return True: what a new name needs, the state says."""
        return True

    def gather(self, view: View[NamespaceState], rows: Sequence[bytes]) -> None:
        """Return None: a namespace has no rows."""
        return None

    def redo(self, view: View[NamespaceState], draft: Draft) -> Draft:
        """Return the draft. CommitConflict where a name is taken, what it leads to was given up, or for any
        other change; InvalidInput for a property that contradicts another one."""
        events: list[NamespaceEvent] = _decoded(draft, NamespaceEvent)
        for event in events:
            match event:
                case NamespaceAltered():
                    # What others have set since may contradict it.
                    kept = {k: v for k, v in view.state.properties.items() if k not in event.removed}
                    check_policy({**kept, **event.set})
                    continue
                case EntryLinked():
                    if event.id in view.state.forgotten or event.id in view.state.dropped:
                        raise _left_to_its_author()
                case EntryDefined():
                    if event.id in view.state.dropped_definitions:
                        raise _left_to_its_author()
                case _:
                    raise _left_to_its_author()
            if view.state.is_taken(event.space, event.name):
                raise _left_to_its_author()
        if len(events) > 1:
            raise _left_to_its_author()  # two may be of one name
        return draft


def _decoded(draft: Draft, union: Any) -> list[Any]:
    return decoded(draft.events, union)


def _left_to_its_author() -> CommitConflict:
    return CommitConflict("only its author knows whether this change may be committed")

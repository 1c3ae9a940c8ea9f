"""Changes that a client decides for another client, by their data alone: appends, and names.

If only the author can decide a change, it is refused here and left to the author. Examples are a schema that
changed since, rows that were not checked against a CHECK, and values of identity columns. So each rule here
is narrower than the conflict matrix, and agrees with it if it allows a change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import msgspec

from lakelog.catalog.core.files.data_file import DataFile, check_written_by, is_elsewhere
from lakelog.catalog.core.files.row_ids import with_ids
from lakelog.catalog.core.schema.properties.policy import check_policy
from lakelog.catalog.core.state.conflicts import OperationKind
from lakelog.catalog.core.state.decoded_events import decoded
from lakelog.catalog.core.state.events import (
    BranchFilesChanged,
    EntryDefined,
    EntryLinked,
    FilesChanged,
    FilesVacuumed,
    HistoryExpired,
    IdentityTaken,
    NamespaceAltered,
    NamespaceEvent,
    RowsAppended,
    StatisticsComputed,
    StreamCommitted,
    TableEvent,
    encode,
)
from lakelog.catalog.core.state.namespace_state import NamespaceState
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.errors import CommitConflict
from lakelog.log import Commit, Draft, GatheredChanges, LogOptions, LogView
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
    [ObjectStore, str, LogOptions, LogView[TableState], Sequence[bytes]], GatheredChanges[TableState] | None
]
"""Writes the rows of several appends as files of the table at that prefix (see `ByData.gather`)."""


class TableByData:
    """Appends of rows, or of files that were written for the table, perhaps as a batch of a stream."""

    def __init__(
        self, store: ObjectStore, prefix: str, *, gather: GatherRows | None, options: LogOptions
    ) -> None:
        self._gather = None if gather is None else partial(gather, store, prefix, options)

    def gather(self, view: LogView[TableState], rows: Sequence[bytes]) -> GatheredChanges[TableState] | None:
        return None if self._gather is None else self._gather(view, rows)

    def lets_pass(self, commit: Commit) -> bool:
        """Return whether the table has its columns, constraints, partitions and name as before."""
        return {event.get("event") for event in commit.events} <= _PASSED_BY_APPENDS

    def redo(self, view: LogView[TableState], draft: Draft) -> Draft:
        """Return the append with row ids from the first free id on.

        Raises CommitConflict if the stream's batch was committed already, or if the draft is not such an
        append.
        """
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
        operation=OperationKind.APPEND.word,
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
        """Return True, because the state has everything that a new name needs."""
        return True

    def gather(self, view: LogView[NamespaceState], rows: Sequence[bytes]) -> None:
        """Return None, because a namespace has no rows."""
        return None

    def redo(self, view: LogView[NamespaceState], draft: Draft) -> Draft:
        """Return the draft.

        Raises CommitConflict if a name is taken, if its target was given up, or for any other change. Raises
        InvalidInput for a property that contradicts another property.
        """
        events: list[NamespaceEvent] = _decoded(draft, NamespaceEvent)
        for event in events:
            match event:
                case NamespaceAltered():
                    # Properties that others have set since may contradict it.
                    other_properties = {
                        k: v for k, v in view.state.properties.items() if k not in event.removed
                    }
                    check_policy({**other_properties, **event.set})
                    continue
                case EntryLinked() | EntryDefined():
                    if event.id in view.state.forgotten or event.id in view.state.dropped:
                        raise _left_to_its_author()
                case _:
                    raise _left_to_its_author()
            if view.state.is_taken(event.space, event.name):
                raise _left_to_its_author()
        if len(events) > 1:
            raise _left_to_its_author()  # two events may have the same name
        return draft


def _decoded(draft: Draft, union: Any) -> list[Any]:
    return decoded(draft.events, union)


def _left_to_its_author() -> CommitConflict:
    return CommitConflict("only its author knows whether this change may be committed")

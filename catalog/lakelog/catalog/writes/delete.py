"""Deleting the rows that match a filter: whole files where their entries prove it, else by reading the others.

Rows of files that have others too are marked as deleted, or the files are written anew without them, as the table's
property says. What is deleted by reading is prepared on one version. A delete brings no rows, so where others were in
its way it is prepared again on what they left, as if it had begun later; in a transaction, which may have used what it
read, it fails.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.files import DataFile
from lakelog.catalog.logs import Token, TrackedLog
from lakelog.catalog.parquet import kept_by_commit
from lakelog.catalog.planning import bind
from lakelog.catalog.schema import COPY_ON_WRITE, WRITE_MODES, Predicate, value_of
from lakelog.catalog.state import Operation, TableState
from lakelog.catalog.writes import file_changes, row_changes
from lakelog.catalog.writes.partial_files import matching_files
from lakelog.log import View, WriteRef

TRIES_MAX = 5


def delete(
    tracked: TrackedLog[TableState],
    view: View[TableState],
    predicate: Predicate,
    new_id: Callable[[], str],
    *,
    name: str,
    token: Token | None,
) -> View[TableState]:
    """Delete the rows that match, and return the state after that. `new_id` makes ids of writes.

    Costs 1 PUT where files are proven to match as a whole; else the files that may match are read, too.
    Unsupported for a condition that is not understood, CommitConflict where others change the same rows all the time.
    """
    for tries_left in reversed(range(TRIES_MAX)):
        try:
            change = file_changes.Change(
                operation=Operation.DELETE, filter=predicate, filter_text=str(predicate)
            )
            return file_changes.commit(tracked, view, change, name=name, token=token).view
        except file_changes.CutsThroughFiles:
            pass
        try:
            return _delete_rows(tracked, view, predicate, new_id, name, token)
        except CommitConflict:
            newer = tracked.current()
            if (
                tracked.in_transaction
                or not tries_left
                or newer.version <= view.version
                or _is_another(newer, view)
            ):
                raise
            view = newer
    raise AssertionError("the last try returns or raises")


def is_by_files(tracked: TrackedLog[TableState], view: View[TableState], predicate: Predicate) -> bool:
    """Tell whether files are proven to match as a whole, or not at all. Unsupported as `delete`."""
    _, some = matching_files(tracked, view, bind(predicate, view.state.current.schema))
    return not some.num_rows


def _is_another(newer: View[TableState], view: View[TableState]) -> bool:
    return (
        newer.sealed
        or newer.log_id != view.log_id
        or newer.state.current.generation != view.state.current.generation
    )


def _delete_rows(
    tracked: TrackedLog[TableState],
    view: View[TableState],
    predicate: Predicate,
    new_id: Callable[[], str],
    name: str,
    token: Token | None,
) -> View[TableState]:
    from lakelog.catalog.parquet import copied_files, read_positions

    metadata = view.state.current
    bound = bind(predicate, metadata.schema)
    tracked.note_rows_read(predicate)
    whole, some = matching_files(tracked, view, bound)
    positions = dict(
        read_positions(
            tracked.store, tracked.prefix, some, metadata.schema, bound, tracked.log.replay.open_url
        )
    )
    write = WriteRef(id=new_id(), version=view.version)
    removed = set(whole["path"].to_pylist())
    copied: list[DataFile] = []
    if positions and value_of(metadata.properties, WRITE_MODES["delete"]) == COPY_ON_WRITE:
        touched = pc.is_in(some["path"], value_set=pa.array(sorted(positions), pa.string()))
        copied = copied_files(tracked, view, some.filter(touched), bound, write)
        removed |= positions.keys()
        positions = {}
    change = row_changes.RowChange(
        operation=Operation.DELETE_ROWS,
        files=copied,
        removed=frozenset(removed),
        deletes=positions,
        condition=predicate,
    )
    if change.is_empty:
        return view
    with kept_by_commit(tracked, copied):
        return row_changes.commit(tracked, view, change, name=name, write=write, token=token).view

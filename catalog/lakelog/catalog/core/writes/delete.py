"""Deleting the rows that match a filter: whole files where their entries prove it, else by reading the files.

In files with other rows too, matching rows are marked as deleted, or the files are rewritten without them, by the
table's property. A delete by reading is prepared on one version. A delete adds no rows, so after a conflict it is
prepared again on the newest version, as if it had begun later; in a transaction, which may have used what it read, it
fails.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import DataFile, with_rows
from lakelog.catalog.core.logs import NothingToDo, TableHead, Token
from lakelog.catalog.core.parquet import copied_files, kept_by_commit, read_positions
from lakelog.catalog.core.planning import bind
from lakelog.catalog.core.schema import COPY_ON_WRITE, WRITE_MODES, Predicate, value_of
from lakelog.catalog.core.state import Operation
from lakelog.catalog.core.writes import file_changes, row_changes
from lakelog.catalog.core.writes.partial_files import matching_files
from lakelog.catalog.core.writes.prepared_rows import RowChange
from lakelog.catalog.errors import CommitConflict

TRIES_MAX = 5


def delete(
    head: TableHead, predicate: Predicate, token: Token | None, *, keeps_partitions: bool = True
) -> TableHead:
    """Delete the rows that match, and return the version after that; partitions that were added stay or go, too.

    Costs 1 PUT where files are proven to match as a whole; else the files that may match are read, too.
    Unsupported for an unknown condition, CommitConflict where other writers keep changing the same rows.
    """
    for tries_left in reversed(range(TRIES_MAX)):
        try:
            change = file_changes.ContentsChange(
                operation=Operation.DELETE,
                filter=predicate,
                filter_text=str(predicate),
                keeps_partitions=keeps_partitions,
            )
            return head.after(file_changes.commit(head, change, token=token))
        except NothingToDo:
            return head.refreshed().unchanged()
        except file_changes.FilesMatchInPart:
            pass
        try:
            return _delete_rows(head, predicate, token, keeps_partitions=keeps_partitions)
        except NothingToDo:
            return head.refreshed().unchanged()
        except CommitConflict:
            newer = head.at(head.tracked.current())
            if (
                head.tracked.transaction.is_open
                or not tries_left
                or newer.version <= head.version
                or _is_another(newer, head)
            ):
                raise
            head = newer
    raise AssertionError("the last try returns or raises")


def is_by_files(head: TableHead, predicate: Predicate) -> bool:
    """Return whether each file is proven to match as a whole, or not at all. Unsupported as `delete`."""
    _, some = matching_files(head, bind(predicate, head.schema))
    return not some.num_rows


def _is_another(newer: TableHead, head: TableHead) -> bool:
    return newer.view.sealed or newer.id != head.id or newer.metadata.generation != head.metadata.generation


def _delete_rows(
    head: TableHead, predicate: Predicate, token: Token | None, *, keeps_partitions: bool
) -> TableHead:
    tracked, metadata = head.tracked, head.metadata
    bound = bind(predicate, metadata.schema)
    tracked.transaction.note_rows_read(predicate)
    whole, some = matching_files(head, bound)
    positions = dict(
        read_positions(
            tracked.store, tracked.prefix, some, metadata.schema, bound, tracked.log.replay.open_url
        )
    )
    write = head.begin_write()
    removed = set((with_rows(whole) if keeps_partitions else whole)["path"].to_pylist())
    copied: list[DataFile] = []
    if positions and value_of(metadata.properties, WRITE_MODES["delete"]) == COPY_ON_WRITE:
        touched = pc.is_in(some["path"], value_set=pa.array(sorted(positions), pa.string()))
        copied = copied_files(head, some.filter(touched), bound, write)
        removed |= positions.keys()
        positions = {}
    change = RowChange(
        operation=Operation.DELETE_ROWS,
        files=copied,
        removed=frozenset(removed),
        deletes=positions,
        condition=predicate,
        keeps_partitions=keeps_partitions,
    )
    if change.is_empty:
        return head.unchanged()
    with kept_by_commit(tracked, copied):
        return head.after(row_changes.commit(head, change, write=write, token=token))

"""Deletion of the rows that match a filter: of whole files if their entries prove it, else by reading the
files.

In files with other rows too, matching rows are marked as deleted, or the files are rewritten without them, by
the table's property. A delete by reading is prepared on a single version. A delete adds no rows. So after a
conflict it is prepared again on the newest version, as if it had begun later. It fails if its condition names other
columns there. It also fails in a transaction, which may have used its own reads.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.data_file import DataFile
from lakelog.catalog.core.files.file_tables import with_rows
from lakelog.catalog.core.logs.commits import NothingToDo, Token
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.parquet.copying import copied_files
from lakelog.catalog.core.parquet.leftovers import kept_by_commit
from lakelog.catalog.core.parquet.reading import read_positions
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.schema.predicate import Predicate, paths_in
from lakelog.catalog.core.schema.properties.known import COPY_ON_WRITE, WRITE_MODES
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.state.conflicts import OperationKind
from lakelog.catalog.core.writes import file_changes, row_changes
from lakelog.catalog.core.writes.partial_files import matching_files
from lakelog.catalog.core.writes.prepared_rows import RowChange
from lakelog.catalog.errors import CommitConflict

TRIES_MAX = 5


def delete(
    head: TableHead, predicate: Predicate, token: Token | None, *, keeps_partitions: bool = True
) -> TableHead:
    """Delete the matching rows, and return the version after that. `keeps_partitions` keeps partitions
    without rows.

    Costs 1 PUT if files are proven to match as a whole. Otherwise the files that may match are read, too.
    Raises Unsupported for an unknown condition. Raises CommitConflict if other writers keep changing the same
    rows.
    """
    change = file_changes.ContentsChange(
        operation=OperationKind.DELETE,
        filter=predicate,
        filter_text=str(predicate),
        keeps_partitions=keeps_partitions,
    )
    for tries_left in reversed(range(TRIES_MAX)):
        try:
            try:
                return head.after(file_changes.commit(head, change, token=token))
            except file_changes.FilesMatchInPart:
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
                or _columns(predicate, newer.schema) != _columns(predicate, head.schema)
            ):
                raise
            head = newer
    raise AssertionError("the last try returns or raises")


def is_by_files(head: TableHead, predicate: Predicate) -> bool:
    """Return whether each file is proven to match as a whole, or not at all. Raises Unsupported like
    `delete`."""
    _, partial_files = matching_files(head, bind(predicate, head.schema))
    return not partial_files.num_rows


def _is_another(newer: TableHead, head: TableHead) -> bool:
    return newer.view.sealed or newer.id != head.id or newer.metadata.generation != head.metadata.generation


def _columns(predicate: Predicate, schema: Schema) -> list[int | None]:
    """Return the ids of the columns that a condition names."""
    fields = [schema.get(path) for path in paths_in(predicate)]
    return [None if field is None else field.id for field in fields]


def _delete_rows(
    head: TableHead, predicate: Predicate, token: Token | None, *, keeps_partitions: bool
) -> TableHead:
    log, metadata = head.tracked, head.metadata
    condition = bind(predicate, metadata.schema)
    log.transaction.note_rows_read(predicate)
    whole, partial_files = matching_files(head, condition)
    positions = dict(
        read_positions(
            log.store, log.prefix, partial_files, metadata.schema, condition, log.log.replay.open_url
        )
    )
    write = head.begin_write()
    removed_paths = set((with_rows(whole) if keeps_partitions else whole)["path"].to_pylist())
    new_files: list[DataFile] = []
    if positions and WRITE_MODES["delete"].of(metadata.properties) == COPY_ON_WRITE:
        has_matches = pc.is_in(partial_files["path"], value_set=pa.array(sorted(positions), pa.string()))
        new_files = copied_files(head, partial_files.filter(has_matches), condition, write)
        removed_paths |= positions.keys()
        positions = {}
    change = RowChange(
        operation=OperationKind.DELETE_ROWS,
        files=new_files,
        removed=frozenset(removed_paths),
        deletes=positions,
        condition=predicate,
        keeps_partitions=keeps_partitions,
    )
    if change.is_empty:
        return head.unchanged()
    with kept_by_commit(log, new_files):
        return head.after(row_changes.commit(head, change, write=write, token=token))

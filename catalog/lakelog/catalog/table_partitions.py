"""Statements about single partitions: add, drop, truncate, rename. Each is one commit, or nothing.

Dropping and truncating are decided by files alone. A rename rewrites the rows of the partition, which have its values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelog.catalog.files import DataFile
from lakelog.catalog.logs import Token, TrackedLog, chunks_of, was_applied
from lakelog.catalog.parquet import kept_by_commit
from lakelog.catalog.planning import (
    Values,
    key_of,
    list_partitions,
    predicate_of,
    renamed_columns,
    with_values,
)
from lakelog.catalog.state import Operation, TableState
from lakelog.catalog.writes import file_changes
from lakelog.log import View, WriteRef
from lakelog.log.errors import AlreadyExists, NotFound

if TYPE_CHECKING:
    from lakelog.catalog.table import Table


def listed(tracked: TrackedLog[TableState], view: View[TableState], where: Values | None) -> pa.Table:
    """Return the partitions of a view (see `list_partitions`)."""
    tracked.note_rows_read(None)
    return list_partitions(chunks_of(tracked, view), view.state.current, where)


def add(
    table: Table, tracked: TrackedLog[TableState], partitions: Sequence[Values], token: Token | None
) -> Table:
    """Add partitions without rows; one that is there already stays as it is. Costs a PUT for each, and the commit."""
    write = table.begin_write()
    files = _empty(table, tracked, write, partitions)
    with kept_by_commit(tracked, files):
        return table.commit_write(write, Operation.APPEND.value, files, token=token)


def drop(table: Table, partitions: Sequence[Values], token: Token | None) -> Table:
    return table.delete(predicate_of(table.metadata, partitions), token=token)


def truncate(
    table: Table,
    tracked: TrackedLog[TableState],
    view: View[TableState],
    partitions: Sequence[Values],
    token: Token | None,
) -> View[TableState]:
    """Remove the rows of partitions, which stay as empty ones."""
    write = table.begin_write()
    predicate = predicate_of(table.metadata, partitions)
    change = file_changes.Change(
        operation=Operation.DELETE,
        files=_empty(table, tracked, write, partitions),
        filter=predicate,
        filter_text=str(predicate),
    )
    with kept_by_commit(tracked, change.files):
        return file_changes.commit(tracked, view, change, name=table.name, write=write, token=token).view


def rename(
    table: Table, tracked: TrackedLog[TableState], old: Values, new: Values, token: Token | None
) -> Table:
    """Rewrite the rows of the partition `old` with the values of `new`. NotFound, AlreadyExists."""
    if was_applied(tracked, token):
        return table.refresh()
    values = renamed_columns(table.metadata, old, new)
    if not table.partitions(old).num_rows:
        raise NotFound(f"{table.name} has no partition {_text(old)}")
    if table.partitions(new).num_rows:
        raise AlreadyExists(f"{table.name} has a partition {_text(new)} already")
    write = table.begin_write()
    files = _rewritten(table, tracked, write, old, values) or _empty(table, tracked, write, [new])
    # Rows that others add to the new partition meanwhile must not be joined with those that come.
    both = predicate_of(table.metadata, [old, new])
    with kept_by_commit(tracked, files):
        return table.commit_write(write, Operation.OVERWRITE.value, files, filter=both, token=token)


def _rewritten(
    table: Table, tracked: TrackedLog[TableState], write: WriteRef, old: Values, values: dict[str, pa.Scalar]
) -> list[DataFile]:
    from lakelog.catalog.parquet import written_files

    rows = table.scan(filter=predicate_of(table.metadata, [old])).to_reader()

    def changed() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            yield with_values(batch, values)

    reader = pa.RecordBatchReader.from_batches(rows.schema, changed())
    return written_files(tracked, table.metadata, write, reader)


def _empty(
    table: Table, tracked: TrackedLog[TableState], write: WriteRef, partitions: Sequence[Values]
) -> list[DataFile]:
    from lakelog.catalog.parquet import written_partitions

    keys = list(dict.fromkeys(key_of(table.metadata, values) for values in partitions))
    return written_partitions(tracked, table.metadata, write, keys)


def _text(values: Values) -> str:
    return "(" + ", ".join(f"{name} = {value!r}" for name, value in values.items()) + ")"

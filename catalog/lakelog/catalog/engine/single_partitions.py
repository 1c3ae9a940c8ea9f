"""Single partitions: list, add, drop, truncate, rename.

Each change is one commit, or nothing.

A partition is given by its values: JSON literals by the names of the partition fields. Drop and truncate need
no rows. A rename rewrites the partition's rows because they hold its values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.logs import NothingToDo, TableHead, Token, was_applied
from lakelog.catalog.core.parquet import kept_by_commit, written_files, written_partitions
from lakelog.catalog.core.planning import (
    Values,
    key_of,
    list_partitions,
    predicate_of,
    renamed_columns,
    with_values,
)
from lakelog.catalog.core.schema import identity_fields
from lakelog.catalog.core.state import OperationKind
from lakelog.catalog.core.writes import delete, file_changes
from lakelog.catalog.engine.operations import of_table
from lakelog.catalog.scan import Scan
from lakelog.catalog.table import Table
from lakelog.catalog.table_version import TableVersion
from lakelog.log import WriteRef
from lakelog.log.errors import AlreadyExists, InvalidInput, NotFound


@of_table
def partitions(table: TableVersion, where: Values | None = None) -> pa.Table:
    """Return the partitions that have these values.

    Columns are the partition fields, `files`, `rows` and `bytes`.

    Raises Unsupported if files of an older partitioning may have rows of several partitions.
    """
    return _listed(table.table_head, where)


@of_table
def add_partitions(table: Table, partitions: Sequence[Values], *, token: Token | None = None) -> Table:
    """Add partitions without rows.

    An existing partition stays as it is. Makes a PUT for each, and the commit.
    """
    head = table._writable("add partitions to").newest_known()
    write = head.begin_write()
    change = file_changes.ContentsChange(
        operation=OperationKind.APPEND, files=_empty(head, write, partitions)
    )
    with kept_by_commit(head.tracked, change.files):
        return table._with(file_changes.commit_write(head, write, change, token))


@of_table
def drop_partitions(table: Table, partitions: Sequence[Values], *, token: Token | None = None) -> Table:
    """Remove partitions with their rows. A partition that does not exist is ignored."""
    head, predicate = table._writable("drop partitions of"), predicate_of(table.metadata, partitions)
    return table._with(delete.delete(head, predicate, token, keeps_partitions=False))


@of_table
def truncate_partitions(table: Table, partitions: Sequence[Values], *, token: Token | None = None) -> Table:
    """Remove the rows of partitions, which stay as empty partitions."""
    head = table._writable("truncate partitions of")
    write = head.begin_write()
    predicate = predicate_of(head.metadata, partitions)
    change = file_changes.ContentsChange(
        operation=OperationKind.DELETE,
        files=_empty(head, write, partitions),
        filter=predicate,
        filter_text=str(predicate),
    )
    with kept_by_commit(head.tracked, change.files):
        try:
            return table._with(head.after(file_changes.commit(head, change, write=write, token=token)))
        except NothingToDo:  # no partition was named
            return table._with(head.refreshed().unchanged())


@of_table
def plan_rename(table: TableVersion, old: Values, new: Values) -> tuple[pa.Table, tuple[str, ...] | None]:
    """Return the files that may have rows of the partition `old`, and the columns to change and check in a
    rewrite.

    The columns are None if an engine cannot rewrite them because others are generated from them, or they are
    identities. Raises InvalidInput if a value is NULL and its column is NOT NULL.
    """
    head, metadata = table.table_head, table.metadata
    values = renamed_columns(metadata, old, new)
    for field in metadata.schema.fields:
        if field.name in values and not values[field.name].is_valid and not field.nullable:
            raise InvalidInput(
                f"the column {field.name} of {head.name} is NOT NULL, so no partition can have NULL for it: give a "
                "value"
            )
    is_computed = any(
        field.generated is not None and not values.keys().isdisjoint((field.name, *field.generated.columns))
        for field in metadata.schema.fields
    ) or any(field.name in values for field, _ in identity_fields(metadata.schema))
    files = head.plan(predicate_of(metadata, [old]))
    return files, None if is_computed else tuple(values)


@of_table
def rename_partition(
    table: Table,
    old: Values,
    new: Values,
    *,
    write: WriteRef | None = None,
    files: Sequence[DataFile] | None = None,
    token: Token | None = None,
) -> Table:
    """Give all rows of the partition `old` the values of `new`, by rewriting them.

    Raises NotFound, AlreadyExists.

    If a `write` has rewritten them by `plan_rename`, the commit takes its `files`.
    """
    head = table._writable("rename partitions of")
    if was_applied(head.tracked, token):
        return table._with(head.refreshed())
    head = head.at_write(write)
    values = renamed_columns(head.metadata, old, new)
    if not _listed(head, old).num_rows:
        raise NotFound(f"{head.name} has no partition {_text(old)}")
    if _listed(head, new).num_rows:
        raise AlreadyExists(f"{head.name} has a partition {_text(new)} already")
    if write is None:
        write = head.begin_write()
        files = _rewritten(head, write, old, values)
    files = files or _empty(head, write, [new])
    # Rows that other writers add to the new partition must not be mixed with rows of the old partition.
    both = predicate_of(head.metadata, [old, new])
    change = file_changes.ContentsChange(
        operation=OperationKind.OVERWRITE, files=files, filter=both, filter_text=str(both)
    )
    with kept_by_commit(head.tracked, files):
        return table._with(file_changes.commit_write(head, write, change, token))


def _listed(head: TableHead, where: Values | None) -> pa.Table:
    head.note_rows_read(None)
    # Files of an earlier partitioning are in a present partition by the statistics of its columns.
    column_ids = {field.source_id for spec in head.metadata.specs for field in spec.fields}
    return list_partitions(head.chunks(column_ids), head.metadata, where)


def _rewritten(head: TableHead, write: WriteRef, old: Values, values: dict[str, pa.Scalar]) -> list[DataFile]:
    rows = Scan(head, None, predicate_of(head.metadata, [old]), None).to_reader()

    def changed() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            yield with_values(batch, values)

    reader = pa.RecordBatchReader.from_batches(rows.schema, changed())
    return written_files(head.tracked, head.metadata, write, reader)


def _empty(head: TableHead, write: WriteRef, partitions: Sequence[Values]) -> list[DataFile]:
    keys = list(dict.fromkeys(key_of(head.metadata, values) for values in partitions))
    return written_partitions(head.tracked, head.metadata, write, keys)


def _text(values: Values) -> str:
    return "(" + ", ".join(f"{name} = {value!r}" for name, value in values.items()) + ")"

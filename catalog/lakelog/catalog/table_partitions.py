"""Changes of single partitions: add, drop, truncate, rename. Each is one commit, or nothing.

Drop and truncate need no rows. A rename rewrites the rows of the partition, which have its values.
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
from lakelog.catalog.core.state import Operation
from lakelog.catalog.core.writes import file_changes
from lakelog.catalog.scan import Scan
from lakelog.log import WriteRef
from lakelog.log.errors import AlreadyExists, InvalidInput, NotFound


def listed(head: TableHead, where: Values | None) -> pa.Table:
    """Return the partitions of a version (see `list_partitions`)."""
    head.note_rows_read(None)
    # Files of an earlier partitioning are in one of today's partitions by the statistics of its columns.
    looked_at = {field.source_id for spec in head.metadata.specs for field in spec.fields}
    return list_partitions(head.chunks(looked_at), head.metadata, where)


def add(head: TableHead, partitions: Sequence[Values], token: Token | None) -> TableHead:
    """Add partitions without rows; one that exists already stays as it is. Costs a PUT for each, and the commit."""
    head = head.newest_known()
    write = head.begin_write()
    change = file_changes.ContentsChange(operation=Operation.APPEND, files=_empty(head, write, partitions))
    with kept_by_commit(head.tracked, change.files):
        return file_changes.commit_write(head, write, change, token)


def truncate(head: TableHead, partitions: Sequence[Values], token: Token | None) -> TableHead:
    """Remove the rows of partitions, which stay as empty ones."""
    write = head.begin_write()
    predicate = predicate_of(head.metadata, partitions)
    change = file_changes.ContentsChange(
        operation=Operation.DELETE,
        files=_empty(head, write, partitions),
        filter=predicate,
        filter_text=str(predicate),
    )
    with kept_by_commit(head.tracked, change.files):
        try:
            return head.after(file_changes.commit(head, change, write=write, token=token))
        except NothingToDo:  # where no partition was named
            return head.refreshed().unchanged()


def plan_rename(head: TableHead, old: Values, new: Values) -> tuple[pa.Table, tuple[str, ...] | None]:
    """Return the files that may have rows of the partition `old`, and the columns that an engine rewriting them
    changes and checks; None where it cannot, as others are made of them. InvalidInput for NULL where that cannot be."""
    metadata = head.metadata
    values = renamed_columns(metadata, old, new)
    for field in metadata.schema.fields:
        if field.name in values and not values[field.name].is_valid and not field.nullable:
            raise InvalidInput(
                f"the column {field.name} of {head.name} is NOT NULL, so no partition can have NULL for it: give a "
                "value"
            )
    is_made = any(
        field.generated is not None and not values.keys().isdisjoint((field.name, *field.generated.columns))
        for field in metadata.schema.fields
    ) or any(field.name in values for field, _ in identity_fields(metadata.schema))
    files = head.plan(predicate_of(metadata, [old]))
    return files, None if is_made else tuple(values)


def rename(
    head: TableHead,
    old: Values,
    new: Values,
    token: Token | None,
    write: WriteRef | None = None,
    files: Sequence[DataFile] | None = None,
) -> TableHead:
    """Rewrite the rows of the partition `old` with the values of `new`, or take `files` of a `write` that has done so.
    NotFound, AlreadyExists."""
    if was_applied(head.tracked, token):
        return head.refreshed()
    head = head.at_write(write)
    values = renamed_columns(head.metadata, old, new)
    if not listed(head, old).num_rows:
        raise NotFound(f"{head.name} has no partition {_text(old)}")
    if listed(head, new).num_rows:
        raise AlreadyExists(f"{head.name} has a partition {_text(new)} already")
    if write is None:
        write = head.begin_write()
        files = _rewritten(head, write, old, values)
    files = files or _empty(head, write, [new])
    # Rows that other writers add to the new partition meanwhile must not be mixed with those of the old one.
    both = predicate_of(head.metadata, [old, new])
    change = file_changes.ContentsChange(
        operation=Operation.OVERWRITE, files=files, filter=both, filter_text=str(both)
    )
    with kept_by_commit(head.tracked, files):
        return file_changes.commit_write(head, write, change, token)


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

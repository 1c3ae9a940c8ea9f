"""Rows from Python on their way into a table: their checks, and how they become data files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from lakelog.catalog.core.files.data_file import DataFile
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.parquet.conform import conform
from lakelog.catalog.core.parquet.enforcing import checks_of, enforce
from lakelog.catalog.core.parquet.given_rows import Ingestible, reader_of
from lakelog.catalog.core.parquet.numbering import IdentityNumbering
from lakelog.catalog.core.parquet.reading import ID_FIELDS
from lakelog.catalog.core.parquet.writing import BUFFERED_BYTES, write_empty_files, write_files
from lakelog.catalog.core.schema.arrow_types import schema_to_arrow
from lakelog.catalog.core.schema.curve import curve_of, order_within_files
from lakelog.catalog.core.schema.generated import refuse_generated
from lakelog.catalog.core.schema.identity import relaxed
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.properties.known import TARGET_FILE_SIZE
from lakelog.catalog.core.state.table_state import TableState
from lakelog.log import LogOptions, WriteRef
from lakelog.log.stores import ObjectStore


class RowChecks:
    """Brings rows into the shape of a table, and checks them against its constraints.

    `numbering` makes the values of identity columns of new rows; without it, they have their values already.
    Raises Unsupported for a CHECK that is not understood here, and for generated columns.
    """

    def __init__(self, metadata: Metadata, numbering: IdentityNumbering | None = None) -> None:
        refuse_generated(metadata.schema, "write these by INSERT, UPDATE or MERGE in Spark")
        self._checks = checks_of(metadata)
        self._numbering = numbering
        self._schema = metadata.schema
        self._logical = schema_to_arrow(metadata.schema, physical=False)
        self._given = metadata.schema if numbering is None else relaxed(metadata.schema)

    def new(self, rows: pa.Table) -> pa.Table:
        """Return rows that are added. Raises InvalidInput if they do not fit, or CheckViolated."""
        return self._filled(conform(rows, self._given))

    def proposed(self, rows: pa.Table) -> pa.Table:
        """Return `new` without the values that it fills into identity columns."""
        rows = conform(rows, self._given)
        self._filled(rows)
        return rows

    def _filled(self, rows: pa.Table) -> pa.Table:
        if self._numbering is not None and self._numbering.has_columns:
            rows = pa.Table.from_arrays(self._numbering.fill(rows).columns, schema=self._logical)
        enforce(self._checks, rows)
        return rows

    def updated(self, rows: pa.Table) -> pa.Table:
        """Return `new` for rows that replace other rows, and have their values of identity columns."""
        rows = conform(rows, self._schema)
        enforce(self._checks, rows)
        return rows


def written_files(
    tracked: TrackedLog[TableState],
    metadata: Metadata,
    write: WriteRef,
    data: Ingestible,
    numbering: IdentityNumbering | None = None,
) -> list[DataFile]:
    """Write the rows of `data` as data files of the table and return them; they are not committed yet.

    Raises the errors of `RowChecks`.
    """
    checks = RowChecks(metadata, numbering)
    rows = (checks.new(pa.Table.from_batches([batch])) for batch in reader_of(data))
    return written_rows(tracked, metadata, write, rows)


def few_rows(data: Ingestible, size_bytes_max: int) -> pa.Table | pa.RecordBatchReader:
    """Return the rows in a single table if they are that few, else a reader of all of them.

    Raises the errors of `reader_of`.
    """
    reader = reader_of(data)
    batches: list[pa.RecordBatch] = []
    size_bytes = 0
    for batch in reader:
        batches.append(batch)
        size_bytes += batch.nbytes
        if size_bytes > size_bytes_max:
            return pa.RecordBatchReader.from_batches(reader.schema, chain(batches, reader))
    return pa.Table.from_batches(batches, reader.schema)


def written_rows(
    tracked: TrackedLog[TableState],
    metadata: Metadata,
    write: WriteRef,
    rows: Iterable[pa.Table],
    *,
    row_ids: bool = False,
    target_size_bytes: int | None = None,
    cut: int | None = None,
    first_number: int = 0,
    buffered_bytes: int = BUFFERED_BYTES,
) -> list[DataFile]:
    """Write rows that are checked, with `row_ids` followed by their ids and versions, and return the files.

    They are written as the table is partitioned and sorted now, in row groups of `buffered_bytes`. Files have
    about `target_size_bytes` (None: the table's property), and end at the place `cut` of its curve. The files
    of a write are numbered, here from `first_number` on. Nothing is committed.
    """
    return rows_written_in(
        tracked.store,
        tracked.prefix,
        tracked.log.replay.options,
        metadata,
        write,
        rows,
        row_ids=row_ids,
        target_size_bytes=target_size_bytes,
        cut=cut,
        first_number=first_number,
        buffered_bytes=buffered_bytes,
    )


def rows_written_in(
    store: ObjectStore,
    prefix: str,
    options: LogOptions,
    metadata: Metadata,
    write: WriteRef,
    rows: Iterable[pa.Table],
    *,
    row_ids: bool = False,
    target_size_bytes: int | None = None,
    cut: int | None = None,
    first_number: int = 0,
    buffered_bytes: int = BUFFERED_BYTES,
) -> list[DataFile]:
    """Write rows as `written_rows` does, for the table at `prefix` of a store."""
    size = {} if target_size_bytes is None else {TARGET_FILE_SIZE.name: str(target_size_bytes)}
    schema = schema_to_arrow(metadata.schema, physical=False)
    for field in ID_FIELDS if row_ids else ():
        schema = schema.append(field)
    return write_files(
        store,
        prefix,
        write,
        pa.RecordBatchReader.from_batches(schema, (batch for part in rows for batch in part.to_batches())),
        metadata.schema,
        metadata.spec,
        order_within_files(metadata.clustering, metadata.sort_order),
        properties={**metadata.properties, **size},
        curve=curve_of(metadata.ranks, metadata.clustering, metadata.schema),
        cut=cut,
        first_number=first_number,
        row_ids=row_ids,
        buffered_bytes=buffered_bytes,
        in_parallel=options.in_parallel,
    )


def written_partitions(
    tracked: TrackedLog[TableState], metadata: Metadata, write: WriteRef, keys: Sequence[tuple[Any, ...]]
) -> list[DataFile]:
    """Write a file without rows for each partition, given by its values (see `write_empty_files`)."""
    return write_empty_files(
        tracked.store,
        tracked.prefix,
        write,
        keys,
        metadata.schema,
        metadata.spec,
        properties=metadata.properties,
        in_parallel=tracked.log.replay.options.in_parallel,
    )

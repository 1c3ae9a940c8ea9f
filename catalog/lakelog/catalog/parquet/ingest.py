"""Rows from Python on their way into a table: the accepted input, and how it becomes data files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from lakelog.catalog.files import DataFile
from lakelog.catalog.logs import TrackedLog
from lakelog.catalog.parquet.conform import conform
from lakelog.catalog.parquet.enforcing import checks_of, enforce
from lakelog.catalog.parquet.numbering import Numbering
from lakelog.catalog.parquet.writing import write_empty_files, write_files
from lakelog.catalog.schema import Metadata, order_within_files, refuse_generated, relaxed, schema_to_arrow
from lakelog.catalog.state import TableState
from lakelog.log import WriteRef
from lakelog.log.errors import InvalidInput


class ArrowStream(Protocol):
    """Anything that exports rows by Arrow's C stream interface: pandas, Polars, DuckDB and others do."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


Ingestible: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | ArrowStream


def reader_of(data: Ingestible) -> pa.RecordBatchReader:
    """Return `data` as a reader of record batches. InvalidInput for what is not Arrow data."""
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.Table):
        return data.to_reader()
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    raise InvalidInput(
        f"cannot write a {type(data).__name__}: give a pyarrow Table, RecordBatch or RecordBatchReader, or an object "
        "with __arrow_c_stream__ (pandas and Polars data frames have it)"
    )


def written_files(
    tracked: TrackedLog[TableState],
    metadata: Metadata,
    write: WriteRef,
    data: Ingestible,
    numbering: Numbering | None = None,
) -> list[DataFile]:
    """Write the rows of `data` as data files of the table and return them; they are not committed yet.

    `numbering` makes the values of identity columns; without it, the rows have their values already.
    CheckViolated for rows that violate a CHECK, Unsupported for a CHECK that is not understood here, and for generated
    columns.
    """
    refuse_generated(metadata.schema, "write these by INSERT, UPDATE or MERGE in Spark")
    reader = reader_of(data)
    checks = checks_of(metadata)
    logical = schema_to_arrow(metadata.schema, physical=False)
    expected = metadata.schema if numbering is None else relaxed(metadata.schema)

    def conformed() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            rows = conform(pa.Table.from_batches([batch]), expected)
            if numbering is not None:
                rows = pa.Table.from_arrays(numbering.fill(rows).columns, schema=logical)
            enforce(checks, rows)
            yield from rows.to_batches()

    rows = pa.RecordBatchReader.from_batches(logical, conformed())
    return write_files(
        tracked.store,
        tracked.prefix,
        write,
        rows,
        metadata.schema,
        metadata.spec,
        order_within_files(metadata.clustering, metadata.sort_order),
        properties=metadata.properties,
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
    )

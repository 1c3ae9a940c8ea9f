"""DuckDB, which computes joins, conditions and values for changes of rows from Python, in bounded memory.

Rows come and go as Arrow streams. Data that does not fit into memory is in a temporary folder, which is
deleted with the engine. Rule: values come back unchanged, and an error of a stream that DuckDB reads is
raised as itself. Only this module imports DuckDB. It must not know tables, files or commits.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

from lakelog.catalog.core.parquet.plain_arrow import first_line, recast, unsliced, with_parts
from lakelog.catalog.core.parquet.temporary import temporary_folder
from lakelog.log.errors import InvalidInput, StorageError, Unsupported, install_command

MEMORY_MB, MEMORY_MB_MAX = 80, 4096
"""The limits of DuckDB's memory. It needs more than the minimum only if rows are long, because it compresses
a group of them at once."""

GROUP_ROWS = 122_880
VECTOR_BYTES = 512 * 1024
"""Each column, and each part of it, has some vectors of 2048 values in each operator, however few rows there
are."""

THREADS_MAX = 2
"""Each thread needs memory of its own. With more threads, a large join would exceed the limit."""

BATCH_ROWS = 16 * 1024
"""Results come in batches that are small against DuckDB's memory, because it does not count them."""

PART_BYTES = 16 * 1024 * 1024
"""Rows to keep come in parts of about this size. DuckDB holds their Arrow memory until a part is
committed."""

# DuckDB narrows a join's reads by filters that mistake NaN and the two zeros. It does not know the size of
# streams, so joins are made in the order in which they are written here.
_DISABLED = "join_filter_pushdown,join_order,build_side_probe_side"


def fenced(stream: str) -> str:
    """Return the rows of an Arrow stream, in a query. Filters on them stay in DuckDB.

    It would hand them down to Arrow, which compares NaN otherwise than DuckDB and Spark.
    """
    return f"(SELECT * FROM {stream} LIMIT {2**63 - 1})"


def duckdb_module() -> ModuleType:
    """Return DuckDB. Raises Unsupported, with the command that installs it, if it is missing."""
    try:
        import duckdb
    except ImportError as error:
        raise Unsupported(
            "merge, upsert and update by expressions are computed by DuckDB, which is not installed: "
            f"{install_command('duckdb')}"
        ) from error
    return duckdb


class SqlEngine:
    """A database of DuckDB for a single change. Only one result is read at a time."""

    def __init__(self, folder: Path) -> None:
        duckdb = duckdb_module()
        self._errors = (duckdb.Error,)
        self._storage_errors = (duckdb.IOException, duckdb.OutOfMemoryException, duckdb.FatalException)
        self._folder = folder
        self._failed: BaseException | None = None
        self._memory_mb = MEMORY_MB
        self._connection = duckdb.connect(str(folder / "rows.duckdb"))
        settings: dict[str, str | int | bool] = {
            "memory_limit": f"{MEMORY_MB}MB",
            "threads": min(THREADS_MAX, os.cpu_count() or 1),
            # Freed memory goes back to the system, and not only after 128 MB of it.
            "allocator_flush_threshold": "8MB",
            "temp_directory": str(folder),
            "preserve_insertion_order": False,
            "disabled_optimizers": _DISABLED,
            "TimeZone": "UTC",
            "python_enable_replacements": False,
            "autoload_known_extensions": False,
            "autoinstall_known_extensions": False,
            "enable_external_access": False,
        }
        for name, value in settings.items():
            self._connection.execute(f"SET {name} = ?", [value]).fetchall()

    @staticmethod
    @contextmanager
    def opened() -> Iterator[SqlEngine]:
        """Return an engine that exists inside the context."""
        duckdb_module()
        with temporary_folder("rows") as folder:
            engine = SqlEngine(folder)
            try:
                yield engine
            finally:
                engine._connection.close()

    def begin(self) -> None:
        """Begin a transaction. From here on, the time is the same for all computations."""
        self.run("BEGIN")

    def keep(self, table: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """Make a table of rows, which is outside of memory if they are many."""
        with self.stream("no_rows", schema, ()):
            self.run(f"CREATE TABLE {table} AS SELECT * FROM no_rows")
        pending_batches: list[pa.RecordBatch] = []
        size = 0
        for batch in chain(batches, (None,)):
            if batch is not None:
                pending_batches.append(batch)
                size += batch.nbytes
            if size >= PART_BYTES or (batch is None and pending_batches):
                self._make_room(size // max(1, sum(rows_batch.num_rows for rows_batch in pending_batches)))
                with self.stream("some_rows", schema, pending_batches):
                    self.run(f"INSERT INTO {table} SELECT * FROM some_rows")
                pending_batches, size = [], 0

    def _make_room(self, row_bytes: int) -> None:
        self._allow(2 * GROUP_ROWS * row_bytes)

    def _allow(self, size_bytes: int) -> None:
        memory_mb = min(MEMORY_MB_MAX, size_bytes // 2**20)
        if memory_mb > self._memory_mb:
            self._memory_mb = memory_mb
            self.run(f"SET memory_limit = '{memory_mb}MB'")

    def value(self, sql: str, *parameters: Any) -> Any:
        """Return the single value of a query."""
        with self._raising():
            rows = self._connection.execute(sql, parameters).fetchall()
        return rows[0][0] if rows else None

    def run(self, sql: str) -> None:
        with self._raising():
            # A result that is not read to its end would block the next result.
            self._connection.execute(sql).fetchall()

    def table(self, sql: str) -> pa.Table:
        """Return all rows of a query that has few."""
        batches = list(self.rows(sql))
        return pa.Table.from_batches(batches) if batches else self.schema_of(sql).empty_table()

    def rows(self, sql: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a query as they are computed."""
        with self._raising():
            reader = self._connection.sql(sql).arrow(BATCH_ROWS)
        while True:
            with self._raising():
                batch = next(reader, None)
            if batch is None:
                return
            yield batch

    def schema_of(self, sql: str) -> pa.Schema:
        """Return the Arrow schema of a query over tables, without running it."""
        with self._raising():
            return self._connection.sql(f"SELECT * FROM ({sql}) LIMIT 0").arrow().schema

    @contextmanager
    def stream(self, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[None]:
        """Provide rows under a name inside the context, to be read once. Any DuckDB thread may read for this
        thread."""
        self._allow(VECTOR_BYTES * sum(map(_vectors, schema.types)))
        context, rows = copy_context(), iter(batches)

        def watched() -> Iterator[pa.RecordBatch]:
            try:
                while (batch := context.run(next, rows, None)) is not None:
                    yield batch
            except BaseException as error:
                self._failed = error
                raise

        with self._raising():
            self._connection.register(name, pa.RecordBatchReader.from_batches(schema, watched()))
        try:
            yield
        finally:
            # After an error in a transaction DuckDB 2 does nothing more, and that error is raised.
            with suppress(*self._errors):
                self._connection.unregister(name)

    @contextmanager
    def _raising(self) -> Iterator[None]:
        try:
            yield
        except self._storage_errors as error:
            self._raise_failure_of_stream(error)
            raise StorageError(
                f"DuckDB cannot compute the change, for which it has {self._memory_mb} MB of memory and the folder "
                f"{self._folder} ({first_line(error)}): make room there, or set TMPDIR to another folder",
                location=str(self._folder),
            ) from error
        except self._errors as error:
            self._raise_failure_of_stream(error)
            raise InvalidInput(
                f"DuckDB cannot compute the change ({first_line(error)}): change the expression, or the data"
            ) from error

    def _raise_failure_of_stream(self, error: BaseException) -> None:
        if self._failed is not None:
            raise self._failed from error


def quoted_name(name: str) -> str:
    """Return an identifier in DuckDB's SQL."""
    return '"' + name.replace('"', '""') + '"'


# Conversion of values for DuckDB. A carried type differs there from plain Arrow.


def into_engine(column: pa.Array | pa.ChunkedArray, name: str) -> pa.Array | pa.ChunkedArray:
    """Return the values of a plain Arrow column in the form that DuckDB takes."""
    engine_type = carried_type(column.type)
    column = column if column.type == engine_type else recast(column, engine_type, (name,))
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([unsliced(chunk) for chunk in column.chunks], type=column.type)
    return unsliced(column)


def out_of_engine(column: pa.Array, plain: pa.DataType, name: str) -> pa.Array:
    """Return the values of a column in its plain type again, if DuckDB has no such type."""
    return recast(column, plain, (name,)) if carried_type(plain) != plain else column


def carried_type(type: pa.DataType) -> pa.DataType:
    """Return the type in DuckDB of values of a plain type. It is usually the same."""
    if pa.types.is_duration(type):
        return pa.int64()
    if pa.types.is_null(type):
        return pa.int32()
    return with_parts(type, lambda field: carried_type(field.type))


def _vectors(type: pa.DataType) -> int:
    return 1 + sum(_vectors(type.field(at).type) for at in range(type.num_fields))

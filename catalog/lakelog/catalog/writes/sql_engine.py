"""DuckDB, which computes what changes of rows from Python need: joins, conditions and values, in bounded memory.

Rows come and go as Arrow streams. What does not fit into memory lies in a temporary folder, which goes with the
engine. Rule: values are what they were when they come back, and an error of a stream that DuckDB reads is raised as
itself. Only this module imports DuckDB. It must not know tables, files or commits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

from lakelog.catalog.parquet import temporary_folder
from lakelog.catalog.schema import dotted, is_list
from lakelog.log.errors import InvalidInput, StorageError, Unsupported

MEMORY_MB, MEMORY_MB_MAX = 80, 4096
"""What DuckDB may take: more than the least only where rows are long, as it compresses a group of them at once."""

GROUP_ROWS = 122_880
THREADS_MAX = 2
"""Each thread needs memory of its own: with more of them, the limit would not do for a large join."""

BATCH_ROWS = 16 * 1024
"""Results come in batches that are small beside the memory that DuckDB may take: it does not count them."""

PART_BYTES = 16 * 1024 * 1024
"""Rows that are kept come in parts of about this size: DuckDB holds their Arrow memory until a part is committed."""

# DuckDB narrows what a join reads by filters that mistake NaN and the two zeros. Of streams it does not know the size:
# the order of joins is the one in which they are written here.
_DISABLED = "join_filter_pushdown,join_order,build_side_probe_side"


def fenced(stream: str) -> str:
    """Return the rows of an Arrow stream, in a query: filters on them stay with DuckDB.

    It would hand them down to Arrow, which compares NaN otherwise than DuckDB and Spark do.
    """
    return f"(SELECT * FROM {stream} LIMIT {2**63 - 1})"


def duckdb_module() -> ModuleType:
    """Return DuckDB. Unsupported, with what to install, where it is missing."""
    try:
        import duckdb
    except ImportError as error:
        raise Unsupported(
            "merge, upsert and update by expressions are computed by DuckDB, which is not installed: "
            "pip install 'lakelog[duckdb]'"
        ) from error
    return duckdb


class SqlEngine:
    """One database of DuckDB's, for one change. Only one result is read at a time."""

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
            # What it has freed goes back to the system, and not only after 128 MB of it.
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
            self._connection.execute(f"SET {name} = ?", [value])

    @staticmethod
    @contextmanager
    def opened() -> Iterator[SqlEngine]:
        """Return an engine that is there inside."""
        duckdb_module()
        with temporary_folder("rows") as folder:
            engine = SqlEngine(folder)
            try:
                yield engine
            finally:
                engine._connection.close()

    def begin(self) -> None:
        """From here on, the time is the same for all that is computed."""
        self.run("BEGIN")

    def keep(self, table: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """Make a table of rows, outside of memory where they are many."""
        with self.stream("no_rows", schema, ()):
            self.run(f"CREATE TABLE {table} AS SELECT * FROM no_rows")
        waiting: list[pa.RecordBatch] = []
        size = 0
        for batch in chain(batches, (None,)):
            if batch is not None:
                waiting.append(batch)
                size += batch.nbytes
            if size >= PART_BYTES or (batch is None and waiting):
                self._make_room(size // max(1, sum(each.num_rows for each in waiting)))
                with self.stream("some_rows", schema, waiting):
                    self.run(f"INSERT INTO {table} SELECT * FROM some_rows")
                waiting, size = [], 0

    def _make_room(self, row_bytes: int) -> None:
        wanted = min(MEMORY_MB_MAX, 2 * GROUP_ROWS * row_bytes // 2**20)
        if wanted > self._memory_mb:
            self._memory_mb = wanted
            self.run(f"SET memory_limit = '{wanted}MB'")

    def value(self, sql: str, *parameters: Any) -> Any:
        """Return the one value of a query."""
        with self._raising():
            found = self._connection.execute(sql, parameters).fetchone()
        return None if found is None else found[0]

    def run(self, sql: str) -> None:
        with self._raising():
            self._connection.execute(sql)

    def table(self, sql: str) -> pa.Table:
        """Return all rows of a query that has few."""
        batches = list(self.rows(sql))
        return pa.Table.from_batches(batches) if batches else self.schema_of(sql).empty_table()

    def rows(self, sql: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a query as they are computed."""
        with self._raising():
            reader = self._connection.execute(sql).to_arrow_reader(BATCH_ROWS)
        while True:
            with self._raising():
                batch = next(reader, None)
            if batch is None:
                return
            yield batch

    def schema_of(self, sql: str) -> pa.Schema:
        """Return the Arrow schema of a query over tables, which is not run."""
        with self._raising():
            return self._connection.execute(f"SELECT * FROM ({sql}) LIMIT 0").to_arrow_table().schema

    @contextmanager
    def stream(self, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[None]:
        """Inside, rows can be read once under a name, by any thread of DuckDB's: it works for the one that is here."""
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
            self._connection.unregister(name)

    @contextmanager
    def _raising(self) -> Iterator[None]:
        try:
            yield
        except self._storage_errors as error:
            self._raise_failure_of_stream(error)
            raise StorageError(
                f"DuckDB cannot compute the change, for which it has {self._memory_mb} MB of memory and the folder "
                f"{self._folder} ({_first_line(error)}): make room there, or set TMPDIR to another folder",
                location=str(self._folder),
            ) from error
        except self._errors as error:
            self._raise_failure_of_stream(error)
            raise InvalidInput(
                f"DuckDB cannot compute the change ({_first_line(error)}): change the expression, or the data"
            ) from error

    def _raise_failure_of_stream(self, error: BaseException) -> None:
        if self._failed is not None:
            raise self._failed from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def quoted_name(name: str) -> str:
    """Return an identifier in DuckDB's SQL."""
    return '"' + name.replace('"', '""') + '"'


# Values on their way through DuckDB: `plain` ones are of types that DuckDB has; `carried` ones have another type there.


def into_engine(column: pa.Array | pa.ChunkedArray, name: str) -> pa.Array | pa.ChunkedArray:
    """Return the values of a column in the form that DuckDB takes. InvalidInput for a value that it would change."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    plain = plain_type(column.type, name)
    try:
        if column.type != plain:
            column = column.cast(plain)
        carried = carried_type(plain)
        return column if plain == carried else column.cast(carried)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInput(
            f"the source's column {dotted((name,))} of Arrow's type {column.type} has a value that microseconds or "
            f"{plain} cannot hold ({_first_line(error)}): convert it"
        ) from None


def out_of_engine(column: pa.Array, plain: pa.DataType) -> pa.Array:
    """Return the values of a column whose plain type is known in that type again, where DuckDB has none like it."""
    if pa.types.is_null(plain):
        return pa.nulls(len(column))
    return column.cast(plain) if carried_type(plain) != plain else column


def plain_type(type: pa.DataType, name: str) -> pa.DataType:
    """Return the type that a column of Arrow's `type` has for what is computed. Unsupported for types without one."""
    types = pa.types
    if isinstance(type, pa.BaseExtensionType):
        return plain_type(type.storage_type, name)
    if types.is_dictionary(type) or types.is_run_end_encoded(type):
        return plain_type(type.value_type, name)
    if types.is_timestamp(type):
        return pa.timestamp("us", type.tz)
    if types.is_time(type):
        return pa.time64("us")
    if types.is_duration(type):
        return pa.duration("us")
    if types.is_date(type):
        return pa.date32()
    if types.is_float16(type):
        return pa.float32()
    if types.is_decimal(type):
        if type.precision > 38 or not 0 <= type.scale <= type.precision:
            raise _without_form(type, name)
        return pa.decimal128(type.precision, type.scale)
    if types.is_interval(type) or types.is_union(type):
        raise _without_form(type, name)
    return _with_parts(type, lambda part: plain_type(part, name))


def carried_type(type: pa.DataType) -> pa.DataType:
    """Return the type that values of a plain type have in DuckDB, where that is another."""
    if pa.types.is_duration(type):
        return pa.int64()
    if pa.types.is_null(type):
        return pa.int32()
    return _with_parts(type, carried_type)


def _with_parts(type: pa.DataType, of: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    types = pa.types
    if types.is_struct(type):
        return pa.struct([part.with_type(of(part.type)) for part in type])
    if types.is_map(type):
        return pa.map_(
            type.key_field.with_type(of(type.key_type)), type.item_field.with_type(of(type.item_type))
        )
    if is_list(type):
        return pa.list_(type.value_field.with_type(of(type.value_type)))
    return type


def _without_form(type: pa.DataType, name: str) -> Unsupported:
    return Unsupported(
        f"the source's column {dotted((name,))} has Arrow's type {type}, which cannot be stored: cast it to another"
    )

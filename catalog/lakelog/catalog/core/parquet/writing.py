"""Writing rows to data files: split by partition, sorted, rolled at the target size, with statistics.

Files have the physical names and types of the schema, and are put under `<prefix>/data/`, see
`data_file.file_path`. Readers do not see them before they are committed. Rows are encoded while the next rows
are read, and files are put while the next files are made. The files are the same as if they were made in
turn.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakelog.catalog.core.files.data_file import ColumnStats, DataFile, file_path
from lakelog.catalog.core.files.row_ids import OWN_FIELD_IDS, ROW_ID, ROW_VERSION
from lakelog.catalog.core.files.statistics import MeasuredColumn, footer_statistics, measured_columns
from lakelog.catalog.core.parquet.beside import SideThread
from lakelog.catalog.core.parquet.bloom_filters import NONE, BloomFilters, bloom_filters_of
from lakelog.catalog.core.parquet.curve_cuts import FILE_LEAST, FILE_MOST, border
from lakelog.catalog.core.parquet.dictionaries import columns_without_dictionary
from lakelog.catalog.core.parquet.opening import footer_crc_of
from lakelog.catalog.core.parquet.reshape import to_physical
from lakelog.catalog.core.parquet.row_order import clusters, places_on, sorted_rows
from lakelog.catalog.core.schema.arrow_types import identified_field, schema_to_arrow
from lakelog.catalog.core.schema.curve import ClusteringCurve, Ints
from lakelog.catalog.core.schema.literals import float_from_json, float_to_json
from lakelog.catalog.core.schema.partitioning import PartitionSpec, SortOrder
from lakelog.catalog.core.schema.properties.known import COMPRESSION_CODEC, TARGET_FILE_SIZE
from lakelog.catalog.core.schema.schema import Schema
from lakelog.log import ObjectStore, WriteRef
from lakelog.log.parallel import run_in_parallel

InParallel: TypeAlias = Callable[[Sequence[Callable[[], None]]], None]
"""Runs works, and returns when all have ended."""

BUFFERED_BYTES = 64 * 1024 * 1024

OPEN_FILES_LIMIT = 200
OPEN_BYTES_LIMIT = 512 * 1024 * 1024

_CODECS = {"uncompressed": "none", "lz4_raw": "lz4"}


def write_files(
    store: ObjectStore,
    prefix: str,
    write: WriteRef,
    rows: pa.RecordBatchReader,
    schema: Schema,
    spec: PartitionSpec,
    sort_order: SortOrder,
    *,
    properties: Mapping[str, str],
    curve: ClusteringCurve | None = None,
    cut: int | None = None,
    first_number: int = 0,
    row_ids: bool = False,
    buffered_bytes: int = BUFFERED_BYTES,
    in_parallel: InParallel = run_in_parallel,
) -> list[DataFile]:
    """Write `rows`, which have the logical schema of `schema`, and return the files.

    Costs a PUT for each file; the last files of all partitions are put `in_parallel`. With `row_ids`, the
    last two columns of `rows` are their ids and versions (see `row_ids`). On an error, the files that were
    put already are deleted.

    Rows are collected up to `buffered_bytes` before they are split and written, each part as a row group. Two
    such parts are in memory, and two files of the target size.

    With a `curve`, rows are sorted by their places on it before all else, and files have the range of their
    places. No file has rows on both sides of the place `cut`, if rows come in the order of the curve. Names
    of a write's files have numbers, which begin with `first_number`.
    """

    def encode(part: pa.Table) -> None:
        for key, cluster in clusters(part, schema, spec):
            places = None if curve is None else places_on(curve, cluster, schema)
            sorted_cluster, places = sorted_rows(cluster, schema, sort_order, places)
            if places is None or cut is None:
                writer.write(key, sorted_cluster, places)
                continue
            at = int(np.searchsorted(places, cut))
            for start, end in ((0, at), (at, sorted_cluster.num_rows)):
                if start < end:
                    writer.write(key, sorted_cluster.slice(start, end - start), places[start:end])

    generation = None if curve is None else curve.ranks.generation
    writer = _Writing(
        store,
        prefix,
        write,
        schema,
        spec,
        properties,
        row_ids=row_ids,
        generation=generation,
        cut=cut,
        first_number=first_number,
    )
    try:
        with writer, SideThread("lakelog-encode") as encoding:
            for part, is_last in _buffered(rows, buffered_bytes):
                if is_last:
                    # So few rows as most writes have are written without a thread.
                    encoding.wait()
                    encode(part)
                else:
                    encoding.run(partial(encode, part))
                    del part
            encoding.wait()
            return writer.finish(in_parallel)
    except BaseException:
        writer.discard()
        raise


def codec_of(properties: Mapping[str, str]) -> str:
    """Return Arrow's name of the compression in a table's properties."""
    codec = COMPRESSION_CODEC.of(properties)
    return _CODECS.get(codec, codec)


def write_empty_files(
    store: ObjectStore,
    prefix: str,
    write: WriteRef,
    partitions: Sequence[tuple[Any, ...]],
    schema: Schema,
    spec: PartitionSpec,
    *,
    properties: Mapping[str, str],
    in_parallel: InParallel = run_in_parallel,
) -> list[DataFile]:
    """Write a file without rows for each of `partitions`, as `write_files` does.

    Each partition is the JSON literals of the fields of `spec`, in their order.
    """
    writer = _Writing(store, prefix, write, schema, spec, properties)
    try:
        with writer:
            for key in partitions:
                writer.write_nothing(key)
            return writer.finish(in_parallel)
    except BaseException:
        writer.discard()
        raise


def _buffered(rows: pa.RecordBatchReader, limit_bytes: int) -> Iterator[tuple[pa.Table, bool]]:
    """Yield rows in parts of about that size, and a last part, for which the second value is true."""
    batches: list[pa.RecordBatch] = []
    size = 0
    for batch in rows:
        if batch.num_rows:
            batches.append(batch)
            size += batch.nbytes
        if size >= limit_bytes:
            part = pa.Table.from_batches(batches)
            batches, size = [], 0
            yield part, False
            del part
    if batches:
        yield pa.Table.from_batches(batches), True


class _Writing:
    """The open files of a write, at most a file for each partition."""

    def __init__(
        self,
        store: ObjectStore,
        prefix: str,
        write: WriteRef,
        schema: Schema,
        spec: PartitionSpec,
        properties: Mapping[str, str],
        *,
        row_ids: bool = False,
        generation: int | None = None,
        cut: int | None = None,
        first_number: int = 0,
    ) -> None:
        self._store = store
        self._prefix = f"{prefix}/" if prefix else ""
        self._write = write
        self._schema = schema
        self._spec = spec
        self._physical = schema_to_arrow(schema, physical=True)
        self._row_ids = row_ids
        self._generation = generation
        self._cut = cut
        if row_ids:
            for name, id in OWN_FIELD_IDS.items():
                self._physical = self._physical.append(identified_field(name, pa.int64(), True, id))
        self._measured = measured_columns(schema)
        self._floats = [column for column in self._measured if column.is_float]
        self._with_nan: set[str] = set()
        self._plain: set[str] | None = None
        self._codec = codec_of(properties)
        self._bloom = bloom_filters_of(schema, properties)
        self._target_size_bytes = TARGET_FILE_SIZE.of(properties)
        self._row_bytes = 0.0
        self._open: dict[tuple[Any, ...], OpenFile] = {}
        self._closed = first_number
        self._putting = SideThread("lakelog-put")
        self._puts: list[Callable[[], None]] = []
        self._done: list[DataFile] = []

    def __enter__(self) -> None:
        self._putting.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._putting.__exit__(*error)

    def write(self, key: tuple[Any, ...], rows: pa.Table, places: Ints | None = None) -> None:
        """Append `rows` of a partition to its file, or to several files of about the target size.

        The files are put in the background.
        """
        physical = self._to_physical(rows)
        # Compressed, rows are rarely larger than in memory: pieces of the target size are never too large.
        pieces = max(1, -(-physical.nbytes // self._target_size_bytes))
        length = -(-physical.num_rows // pieces)
        start = 0
        while start < physical.num_rows:
            piece = physical.slice(start, length)
            self._with_nan |= columns_with_nan(piece)
            file = self._open.pop(key, None)
            if file is not None and (not self._with_nan <= file.unbounded or self._is_cut_off(file, places)):
                self._close(key, file, self._putting.run)
                file = None
            if self._plain is None:
                self._plain = columns_without_dictionary(piece)
            if file is None:
                plain = self._plain or ()
                file = OpenFile(
                    self._physical, self._codec, self._with_nan, plain, self._bloom, piece.num_rows
                )
            most_bytes = self._target_size_bytes
            if places is not None:
                piece_places = places[start : start + piece.num_rows]
                end = self._border(file, piece_places)
                piece = piece.slice(0, end)
                file.place(piece_places[:end])
                if end is None and file.is_ordered:
                    most_bytes = int(FILE_MOST * most_bytes)
                elif end is not None:
                    most_bytes = 0
            file.write(piece, self._floats)
            start += piece.num_rows
            if file.size_bytes >= most_bytes:
                self._close(key, file, self._putting.run)
            else:
                # Put back at the end, so that the first is the least recently written file.
                self._open[key] = file
        while len(self._open) > OPEN_FILES_LIMIT or self._open_bytes() > OPEN_BYTES_LIMIT:
            oldest = next(iter(self._open))
            self._close(oldest, self._open.pop(oldest), self._putting.run)

    def _border(self, file: OpenFile, places: Ints) -> int | None:
        """Return how many of the next rows are the last rows of a file; None if it may take all of them.

        The file's size with them is not known before they are written. It is estimated by the size of its
        rows so far, or of the last file's rows.
        """
        size, rows = file.size_bytes, file.rows
        if rows:
            self._row_bytes = size / rows
            if file.span is not None and int(places[0]) < file.span[1]:
                return None  # rows that were not sorted together
        if not self._row_bytes:
            return None
        least, most = (
            max(1, int((share * self._target_size_bytes - size) / self._row_bytes))
            for share in (FILE_LEAST, FILE_MOST)
        )
        origin = int(places[0]) if file.span is None else file.span[0]
        row_number = border(places, least, min(most, len(places)), origin)
        return most if row_number is None and most < len(places) else row_number

    def _is_cut_off(self, file: OpenFile, places: Ints | None) -> bool:
        if self._cut is None or places is None or file.span is None:
            return False
        return file.span[1] < self._cut <= int(places.min())

    def write_nothing(self, key: tuple[Any, ...]) -> None:
        """Add a file without rows to a partition."""
        self._close(key, OpenFile(self._physical, self._codec, ()), self._puts.append)

    def finish(self, in_parallel: InParallel) -> list[DataFile]:
        self._putting.wait()
        for key, file in self._open.items():
            self._close(key, file, self._puts.append)
        self._open.clear()
        puts, self._puts = self._puts, []  # they refer to this object
        in_parallel(puts)
        return sorted(self._done, key=lambda file: file.path)

    def discard(self) -> None:
        self._store.delete([self._prefix + file.path for file in self._done])

    def _close(self, key: tuple[Any, ...], file: OpenFile, run: Callable[[Callable[[], None]], None]) -> None:
        content, footer = file.close()
        number, self._closed = self._closed, self._closed + 1
        run(lambda: self._put(number, key, file, content, footer))

    def _put(
        self, number: int, key: tuple[Any, ...], file: OpenFile, content: bytes, footer: pq.FileMetaData
    ) -> None:
        # The same write may have new rows, too, in files of other names.
        suffix = "-copied" if self._row_ids else ""
        path = file_path(self._write, f"{number:05d}{suffix}")
        self._store.put(self._prefix + path, content)
        nans = dict.fromkeys((column.id for column in self._floats), 0)
        footer_stats = footer_statistics(footer, self._measured, range(footer.num_row_groups), nans)
        self._done.append(
            DataFile(
                path=path,
                size_bytes=len(content),
                rows=footer.num_rows,
                spec_id=self._spec.id,
                partition={field.id: value for field, value in zip(self._spec.fields, key, strict=True)},
                stats=dict(sorted({**footer_stats, **file.statistics}.items())),
                write_id=self._write.id,
                crc=crc32(content),
                footer_crc=footer_crc_of(content),
                curve=None if file.span is None else self._generation,
                curve_low=None if file.span is None else file.span[0],
                curve_high=None if file.span is None else file.span[1],
            )
        )

    def _to_physical(self, rows: pa.Table) -> pa.Table:
        if rows.schema.types == self._physical.types:
            return pa.Table.from_arrays(rows.columns, schema=self._physical)
        physical = to_physical(rows.select(range(len(self._schema.fields))), self._schema)
        if self._row_ids:
            for name, column in zip((ROW_ID, ROW_VERSION), rows.columns[-2:], strict=True):
                physical = physical.append_column(name, column)
        return physical

    def _open_bytes(self) -> int:
        return sum(file.size_bytes for file in self._open.values())


class OpenFile:
    """A Parquet file that is being made in memory.

    Columns of floats that are `unbounded` have no statistics in it, nor have floats in nested columns.
    Parquet's bounds leave NaN out, so a reader for which NaN is the largest number would skip it. Only such
    columns may have NaN. Columns that are `plain` get no dictionary. Filters by `bloom` are made for row
    groups of `rows` rows.
    """

    def __init__(
        self,
        schema: pa.Schema,
        codec: str,
        unbounded: Collection[str],
        plain: Collection[str] = (),
        bloom: BloomFilters = NONE,
        rows: int = 0,
    ) -> None:
        self.unbounded = frozenset(unbounded)
        self.statistics: dict[int, ColumnStats] = {}
        self.span: tuple[int, int] | None = None
        self.is_ordered = True
        self.rows = 0
        # Unlike Arrow's own buffer, it gives its content away without a copy.
        self._sink = io.BytesIO()
        # The Arrow schema is left out: it follows from the Parquet types, and is half of a small file.
        self._writer = pq.ParquetWriter(
            self._sink,
            schema,
            compression=codec,
            store_schema=False,
            store_decimal_as_integer=True,
            write_page_checksum=True,
            write_statistics=_bounded(schema, self.unbounded),
            use_dictionary=[path for path, _ in _leaves(schema) if path not in plain] if plain else True,
            **bloom.options(rows),
        )
        self._most_rows = bloom.ndv if bloom.columns else None

    @property
    def size_bytes(self) -> int:
        return self._sink.tell()

    def write(self, rows: pa.Table, floats: Sequence[MeasuredColumn]) -> None:
        """Append a row group. Measures the columns of `floats` that have no statistics in the file."""
        for column in floats:
            if column.physical in self.unbounded:
                column_stats = self.statistics.get(column.id)
                self.statistics[column.id] = _with_values(column_stats, rows.column(column.physical))
        self._writer.write_table(rows, row_group_size=self._most_rows)
        self.rows += rows.num_rows

    def place(self, places: Ints) -> None:
        """Note the places of the rows of a row group on the curve."""
        low, high = int(places.min()), int(places.max())
        self.is_ordered = self.is_ordered and (self.span is None or self.span[1] <= low)
        self.span = (low, high) if self.span is None else (min(low, self.span[0]), max(high, self.span[1]))

    def close(self) -> tuple[bytes, pq.FileMetaData]:
        self._writer.close()
        return self._sink.getvalue(), self._writer.writer.metadata


def columns_with_nan(rows: pa.Table) -> set[str]:
    """Return the names of columns that have NaN, except nested columns."""
    return {
        name
        for name, column in zip(rows.column_names, rows.columns, strict=True)
        if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py()
    }


def _bounded(schema: pa.Schema, unbounded: Collection[str]) -> list[str] | bool:
    """Return the paths in Parquet of the columns that have statistics, or True for all."""
    plain = {field.name for field in schema if pa.types.is_floating(field.type)} - set(unbounded)
    if not unbounded and not any(pa.types.is_nested(field.type) for field in schema):
        return True
    return [path for path, type in _leaves(schema) if type not in ("FLOAT", "DOUBLE") or path in plain]


def _leaves(schema: pa.Schema) -> list[tuple[str, str]]:
    """Return the paths of the columns in Parquet, nested columns included, with their types there."""
    empty_writer = pq.ParquetWriter(io.BytesIO(), schema)
    empty_writer.close()
    parquet = empty_writer.writer.metadata.schema
    columns = [parquet.column(index) for index in range(len(parquet))]
    return [(column.path, column.physical_type) for column in columns]


def _with_values(column_stats: ColumnStats | None, values: pa.ChunkedArray) -> ColumnStats:
    """Return the statistics of a column of floats that has `values` too."""
    column_stats = column_stats or ColumnStats(nulls=0)
    numbers = values.filter(pc.invert(pc.is_nan(values)))
    old_limits = [
        float_from_json(limit) for limit in (column_stats.min, column_stats.max) if limit is not None
    ]
    min_max = pc.min_max(pa.chunked_array([*numbers.chunks, pa.array(old_limits, numbers.type)]))
    # A zero bound is the zero beyond the other zero.
    low, high = (
        float_to_json(min_max[name].as_py() or zero) if min_max[name].is_valid else None
        for name, zero in (("min", -0.0), ("max", 0.0))
    )
    nans = (column_stats.nans or 0) + len(values) - values.null_count - len(numbers)
    return ColumnStats(
        nulls=(column_stats.nulls or 0) + values.null_count, min=low, max=high, nans=nans or None
    )

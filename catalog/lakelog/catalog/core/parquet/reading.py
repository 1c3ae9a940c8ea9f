"""Reading rows of data files: the requested columns, in the table's present schema, filtered exactly.

Row groups are skipped by the same rules as files, and so are rows that a deletion vector names. A few threads
read files ahead; rows still come in the order of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakelog.catalog.core.files.data_file import (
    CONSTANTS,
    DELETES,
    FIRST_ROW,
    FOOTER,
    NAMES,
    VERSION,
    DataFile,
    constants_from_json,
    files_to_arrow,
    is_elsewhere,
    names_from_json,
)
from lakelog.catalog.core.files.deletion_vectors import DeletionVector, deletes_from_json
from lakelog.catalog.core.files.file_set import Specs
from lakelog.catalog.core.files.live_rows import LiveRows, Numbers
from lakelog.catalog.core.files.row_ids import ROW_ID, ROW_VERSION, UNCOMMITTED
from lakelog.catalog.core.files.statistics import MeasuredColumn, footer_statistics
from lakelog.catalog.core.logs.stored_vectors import read_vector
from lakelog.catalog.core.parquet.opening import open_parquet
from lakelog.catalog.core.parquet.read_ahead import in_order
from lakelog.catalog.core.parquet.reshape import OwnColumns, to_logical
from lakelog.catalog.core.planning.bound import Bound, terms
from lakelog.catalog.core.planning.pruning import may_match
from lakelog.catalog.core.planning.row_filter import evaluate
from lakelog.catalog.core.schema.arrow_types import schema_to_arrow, type_from_arrow
from lakelog.catalog.core.schema.literals import value_type
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.types import (
    AtomicType,
    Field,
    TypedValue,
)
from lakelog.log import OpenUrl
from lakelog.log.errors import FormatError, NotFound, StorageError, Unsupported
from lakelog.log.stores import ObjectStore

if TYPE_CHECKING:
    from pyroaring import BitMap

Taken = TypeVar("Taken")

ID_FIELDS = (pa.field("_row_id", pa.int64()), pa.field("_row_version", pa.int64()))
"""The columns of a row's id, and of the version that wrote it last; NULL if they are not known."""

BATCH_ROWS = 128 * 1024
READ_AHEAD_FILES = 4
THREADED_ROWS_MIN = 32 * 1024
"""Several threads decode columns of so many rows. With fewer rows, to hand them over takes longer."""


def with_row_ids(schema: Schema) -> Schema:
    """Return a schema with the columns of `ID_FIELDS` after its own."""
    ids = (
        Field(id=schema.last_id + count, name=field.name, type=AtomicType("long"))
        for count, field in enumerate(ID_FIELDS, start=1)
    )
    return msgspec.structs.replace(
        schema, fields=(*schema.fields, *ids), last_id=schema.last_id + len(ID_FIELDS)
    )


def read_files(
    store: ObjectStore,
    prefix: str,
    plan: pa.Table,
    schema: Schema,
    specs: Specs,
    *,
    columns: Sequence[str] | None = None,
    predicate: Bound | None = None,
    open_url: OpenUrl | None = None,
    row_ids: bool = False,
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the Arrow schema of the result, and its batches; reading starts with the first batch.

    `columns` are names of `schema`, in the order of the result. `open_url` finds files that are outside of
    the table. With `row_ids`, ids and versions of rows come as the last two columns. While batches are taken,
    raises FormatError for a damaged file, NotFound for a missing file, Unsupported for a condition that
    lakelog does not know.
    """
    column_names = [field.name for field in schema.fields] if columns is None else list(columns)
    whole = schema_to_arrow(schema)
    result = pa.schema([*(whole.field(name) for name in column_names), *(ID_FIELDS if row_ids else ())])
    reader = _Reading(store, prefix, schema, column_names, predicate, open_url, row_ids=row_ids)
    return result, _ahead(_sources(plan), reader.batches)


def read_positions(
    store: ObjectStore,
    prefix: str,
    plan: pa.Table,
    schema: Schema,
    predicate: Bound,
    open_url: OpenUrl | None = None,
) -> Iterator[tuple[str, BitMap]]:
    """Yield the path of each file that has live rows which match, and their positions in it.

    Raises the errors of `read_files`.
    """
    from pyroaring import BitMap

    # A condition without columns is evaluated for rows that are counted by a single column.
    columns = () if any(terms(predicate)) else (schema.fields[0].name,)
    reader = _Reading(store, prefix, schema, columns, predicate, open_url)

    def found(file: _Source) -> Iterator[tuple[str, BitMap]]:
        positions = BitMap()
        for batch_positions in reader.positions(file):
            positions |= BitMap(batch_positions.astype(np.uint32))
        if positions:
            yield file.path, positions

    return _ahead(_sources(plan), found)


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """Some live rows of a file, with ids and versions as last columns, and their positions in the file."""

    path: str
    positions: Numbers
    rows: pa.Table


def read_placed_rows(
    store: ObjectStore,
    prefix: str,
    plan: pa.Table,
    schema: Schema,
    columns: Sequence[str],
    open_url: OpenUrl | None = None,
    *,
    predicate: Bound | None = None,
    of: Callable[[PlacedRows], PlacedRows] = lambda rows: rows,
    files_ahead: int = READ_AHEAD_FILES,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[PlacedRows]:
    """Yield these columns, ids and versions of the live rows of files, or the rows that `of` takes of them.

    Row groups in which no row can match `predicate` are left out; of other row groups all rows come, with its
    columns. Without columns, only ids and versions are read if the file stores them, else nothing but its
    footer. At most `files_ahead` files are open, each with some batches of `batch_rows` in memory, for which
    threads call `of`. Raises the errors of `read_files`.
    """
    reader = _Reading(
        store,
        prefix,
        schema,
        list(columns),
        predicate,
        open_url,
        row_ids=True,
        batch_rows=batch_rows,
    )
    return _ahead(_sources(plan), lambda file: map(of, reader.placed(file)), files_ahead)


def _sources(plan: pa.Table) -> list[_Source]:
    columns = (
        plan[name].to_pylist() if name in plan.column_names else [None] * plan.num_rows
        for name in ("path", "size", "rows", FOOTER, NAMES, CONSTANTS, DELETES, FIRST_ROW, VERSION)
    )
    return list(map(_Source, *columns))


def _ahead(
    files: Sequence[_Source], read: Callable[[_Source], Iterator[Taken]], at_once: int = READ_AHEAD_FILES
) -> Iterator[Taken]:
    return in_order(files, read, at_once, sizes=[file.size_bytes for file in files])


@dataclass(frozen=True, slots=True)
class _Source:
    """A file to be read, with the log's facts about it."""

    path: str
    size_bytes: int | None = None
    rows: int | None = None
    footer_crc: int | None = None
    names_json: str | None = None
    constants_json: str | None = None
    deletes_json: str | None = None
    first_row: int | None = None
    version: int | None = None

    @property
    def names(self) -> dict[int, str] | None:
        return None if self.names_json is None else names_from_json(self.names_json)

    @property
    def constants(self) -> dict[int, TypedValue]:
        return {} if self.constants_json is None else constants_from_json(self.constants_json)

    @property
    def deletes(self) -> DeletionVector | None:
        return None if self.deletes_json is None else deletes_from_json(self.deletes_json)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some rows of a file, unchanged, the first at the place `start` among those that are read."""

    file: _Source
    rows: pa.RecordBatch
    start: int
    live: LiveRows
    names: Mapping[int, str] | None
    constants: Mapping[int, TypedValue]


class _Reading:
    def __init__(
        self,
        store: ObjectStore,
        prefix: str,
        schema: Schema,
        columns: Sequence[str],
        predicate: Bound | None,
        open_url: OpenUrl | None = None,
        *,
        row_ids: bool = False,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self._row_ids = row_ids
        self._batch_rows = batch_rows
        self._open_url = open_url
        self._store = store
        self._prefix = f"{prefix}/" if prefix else ""
        self._schema = schema
        self._columns = list(columns)
        self._predicate = predicate
        filter_columns = [] if predicate is None else [term.path[0] for term in terms(predicate)]
        self._needed = list(dict.fromkeys([*columns, *filter_columns]))
        self._fields = [schema.find((name,), case_sensitive=True) for name in self._needed]
        self._own = OwnColumns(schema, self._needed)

    def batches(self, file: _Source) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of a file."""
        return self._each(file, self._matching)

    def positions(self, file: _Source) -> Iterator[Numbers]:
        """Yield the positions of the matching rows of a file."""
        return self._each(file, self._matching_positions)

    def placed(self, file: _Source) -> Iterator[PlacedRows]:
        """Yield the rows of a file with their positions."""
        return self._each(file, self._placed)

    def _each(self, file: _Source, take: Callable[[_Batch], Iterator[Taken]]) -> Iterator[Taken]:
        """Yield the results of `take` for each batch of a file."""
        try:
            yield from self._taken(file, take)
        except NotFound as error:
            if is_elsewhere(file.path):
                raise
            raise NotFound(
                f"{error.message}, and the version that is read has this file: where that version has expired, "
                "load the table again"
            ) from error

    def _taken(self, file: _Source, take: Callable[[_Batch], Iterator[Taken]]) -> Iterator[Taken]:
        store, key = self._store, self._prefix + file.path
        if is_elsewhere(file.path):
            if self._open_url is None:
                raise Unsupported(
                    f"the data file {file.path} is outside of its table: open it through a catalog"
                )
            store, key = self._open_url(file.path)
        names, constants = self._said(file)
        with self._open(file, store, key) as source:
            try:
                parquet_file = open_parquet(source, file.size_bytes, file.footer_crc, for_rows=True)
                present = set(parquet_file.schema_arrow.names)
                physical = self._present(present, names, constants)
                if self._row_ids and names is None:
                    physical += [name for name in (ROW_ID, ROW_VERSION) if name in present]
                # The meaning of a foreign writer's bounds is known from the log only.
                groups = (
                    self._row_groups(parquet_file)
                    if names is None
                    else list(range(parquet_file.metadata.num_row_groups))
                )
                live, row_count = self._live(file, parquet_file.metadata, groups), 0
                for batch in parquet_file.iter_batches(
                    self._batch_rows,
                    row_groups=groups,
                    columns=physical,
                    use_threads=live.count >= THREADED_ROWS_MIN,
                ):
                    yield from take(_Batch(file, batch, row_count, live, names, constants))
                    row_count += batch.num_rows
                if row_count != live.count:
                    # Arrow skips pages whose header was altered to a type that it does not know.
                    raise FormatError(f"{live.count - row_count:,} of its rows are missing")
            except (pa.ArrowException, OSError, FormatError) as error:
                if isinstance(error, OSError) and error.errno is not None:
                    # Arrow's own errors about a file's content are OSErrors without a number.
                    raise StorageError(
                        f"reading the data file {key} in {store.url} failed ({error}): retry",
                        location=f"{store.url}/{key}",
                    ) from error
                raise FormatError(
                    f"the data file {key} in {store.url} cannot be read ({error}): it was truncated or altered"
                ) from error

    def _open(self, file: _Source, store: ObjectStore, key: str) -> BinaryIO:
        try:
            return store.open_input(key)
        except NotFound as error:
            if not is_elsewhere(file.path):
                raise
            raise NotFound(
                f"the data file {file.path}, which another writer has put there, is gone: restore it there, delete its "
                "rows here, or import the source again, if they were imported"
            ) from error

    def _said(self, file: _Source) -> tuple[dict[int, str] | None, dict[int, TypedValue]]:
        try:
            return file.names, file.constants
        except FormatError as error:
            raise FormatError(f"the data file {file.path} in {self._store.url}: {error.message}") from error

    def _live(self, file: _Source, footer: pq.FileMetaData, groups: Sequence[int]) -> LiveRows:
        """Return the live rows of the row groups that are read."""
        counts = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
        deletes = file.deletes
        if deletes is None:
            return LiveRows(counts, groups, None)
        if file.rows is not None and footer.num_rows != file.rows + deletes.rows:
            raise FormatError(
                f"it has {footer.num_rows:,} rows, and the log has {file.rows:,} live and {deletes.rows:,} deleted ones"
            )
        vector = read_vector(self._store, self._prefix.rstrip("/"), deletes, footer.num_rows)
        return LiveRows(counts, groups, vector)

    def _present(
        self, present: set[str], names: Mapping[int, str] | None, constants: Mapping[int, TypedValue]
    ) -> list[str]:
        """Return the file's names of the needed columns that it has."""
        if names is None:
            return [field.physical for field in self._fields if field.physical in present]
        file_names = (names.get(field.id) for field in self._fields if field.id not in constants)
        return [name for name in file_names if name is not None and name in present]

    def _matching(self, batch: _Batch) -> Iterator[pa.RecordBatch]:
        rows = self._logical(batch)
        columns = self._columns
        if self._row_ids:
            rows, columns = _with_ids(rows, batch), [*columns, *(field.name for field in ID_FIELDS)]
        if self._predicate is not None:
            rows = rows.filter(evaluate(self._predicate, rows)).select(columns)
        yield from (record_batch for record_batch in rows.to_batches() if record_batch.num_rows)

    def _matching_positions(self, batch: _Batch) -> Iterator[Numbers]:
        positions = batch.live.positions(batch.start, batch.rows.num_rows)
        if self._predicate is not None and len(positions):
            is_match = pc.fill_null(evaluate(self._predicate, self._logical(batch)), False)
            positions = positions[np.asarray(is_match, dtype=bool)]
        yield positions

    def _placed(self, batch: _Batch) -> Iterator[PlacedRows]:
        positions = batch.live.positions(batch.start, batch.rows.num_rows)
        yield PlacedRows(batch.file.path, positions, _with_ids(self._logical(batch), batch))

    def _logical(self, batch: _Batch) -> pa.Table:
        rows = batch.live.of(batch.rows, batch.start)
        if not self._needed:
            # Arrow counts the rows of a table without columns.
            return pa.Table.from_batches([rows]).select([])
        if batch.names is None and not batch.constants:
            return self._own.logical(rows)
        return to_logical(rows, self._schema, self._needed, names=batch.names, constants=batch.constants)

    def _row_groups(self, file: pq.ParquetFile) -> list[int]:
        footer = file.metadata
        groups = list(range(footer.num_row_groups))
        if self._predicate is None or len(groups) < 2:
            return groups
        columns = self._measured(file.schema_arrow)
        parts = [
            DataFile(
                path=str(group),
                size_bytes=0,
                rows=footer.row_group(group).num_rows,
                stats=footer_statistics(footer, columns, [group]),
            )
            for group in groups
        ]
        mask = may_match(files_to_arrow(parts, self._as_written(columns), ()), self._predicate, ())
        return [group for group, keep in zip(groups, mask.to_pylist(), strict=True) if keep]

    def _measured(self, schema: pa.Schema) -> list[MeasuredColumn]:
        """Return the needed columns that may have statistics, with the types that they have in the file."""
        columns: list[MeasuredColumn] = []
        for field in self._fields:
            if isinstance(field.type, AtomicType) and field.physical in schema.names:
                type = type_from_arrow(schema.field(field.physical).type, (field.name,))
                if isinstance(type, AtomicType) and value_type(type) is not None:
                    columns.append(MeasuredColumn(field.id, field.physical, type))
        return columns

    def _as_written(self, columns: Sequence[MeasuredColumn]) -> Schema:
        types = {column.id: column.type for column in columns}
        fields = [field for field in self._fields if field.id in types]
        return Schema(
            fields=tuple(msgspec.structs.replace(field, type=types[field.id]) for field in fields),
            last_id=self._schema.last_id,
        )


def _with_ids(rows: pa.Table, batch: _Batch) -> pa.Table:
    """Return the live rows of a batch with their ids and versions, their own or else the file's.

    A stored version is never later than the file's version, except in a clone or restored table. There it is
    a version of the log that the rows come from, and for this log, they came with the file.
    """
    file, live = batch.file, batch.live.of(batch.rows, batch.start)
    count = live.num_rows
    ids = versions = pa.nulls(count, pa.int64())
    # Rows that a transaction adds get ids when it commits, which may differ from their present ids.
    if file.version != UNCOMMITTED:
        if file.version is not None:
            versions = pa.array(np.full(count, file.version, dtype=np.int64))
        if file.first_row is not None:
            ids = pa.array(batch.live.positions(batch.start, batch.rows.num_rows) + file.first_row)
    for field, name, values in zip(ID_FIELDS, (ROW_ID, ROW_VERSION), (ids, versions), strict=True):
        if name in live.schema.names:
            own = live[name]
            values = pc.coalesce(pc.min_element_wise(own, values) if name == ROW_VERSION else own, values)
        rows = rows.append_column(field, values)
    return rows
